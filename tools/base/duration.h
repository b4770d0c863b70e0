/* duration.h — parses lengths of time, and reads the clock.
 * In: a text such as "500ms", "1.5s" or "2m". A number without a unit means seconds. Out: nanoseconds. */
#ifndef MEMSTOW_DURATION_H
#define MEMSTOW_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a length of time, and sets *ns to it. False: the text is malformed, or the time is longer than a day. */
bool duration_parse(const char *text, uint64_t *ns);
/* The time now in nanoseconds, by CLOCK_MONOTONIC. */
uint64_t duration_now(void);
#define SECOND_NS UINT64_C(1000000000)

#endif
