/* session.h — being a client of CUPTI's: its only one, or one of several where it lets that be.
 * In: what is to be told of. Out: the same whichever generation of its functions there is. Nothing is taken from
 * another client: where there is one that shares with nobody, there is no session. */
#ifndef MEMSTOW_CUPTI_SESSION_H
#define MEMSTOW_CUPTI_SESSION_H

#include <stdbool.h>

#include "cupti/library.h"

#pragma GCC visibility push(hidden)

enum { SESSION_NAME = 64 };

struct session {
    const struct cupti *cupti;
    cupti_subscriber subscriber;
    bool alone;               /* set before: it is not to be one of several */
    bool several;             /* others may be clients beside it */
    bool has_source;          /* records name the library that asked */
    const char *failed;       /* the call that did */
    char other[SESSION_NAME]; /* who has CUPTI; "": not known */
};

/* CUPTI's result; 0: it has begun. `lend` and `take` are as CUPTI calls them. */
int session_begin(struct session *self, const struct cupti *cupti, cupti_callback *call, cupti_buffer_requested *lend,
                  cupti_buffer_completed *take);
/* Records of this kind are wanted. */
int session_enable(struct session *self, int kind);
/* Calls of this function of the driver, or that event, are wanted, or not any more. */
int session_enable_call(struct session *self, bool wanted, int domain, uint32_t id);
int session_next(uint8_t *buffer, size_t valid, void **record);
/* Since the last time. */
size_t session_dropped(struct session *self, cupti_context context, uint32_t stream);
void session_end(struct session *self);

#pragma GCC visibility pop

#endif
