/* http.h — as much of HTTP as asking a server on this machine takes. In: a request. Out: status and body. */
#ifndef MEMSTOW_HTTP_H
#define MEMSTOW_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct http_answer {
    int status; /* 0: nobody answered */
    char *body; /* ended by a NUL that is not counted; free() */
    size_t length;
};

/* To 127.0.0.1; body NULL: none. At most HTTP_BYTES_MOST are read, and for at most so long. */
enum { HTTP_BYTES_MOST = 16 << 20 };
void http_ask(struct http_answer *answer, uint16_t port, const char *method, const char *path, const char *body,
              size_t length, uint64_t within_ns);

#endif
