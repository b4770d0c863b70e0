/* limits.c — see limits.h. */
#include "tools/diff/limits.h"
#include "tools/base/size.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Parses the scope at the beginning: "total:", "owner:" or "site:". If there is none, the scope is the total. Returns
 * the rest of the string. */
static const char *parse_scope(const char *string, enum limit_scope *scope) {
    static const char *const words[LIMIT_SCOPES] = {"total:", "owner:", "site:"};
    *scope = LIMIT_TOTAL;
    for (int i = 0; i < LIMIT_SCOPES; i++)
        if (strncmp(string, words[i], strlen(words[i])) == 0) {
            *scope = (enum limit_scope)i;
            return string + strlen(words[i]);
        }
    return string;
}

static bool parse_one(struct limit *limit, const char *string) {
    double factor;
    snprintf(limit->text, sizeof limit->text, "%s", string);
    const char *unit = size_number(parse_scope(string, &limit->scope), &limit->value);
    if (!unit) return false;
    if (strcmp(unit, "%") == 0)
        limit->kind = LIMIT_PERCENT;
    else if (strcasecmp(unit, "x") == 0)
        limit->kind = LIMIT_BLOCKS;
    else if (size_unit(unit, &factor)) {
        limit->kind = LIMIT_BYTES;
        limit->value *= factor;
    } else
        return false;
    return true;
}

bool limits_parse(struct limits *limits, const char *string) {
    for (const char *next = string; next; next = *next ? next + 1 : NULL) {
        char one[32];
        size_t length = strcspn(next, ",");
        if (length == 0 || length >= sizeof one || limits->count == LIMITS_MAX) return false;
        memcpy(one, next, length);
        one[length] = 0;
        if (!parse_one(&limits->list[limits->count++], one)) return false;
        next += length;
        if (*next && !next[1]) return false;
    }
    return true;
}

bool limits_have(const struct limits *limits, enum limit_scope scope) {
    for (size_t i = 0; i < limits->count; i++)
        if (limits->list[i].scope == scope) return true;
    return false;
}

static bool passed_one(const struct limit *limit, struct growth growth) {
    switch (limit->kind) {
    case LIMIT_BYTES:
        return (double)growth.bytes > limit->value;
    case LIMIT_PERCENT:
        return growth.bytes > 0 && (double)growth.bytes * 100 > limit->value * (double)growth.before;
    case LIMIT_BLOCKS:
        return (double)growth.blocks > limit->value;
    }
    return false;
}

const struct limit *limits_passed(const struct limits *limits, enum limit_scope scope, struct growth growth) {
    for (size_t i = 0; i < limits->count; i++)
        if (limits->list[i].scope == scope && passed_one(&limits->list[i], growth)) return &limits->list[i];
    return NULL;
}
