/* threshold.c — --fail-over: how much growth is too much; see threshold.h. */
#include "threshold.h"

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

static bool parse_one(struct limit *limit, const char *string) {
    double factor;
    snprintf(limit->text, sizeof limit->text, "%s", string);
    const char *unit = parse_value(string, &limit->value);
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

static bool passed(const struct limit *limit, int64_t grown_bytes, int64_t grown_blocks, uint64_t before) {
    switch (limit->kind) {
    case LIMIT_BYTES:
        return (double)grown_bytes > limit->value;
    case LIMIT_PERCENT:
        return grown_bytes > 0 && (double)grown_bytes * 100 > limit->value * (double)before;
    case LIMIT_BLOCKS:
        return (double)grown_blocks > limit->value;
    }
    return false;
}

const struct limit *limits_passed(const struct limits *limits, int64_t grown_bytes, int64_t grown_blocks,
                                  uint64_t before) {
    for (size_t i = 0; i < limits->count; i++)
        if (passed(&limits->list[i], grown_bytes, grown_blocks, before)) return &limits->list[i];
    return NULL;
}
