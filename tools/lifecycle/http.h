/* http.h — the part of HTTP that requests to a server on this machine need.
 * In: a request. Out: status and body. */
#ifndef MEMSTOW_HTTP_H
#define MEMSTOW_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct http_answer {
    int status; /* 0: no answer */
    char *body; /* followed by a NUL that is not counted; the caller frees it */
    size_t length;
};

/* Sends a request to 127.0.0.1, with `length` bytes of a body. Takes an answer of at most 16 MiB, within the given
 * time. */
void http_ask(struct http_answer *answer, uint16_t port, const char *method, const char *path, const char *body,
              size_t length, uint64_t within_ns);

#endif
