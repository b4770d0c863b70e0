/* suppressions.c — see suppressions.h. */
#include "tools/diff/suppressions.h"
#include "tools/base/list.h"
#include "tools/base/glob.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

enum { SUPPRESSIONS_MOST = 10000 };

/* --- reading the file --- */

static bool is_day(uint32_t year, uint32_t month, uint32_t day) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1970 || month < 1 || month > 12 || day < 1) return false;
    return day <= days[month - 1] || (leap && month == 2 && day == 29);
}

/* Parses a day: YYYY-MM-DD becomes a number such as 20270331. Returns false if the calendar has no such day. */
static bool parse_day(const char *text, uint32_t *day) {
    uint32_t parts[3] = {0, 0, 0};
    if (strlen(text) != 10) return false;
    for (int i = 0, k = 0; i < 10; i++) {
        if (i == 4 || i == 7) {
            if (text[i] != '-') return false;
            k++;
        } else if (text[i] < '0' || text[i] > '9') {
            return false;
        } else {
            parts[k] = parts[k] * 10 + (uint32_t)(text[i] - '0');
        }
    }
    *day = parts[0] * 10000 + parts[1] * 100 + parts[2];
    return is_day(parts[0], parts[1], parts[2]);
}

static char **suppressions_slot(struct suppression *one, const char *word) {
    if (strcmp(word, "function") == 0) return &one->function;
    if (strcmp(word, "module") == 0) return &one->module;
    return strcmp(word, "owner") == 0 ? &one->owner : NULL;
}

static int read_day(struct scan *scan, struct suppression *one, const char *value, uint32_t today) {
    if (one->until) return scan_fail(scan, "until is given twice on this line");
    if (!parse_day(value, &one->until)) return scan_fail(scan, "until=%s: not a day like 2027-03-31", value);
    one->expired = today > one->until;
    return 0;
}

static int read_member(struct scan *scan, struct suppression *one, uint32_t today) {
    char word[16], value[SCAN_STRING_MOST];
    scan_word(scan, word, sizeof word);
    char **glob = suppressions_slot(one, word);
    bool until = strcmp(word, "until") == 0;
    if (!glob && !until) return scan_fail(scan, "function=, module=, owner= or until= expected");
    if (!scan_character(scan, '=')) return scan_fail(scan, "'=' expected behind %s", word);
    if (scan_string(scan, value, sizeof value, true, "a pattern") < 0) return -1;
    if (until) return read_day(scan, one, value, today);
    if (*glob) return scan_fail(scan, "%s is given twice on this line", word);
    if (!*value) return scan_fail(scan, "an empty pattern matches nothing");
    *glob = strdup(value);
    return *glob ? 0 : scan_fail(scan, "not enough memory");
}

static int suppressions_read_line(struct scan *scan, struct suppression *one, uint32_t today) {
    *one = (struct suppression){.line = scan->number};
    do
        if (read_member(scan, one, today) < 0) return -1;
    while (scan_more(scan));
    if (one->function || one->module || one->owner) return 0;
    scan->token = scan->line;
    return scan_fail(scan, "function=, module= or owner= is needed: this would suppress everything");
}

int suppressions_read(struct suppressions *suppressions, struct scan *scan, uint32_t today) {
    size_t capacity = 0;
    *suppressions = (struct suppressions){NULL, 0};
    while (scan_line(scan)) {
        if (!LIST_GROW(suppressions->list, suppressions->count, capacity)) return scan_fail(scan, "not enough memory");
        if (suppressions->count == SUPPRESSIONS_MOST) return scan_fail(scan, "too many lines");
        if (suppressions_read_line(scan, &suppressions->list[suppressions->count++], today) < 0) return -1;
    }
    return 0;
}

void suppressions_end(struct suppressions *suppressions) {
    for (size_t i = 0; i < suppressions->count; i++) {
        free(suppressions->list[i].function);
        free(suppressions->list[i].module);
        free(suppressions->list[i].owner);
    }
    free(suppressions->list);
    *suppressions = (struct suppressions){NULL, 0};
}

uint32_t suppressions_today(void) {
    struct tm tm;
    time_t now = time(NULL);
    if (!gmtime_r(&now, &tm)) return 0;
    return (uint32_t)(tm.tm_year + 1900) * 10000 + (uint32_t)(tm.tm_mon + 1) * 100 + (uint32_t)tm.tm_mday;
}

/* --- matching figures with lines --- */

/* Whether a frame, "function@module", matches the line's globs. The frame is split at its last '@', because the name of
 * a function may contain '@', and a file name hardly ever does. */
static bool frame_matches(const struct suppression *one, char *frame) {
    char *at = strrchr(frame, '@');
    if (at) *at = 0;
    return (!one->function || glob_matches(one->function, frame)) &&
           (!one->module || (at && glob_matches(one->module, at + 1)));
}

static bool owner_matches(const char *glob, const char *owner) {
    const char *name = strchr(owner, ':');
    return glob_matches(glob, owner) || (name && glob_matches(glob, name + 1));
}

static bool site_matches(const struct suppression *one, const struct figure *figure) {
    char text[SCAN_STRING_MOST];
    char name[SCAN_STRING_MOST] = "", words[2 * SCAN_STRING_MOST + 4];
    const char *next = figure_name(figure);
    enum figure_part part = PART_FRAME;
    bool frame = !one->function && !one->module, owner = !one->owner;
    while (figure_part(&next, &part, text, sizeof text)) {
        if (part == PART_FRAME) {
            frame = frame || frame_matches(one, text);
        } else if (part == PART_OWNER) {
            owner = owner || owner_matches(one->owner, text);
            snprintf(name, sizeof name, "%s", text);
        } else {
            snprintf(words, sizeof words, "%s (%s)", name, text);
            owner = owner || owner_matches(one->owner, words);
        }
    }
    return frame && owner;
}

/* Whether the line matches an owner. A line with a function or a module does not apply to a whole owner. */
static bool owner_figure_matches(const struct suppression *one, const struct figure *figure) {
    char text[SCAN_STRING_MOST], origin[SCAN_STRING_MOST], owner[2 * SCAN_STRING_MOST + 16];
    const char *next = figure_name(figure);
    int kind = (int)strcspn(next, " ");
    enum figure_part part = PART_FRAME;
    if (!one->owner || one->function || one->module) return false;
    if (!figure_part(&next, &part, text, sizeof text)) return false;
    int used = snprintf(owner, sizeof owner, "%.*s:%s", kind, figure_name(figure), text);
    if (owner_matches(one->owner, owner)) return true;
    if (!figure_part(&next, &part, origin, sizeof origin)) return false;
    snprintf(owner + used, sizeof owner - (size_t)used, " (%s)", origin);
    return owner_matches(one->owner, owner);
}

const struct suppression *suppressions_match(struct suppressions *suppressions, const struct figure *figure) {
    for (size_t i = 0; i < suppressions->count && figure->kind != FIGURE_TOTAL; i++) {
        struct suppression *one = &suppressions->list[i];
        if (one->expired) continue;
        if (!(figure->kind == FIGURE_SITE ? site_matches(one, figure) : owner_figure_matches(one, figure))) continue;
        one->used = true;
        return one;
    }
    return NULL;
}
