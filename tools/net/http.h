/* http.h — sends a request to a server by HTTP, and receives the answer.
 * In: a request. Out: status and body; or why there is no answer. */
#ifndef MEMSTOW_HTTP_H
#define MEMSTOW_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct http_request {
    const char *host; /* a name or an address */
    uint16_t port;
    const char *method, *path, *body;
    const char *headers; /* more lines of the head, each with its end of line; "": none */
    size_t length;       /* of the body */
    uint64_t within_ns;
};
struct http_answer {
    int status; /* 0: no answer */
    char *body; /* a NUL follows, which is not counted; the caller frees the body */
    size_t length;
    const char *why; /* without an answer: the reason, a text that nobody frees */
};

/* Sends a request with a JSON document as body, and waits for an answer of at most 16 MiB. All of this, including the
 * look-up of the host's name, takes no longer than within_ns. */
void http_send(struct http_answer *answer, const struct http_request *request);

/* Sends a request to 127.0.0.1, with `length` bytes of a body. */
void http_ask(struct http_answer *answer, uint16_t port, const char *method, const char *path, const char *body,
              size_t length, uint64_t within_ns);

#endif
