/* session.h — being a client of CUPTI: the only one, or one of several if CUPTI allows that.
 * In: the events that are wanted. Out: the same events with either generation of its functions. It takes nothing away
 * from another client: if a client has CUPTI and does not share it, there is no session. */
#ifndef MEMSTOW_CUPTI_SESSION_H
#define MEMSTOW_CUPTI_SESSION_H

#include <stdbool.h>

#include "cupti/library.h"

#pragma GCC visibility push(hidden)

enum { SESSION_NAME = 64 };

struct session {
    const struct cupti *cupti;
    cupti_subscriber subscriber;
    bool alone;               /* set by the caller: it must be the only client */
    bool several;             /* there may be other clients */
    bool has_source;          /* records name the library that asked */
    const char *failed;       /* the call that failed */
    char other[SESSION_NAME]; /* the client that has CUPTI; "": unknown */
};

/* CUPTI's result; 0: the session has begun. CUPTI calls `lend` and `take`. */
int session_begin(struct session *self, const struct cupti *cupti, cupti_callback *call, cupti_buffer_requested *lend,
                  cupti_buffer_completed *take);
/* Requests records of this kind. */
int session_enable(struct session *self, int kind);
/* Requests callbacks for a function of the driver, or an event; or ends them. */
int session_enable_call(struct session *self, bool wanted, int domain, uint32_t id);
int session_next(uint8_t *buffer, size_t valid, void **record);
/* The number of dropped records since the last call. */
size_t session_dropped(struct session *self, cupti_context context, uint32_t stream);
void session_end(struct session *self);

#pragma GCC visibility pop

#endif
