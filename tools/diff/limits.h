/* limits.h — limits of growth, for diff and check.
 * In: a list of limits such as "10MiB,5%,owner:1MiB,site:100x", and the growth of something. Out: the first limit that
 * the growth passed. Pure. */
#ifndef MEMSTOW_LIMITS_H
#define MEMSTOW_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limit_kind { LIMIT_BYTES, LIMIT_PERCENT, LIMIT_BLOCKS };
/* A limit applies to all memory together, to each owner, or to each call site. */
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
/* Whether there is a limit of that scope. */
bool limits_have(const struct limits *limits, enum limit_scope scope);
/* Returns the first limit of that scope that the growth passed, or NULL. Growth from 0 bytes passes every limit in
 * percent. */
const struct limit *limits_passed(const struct limits *limits, enum limit_scope scope, struct growth growth);

#endif
