/* actions.h — what requests from outside are answered with, while the program does not answer them itself.
 * In: an owner's id, or a reason. Out: bytes, or -errno. Called on memstow's own worker thread, which has a table of
 * descriptors of its own: what they open they close, and they use no descriptor that another thread has opened. */
#ifndef MEMSTOW_ACTIONS_H
#define MEMSTOW_ACTIONS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

int64_t owners_stow(uint32_t owner);
int64_t owners_restore(uint32_t owner);
int64_t owners_release(uint32_t owner);

/* Any thread: the bytes that the move at hand has moved so far; and an end to it after the piece that it is at, with
 * -ECANCELED. */
uint64_t owners_moved(void);
void owners_cancel(void);

/* Whether pressure or idle time is to be looked at, which trigger_poll does once a second; `ask` passes a trigger on to
 * the program: true when that was done. */
bool trigger_polls(void);
uint32_t trigger_poll(uint64_t now_ns, bool (*ask)(uint32_t reason, const char *text, uint64_t needed));

#pragma GCC visibility pop

#endif
