/* thresholds.h — how much growth is too much: the limits of diff and check.
 * In: "10MiB,5%,owner:1MiB,site:100x", and what grew. Out: the first limit that was passed, in words; or, where small
 * growth is let pass, whether it is fine, worth a warning, or too much. Pure. */
#ifndef MEMSTOW_THRESHOLDS_H
#define MEMSTOW_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limit_kind { LIMIT_BYTES, LIMIT_PERCENT, LIMIT_BLOCKS };
/* What a limit holds for: all memory together, each owner, each call site. */
enum limit_scope { LIMIT_TOTAL, LIMIT_OWNER, LIMIT_SITE, LIMIT_SCOPES };

struct limit {
    enum limit_kind kind;
    enum limit_scope scope;
    double value;
    char text[32]; /* as it was given */
};

enum { LIMITS_MAX = 8 };
struct limits {
    struct limit list[LIMITS_MAX];
    size_t count;
};

struct growth {
    int64_t bytes, blocks;
    uint64_t before; /* bytes that percentages are of */
};

/* Adds to the limits that are there. False when malformed, or when they are too many. */
bool limits_parse(struct limits *limits, const char *string);
/* Whether some limit has that scope. */
bool limits_have(const struct limits *limits, enum limit_scope scope);
/* The first limit of that scope that was passed, or NULL. What is new is over any percentage. */
const struct limit *limits_passed(const struct limits *limits, enum limit_scope scope, struct growth growth);

enum verdict { VERDICT_FINE, VERDICT_WARNING, VERDICT_FAILED };

/* Growth below `pass_under` bytes is fine, whatever the limits say; what is neither that nor over a limit is worth a
 * warning. 0: only the limits count. */
struct thresholds {
    struct limits limits;
    uint64_t pass_under;
};

/* The rule for ComfyUI, which is as good as any: below 1 MiB fine, over 5 MiB or 10 % too much. For each owner no
 * percentage: Python takes memory by the mebibyte, for whoever happens to need some, and of a node that has little that
 * is any percentage. */
struct thresholds thresholds_standard(void);

/* `passed`: the limit that makes it VERDICT_FAILED, else NULL. */
enum verdict thresholds_judge(const struct thresholds *thresholds, enum limit_scope scope, struct growth growth,
                              const struct limit **passed);

#endif
