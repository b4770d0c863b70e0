/* thresholds.c — how much growth is too much; see thresholds.h. */
#include "tools/diff/thresholds.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Digits with at most one point; strtod alone would take "inf", "0x1p3" and blanks. No zeros lead: of 1,000 the second
 * part would be a limit of nothing. */
static const char *parse_value(const char *string, double *value) {
    const char *end = string;
    int points = 0, digits = 0;
    for (; isdigit((unsigned char)*end) || *end == '.'; end++) {
        points += *end == '.';
        digits += *end != '.';
    }
    if (string[0] == '0' && isdigit((unsigned char)string[1])) return NULL;
    if (digits == 0 || digits > 15 || points > 1) return NULL;
    *value = 0;
    double scale = 1;
    bool fraction = false;
    for (const char *c = string; c < end; c++) { /* by hand: the point of strtod is the locale's */
        if (*c == '.') {
            fraction = true;
        } else if (fraction) {
            scale /= 10;
            *value += scale * (*c - '0');
        } else {
            *value = *value * 10 + (*c - '0');
        }
    }
    return end;
}

/* K, KiB and KB are all 1024 bytes. */
static bool parse_unit(const char *unit, double *factor) {
    static const char letters[] = "KMGT";
    *factor = 1;
    if (!*unit || strcasecmp(unit, "b") == 0) return true;
    const char *letter = strchr(letters, toupper((unsigned char)*unit));
    if (!letter || (unit[1] && strcasecmp(unit + 1, "b") != 0 && strcasecmp(unit + 1, "ib") != 0)) return false;
    for (const char *l = letters; l <= letter; l++) *factor *= 1024;
    return true;
}

/* "owner:", "site:" or nothing in front. */
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
    const char *unit = parse_value(parse_scope(string, &limit->scope), &limit->value);
    if (!unit) return false;
    if (strcmp(unit, "%") == 0)
        limit->kind = LIMIT_PERCENT;
    else if (strcasecmp(unit, "x") == 0)
        limit->kind = LIMIT_BLOCKS;
    else if (parse_unit(unit, &factor)) {
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

bool limits_parse_size(const char *string, double *bytes) {
    double factor;
    const char *unit = parse_value(string, bytes);
    if (!unit || !parse_unit(unit, &factor)) return false;
    *bytes *= factor;
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

struct thresholds thresholds_standard(void) {
    struct thresholds standard = {.pass_under = 1 << 20};
    limits_parse(&standard.limits, "5MiB,10%,owner:5MiB");
    return standard;
}

enum verdict thresholds_judge(const struct thresholds *thresholds, enum limit_scope scope, struct growth growth,
                              const struct limit **passed) {
    *passed = NULL;
    if (thresholds->pass_under && (growth.bytes < 0 || (uint64_t)growth.bytes < thresholds->pass_under))
        return VERDICT_FINE;
    *passed = limits_passed(&thresholds->limits, scope, growth);
    if (*passed) return VERDICT_FAILED;
    return thresholds->pass_under && limits_have(&thresholds->limits, scope) ? VERDICT_WARNING : VERDICT_FINE;
}
