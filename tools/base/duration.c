/* duration.c — see duration.h. */
#include "tools/base/duration.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY_SECONDS = 86400, DIGITS_MOST = 12 };

/* The seconds in a unit; 0: it is not a unit. */
static double unit_seconds(const char *unit) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0) return units[i].seconds;
    return 0;
}

bool duration_parse(const char *text, uint64_t *ns) {
    char digits[DIGITS_MOST + 1];
    size_t length = strspn(text, "0123456789.");
    if (!length || length > DIGITS_MOST || !isdigit((unsigned char)text[0])) return false;
    memcpy(digits, text, length);
    digits[length] = 0;
    char *end;
    double seconds = strtod(digits, &end) * unit_seconds(text + length);
    if (*end || !unit_seconds(text + length) || seconds > DAY_SECONDS) return false;
    *ns = (uint64_t)(seconds * 1e9);
    return true;
}

uint64_t duration_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}
