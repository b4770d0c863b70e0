/* threshold.h — --fail-over: how much growth is too much.
 * In: "10MiB,5%,100x". Out: the first limit that was passed, in words. */
#ifndef MEMSTOW_THRESHOLD_H
#define MEMSTOW_THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limit_kind { LIMIT_BYTES, LIMIT_PERCENT, LIMIT_BLOCKS };

struct limit {
    enum limit_kind kind;
    double value;
    char text[32];
};

enum { LIMITS_MAX = 8 };
struct limits {
    struct limit list[LIMITS_MAX];
    size_t count;
};

/* Adds to the limits that are there. False when malformed, or when they are too many. */
bool limits_parse(struct limits *limits, const char *string);
/* The first limit passed, or NULL. before: live bytes of the first file. */
const struct limit *limits_passed(const struct limits *limits, int64_t grown_bytes, int64_t grown_blocks,
                                  uint64_t before);

#endif
