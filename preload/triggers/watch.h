/* watch.h — begins triggers (trigger.h) that nobody asks for: when memory is short, or when an owner has not been used
 * for long.
 * In: the time, about once a second. Out: a trigger, or a request to the program to make one. Everything belongs to the
 * one thread that polls. */
#ifndef MEMSTOW_WATCH_H
#define MEMSTOW_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Looks whether memory is short or an owner has become idle. A thread of memstow's own, which may wait, calls it about
 * once a second. `ask` passes a trigger on to a program that answers requests. If it returns false, there is no such
 * program, and the trigger is made here. Returns the trigger's reason (enum memstow_reason); 0: there was none. */
uint32_t watch_poll(uint64_t now_ns, bool (*ask)(uint32_t reason, const char *text, uint64_t needed));

/* Whether there is anything to poll for: the environment sets a limit for pressure or idleness. */
bool watch_is_wanted(void);

/* In a forked child: no thread polls. */
void watch_abandon(void);

#pragma GCC visibility pop

#endif
