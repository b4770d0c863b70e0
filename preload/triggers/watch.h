/* watch.h — begins triggers (trigger.h) for which nobody asks: when memory is short, or when an owner has not been used
 * for long.
 * In: the time, about once a second. Out: a trigger, or a request to the program to make one. Only memstow's worker
 * thread calls watch_poll, so its data needs no lock. */
#ifndef MEMSTOW_WATCH_H
#define MEMSTOW_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* If memory is short or an owner has become idle, begins a trigger. A thread of memstow's own calls this about once a
 * second; the call may take long. `ask` asks the program to make the trigger, and returns true if the program answers
 * requests. If `ask` is NULL or returns false, the trigger is made here. Returns the trigger's reason (enum
 * memstow_reason); 0: no trigger was begun. */
uint32_t watch_poll(uint64_t now_ns, bool (*ask)(uint32_t reason, const char *text, uint64_t needed));

/* Whether there is anything to poll for. There is if a limit for pressure (MEMSTOW_PRESSURE) or for idleness
 * (MEMSTOW_IDLE) is set. */
bool watch_is_wanted(void);

/* Runs in a forked child: forgets what the parent's thread has noted for its next polls. */
void watch_abandon(void);

#pragma GCC visibility pop

#endif
