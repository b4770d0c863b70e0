/* size.c — see size.h. */
#include "tools/base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Reads digits with at most one point; strtod alone would accept "inf", "0x1p3" and blanks. Leading zeros are refused.
 * Otherwise "1,000" would be read as two limits, 1 and 0, because a comma separates limits. */
const char *size_number(const char *string, double *value) {
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
    for (const char *c = string; c < end; c++) { /* parsed by hand, because strtod expects the locale's point */
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

bool size_unit(const char *unit, double *factor) {
    static const char letters[] = "KMGT";
    *factor = 1;
    if (!*unit || strcasecmp(unit, "b") == 0) return true;
    const char *letter = strchr(letters, toupper((unsigned char)*unit));
    if (!letter || (unit[1] && strcasecmp(unit + 1, "b") != 0 && strcasecmp(unit + 1, "ib") != 0)) return false;
    for (const char *l = letters; l <= letter; l++) *factor *= 1024;
    return true;
}

bool size_parse(const char *string, double *bytes) {
    double factor;
    const char *unit = size_number(string, bytes);
    if (!unit || !size_unit(unit, &factor)) return false;
    *bytes *= factor;
    return true;
}

bool size_parse_count(const char *string, unsigned long least, unsigned long most, unsigned long *count) {
    if (!*string || string[strspn(string, "0123456789")]) return false;
    errno = 0;
    *count = strtoul(string, NULL, 10);
    return !errno && *count >= least && *count <= most;
}
