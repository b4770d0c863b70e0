/* pin.h — which threads use the id of a site, so that ids can be given to others when none does (fold.c). In: hooks
 * that look a site up. Out: whether every thread has been seen without one. Never waits; any thread, any signal
 * handler. A thread that died in a hook is not waited for. A thread that left a hook by longjmp is pinned until it
 * allocates or ends. */
#ifndef MEMSTOW_PIN_H
#define MEMSTOW_PIN_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* From looking a site up to having counted at it, a hook that may count at any site is pinned. `slot` is as in struct
 * caller. The fast path does the first case by itself; `pinned` of thread_nobody is never 0. */
enum pin {
    PIN_OWN,
    PIN_OUTER /* a hook further out, which a signal interrupted, is pinned */,
    PIN_STRAY /* of a thread without a slot */,
    PIN_MORE /* of one more than there is a list for */
};
enum pin pin_begin(uintptr_t slot);
void pin_end(enum pin pin);

/* A new epoch begins. True as soon as every thread has been seen without a pin since then, but for the caller, whose
 * pin is `slot`: to be asked again until it is. */
void pin_epoch(void);
bool pin_all_quiet(uintptr_t slot);

#pragma GCC visibility pop

#endif
