/* session.h — memstow as a client of CUPTI: the only client, or one of several if CUPTI allows several.
 * In: requests for records and callbacks. Out: CUPTI's answers, whichever generation of functions CUPTI has
 * (session.c). It takes nothing away from another client: if a client has CUPTI and does not share it, there is no
 * session. */
#ifndef MEMSTOW_CUPTI_SESSION_H
#define MEMSTOW_CUPTI_SESSION_H

#include <stdbool.h>

#include "cupti/library.h"

#pragma GCC visibility push(hidden)

enum { SESSION_NAME = 64 };

struct session {
    const struct cupti *cupti;
    cupti_subscriber subscriber;
    bool alone;               /* set by the caller: this session must be the only client */
    bool several;             /* there may be other clients */
    bool has_source;          /* records name the library that made the call */
    const char *failed;       /* the call that failed */
    char other[SESSION_NAME]; /* the client that has CUPTI; "": unknown */
};

/* Returns CUPTI's result; 0: the session has begun. CUPTI then calls `call` for events, `lend` for an empty buffer, and
 * `take` with a buffer of records. */
int session_begin(struct session *self, const struct cupti *cupti, cupti_callback *call, cupti_buffer_requested *lend,
                  cupti_buffer_completed *take);
/* Requests records of this kind. Returns CUPTI's result. */
int session_enable(struct session *self, int kind);
/* Requests callbacks for a function of the driver, or for an event; without `wanted`, ends these callbacks. Returns
 * CUPTI's result. */
int session_enable_call(struct session *self, bool wanted, int domain, uint32_t id);
/* Finds the next record in a buffer that CUPTI handed over (records_next). */
int session_next(uint8_t *buffer, size_t valid, void **record);
/* The number of records that CUPTI has dropped since the previous call. */
size_t session_dropped(struct session *self, cupti_context context, uint32_t stream);
void session_end(struct session *self);

#pragma GCC visibility pop

#endif
