/* delivery.h — brings profiles to a server: a queue, and pauses while the server is down.
 * In: requests. Out: the same requests at the server, and messages when the server is down or refuses a request. The
 * queue is bounded: if it is full, the oldest requests are dropped. */
#ifndef MEMSTOW_DELIVERY_H
#define MEMSTOW_DELIVERY_H

#include "tools/net/url.h"
#include "tools/push/body.h"

enum { DELIVERY_MOST = 64, DELIVERY_BYTES_MOST = 64 << 20 };

struct delivery {
    struct url url;
    enum body_form form;
    char headers[2048];      /* the header with the credentials; "": none */
    const char *authorities; /* a file of certificates; NULL: those of the system */
    struct body queue[DELIVERY_MOST];
    size_t count, bytes, dropped;
    uint64_t pause_ns, again_ns; /* pause_ns: 0 while the server answers; again_ns: end of the pause */
};

/* Puts a request into the queue. The delivery frees it. */
void delivery_add(struct delivery *delivery, struct body body);
/* Whether the server may be asked now: it is not down, or the pause is over. */
bool delivery_is_due(const struct delivery *delivery);
/* Sends the requests in the queue. Returns 0 if all arrived. Returns 0 also if the server is down or busy: then the
 * rest stays in the queue for a later call. If the server refuses a request, prints an error message and returns an
 * exit code. */
int delivery_send(struct delivery *delivery);
/* Sends the requests in the queue for the last time, and empties the queue. Returns 0, or an exit code after an error
 * message. */
int delivery_end(struct delivery *delivery);

#endif
