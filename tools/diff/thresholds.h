/* thresholds.h — how much growth is too much: the limits of diff and check.
 * In: "10MiB,5%,owner:1MiB,site:100x", and the growth. Out: the first limit that was passed, as text; or, if small
 * growth may pass, whether growth is fine, worth a warning, or too much. Pure. */
#ifndef MEMSTOW_THRESHOLDS_H
#define MEMSTOW_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limit_kind { LIMIT_BYTES, LIMIT_PERCENT, LIMIT_BLOCKS };
/* What a limit applies to: all memory together, each owner, each call site. */
enum limit_scope { LIMIT_TOTAL, LIMIT_OWNER, LIMIT_SITE, LIMIT_SCOPES };

struct limit {
    enum limit_kind kind;
    enum limit_scope scope;
    double value;  /* bytes, percent or blocks */
    char text[32]; /* as the user gave it */
};

enum { LIMITS_MAX = 8 };
struct limits {
    struct limit list[LIMITS_MAX];
    size_t count;
};

struct growth {
    int64_t bytes, blocks;
    uint64_t before; /* bytes before the growth, for percentages */
};

/* Adds limits. False: they are malformed or too many. */
bool limits_parse(struct limits *limits, const char *string);
/* Whether a limit has that scope. */
bool limits_have(const struct limits *limits, enum limit_scope scope);
/* The first limit of that scope that was passed, or NULL. New memory is over any percentage. */
const struct limit *limits_passed(const struct limits *limits, enum limit_scope scope, struct growth growth);

enum verdict { VERDICT_FINE, VERDICT_WARNING, VERDICT_FAILED };

/* Growth below `pass_under` bytes is fine, whatever the limits say. Other growth within the limits is worth a warning.
 * 0: only the limits count. */
struct thresholds {
    struct limits limits;
    uint64_t pass_under;
};

/* The standard rule, which was made for ComfyUI: growth below 1 MiB is fine, over 5 MiB or 10 % it is too much. Owners
 * have no limit in percent: Python takes memory in steps of one mebibyte, each for an arbitrary owner, and one step is
 * a large percentage of a small node. */
struct thresholds thresholds_standard(void);

/* `passed`: the limit that leads to VERDICT_FAILED, else NULL. */
enum verdict thresholds_judge(const struct thresholds *thresholds, enum limit_scope scope, struct growth growth,
                              const struct limit **passed);

#endif
