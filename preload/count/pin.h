/* pin.h — which threads use the id of a site (a call stack and its owners): these threads are pinned. An id is given to
 * another stack only when no thread uses it (fold.c).
 * In: hooks that look up a site. Out: whether every thread has been seen without an id in use. Nothing here waits for a
 * pinned thread. Any thread and any signal handler may call. A thread that died in a hook does not count as pinned. A
 * thread that left a hook by longjmp stays pinned until it allocates or ends. */
#ifndef MEMSTOW_PIN_H
#define MEMSTOW_PIN_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A hook that may count at any site is pinned from the look-up of the site until it has counted. `slot` is as in struct
 * caller (stack.h).
 * The fast path does not call pin_begin. It pins as PIN_OWN does, and only if the thread's field `pinned`
 * (thread_inside.h) is 0. In thread_nobody this field is never 0, so a thread without a slot never takes the fast
 * path. */
enum pin {
    PIN_OWN,   /* the thread was not pinned before */
    PIN_OUTER, /* an outer hook, which a signal interrupted, is pinned already */
    PIN_STRAY, /* a thread without a slot */
    PIN_MORE,  /* the list of such threads is full */
};
enum pin pin_begin(uintptr_t slot);
void pin_end(enum pin pin);

/* pin_epoch begins an epoch. pin_all_quiet returns whether every thread has been seen without a pin in this epoch. The
 * caller's own pin, `slot`, does not count. Call pin_all_quiet again and again until it returns true. */
void pin_epoch(void);
bool pin_all_quiet(uintptr_t slot);

#pragma GCC visibility pop

#endif
