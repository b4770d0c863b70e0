/* figures.c — see figures.h. */
#include "tools/symbols/figures.h"
#include "preload/shared/utf8.h"
#include "tools/base/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_MOST = 160, HASHED = sizeof "~01234567" };

static const char kinds[2][4] = {"TOS", "tos"}; /* first letters of keys: for the host, and for devices */

void figures_begin(struct figures *figures) { *figures = (struct figures){.floor = 1}; }

static void figure_drop(struct figures *figures, struct figure *figure) {
    HASH_DEL(figures->table, figure);
    figures->count--;
    free(figure->file);
    free(figure);
}

void figures_end(struct figures *figures) {
    struct figure *figure, *next;
    HASH_ITER(hh, figures->table, figure, next) figure_drop(figures, figure);
    figures_begin(figures);
}

static struct figure *figure_find(const struct figures *figures, enum figure_kind kind, bool cuda, const char *name) {
    char key[FIGURE_KEY_MOST];
    struct figure *found;
    int length = snprintf(key, sizeof key, "%c%s", kinds[cuda][kind], name);
    if (length < 0 || (size_t)length >= sizeof key) return NULL;
    HASH_FIND(hh, figures->table, key, (unsigned)length, found);
    return found;
}

struct figure *figures_find(const struct figures *figures, enum figure_kind kind, const char *name) {
    return figure_find(figures, kind, false, name);
}

struct figure *figures_find_cuda(const struct figures *figures, enum figure_kind kind, const char *name) {
    return figure_find(figures, kind, true, name);
}

struct figure *figures_find_like(const struct figures *figures, const struct figure *like) {
    return figure_find(figures, like->kind, like->cuda, figure_name(like));
}

static struct figure *figure_add(struct figures *figures, enum figure_kind kind, bool cuda, const char *name,
                                 uint64_t bytes, uint64_t blocks) {
    struct figure *figure = figure_find(figures, kind, cuda, name);
    size_t length = strlen(name) + 1;
    if (!figure) {
        figure = length < FIGURE_KEY_MOST ? calloc(1, sizeof *figure + length + 1) : NULL;
        if (!figure) return NULL;
        figure->kind = kind;
        figure->cuda = cuda;
        figure->key[0] = kinds[cuda][kind];
        memcpy(figure->key + 1, name, length);
        HASH_ADD(hh, figures->table, key, (unsigned)length, figure);
        figures->count++;
    }
    figure->run_bytes += bytes;
    figure->run_blocks += blocks;
    return figure;
}

struct figure *figures_add(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes,
                           uint64_t blocks) {
    return figure_add(figures, kind, false, name, bytes, blocks);
}

struct figure *figures_add_cuda(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes,
                                uint64_t blocks) {
    return figure_add(figures, kind, true, name, bytes, blocks);
}

static void figures_widen(struct range *range, uint64_t value, bool first) {
    if (first || value < range->low) range->low = value;
    if (first || value > range->high) range->high = value;
}

/* Ends a run. A figure that was missing in an earlier run was 0 in that run, so its lowest value is 0. */
void figures_end_run(struct figures *figures) {
    for (struct figure *figure = figures->table; figure; figure = figure->hh.next) {
        figures_widen(&figure->bytes, figure->run_bytes, figures->runs == 0);
        figures_widen(&figure->blocks, figure->run_blocks, figures->runs == 0);
        figure->run_bytes = figure->run_blocks = 0;
    }
    figures->runs++;
}

void figures_again(struct figures *figures) {
    bool peak = figures->peak, without_origins = figures->without_origins;
    figures_end(figures);
    figures->peak = peak;
    figures->without_origins = without_origins;
}

const char *figure_name(const struct figure *figure) { return figure->key + 1; }

static int by_name(const struct figure *a, const struct figure *b) {
    if (a->kind != b->kind) return (int)a->kind - (int)b->kind;
    return a->cuda != b->cuda ? (int)a->cuda - (int)b->cuda : strcmp(a->key, b->key);
}

void figures_sort(struct figures *figures) { HASH_SORT(figures->table, by_name); }

static bool figures_within(struct range inner, struct range outer) {
    return inner.low >= outer.low && inner.high <= outer.high;
}

void figures_settle(struct figures *figures, const struct figures *before) {
    for (struct figure *figure = figures->table; figure; figure = figure->hh.next) {
        const struct figure *old = figures_find_like(before, figure);
        if (!old || !figures_within(figure->bytes, old->bytes) || !figures_within(figure->blocks, old->blocks))
            continue;
        figure->bytes = old->bytes;
        figure->blocks = old->blocks;
    }
}

static bool figures_is_listed(const struct figure *figure, uint64_t floor, const struct figures *before) {
    if (figure->kind != FIGURE_SITE || figure->bytes.high >= floor) return true;
    return before && figure->bytes.high >= floor / 2 + floor % 2 && figures_find_like(before, figure);
}

static size_t listed_sites(const struct figures *figures, uint64_t floor, const struct figures *before) {
    size_t count = 0;
    for (const struct figure *figure = figures->table; figure; figure = figure->hh.next)
        count += figure->kind == FIGURE_SITE && figures_is_listed(figure, floor, before);
    return count;
}

void figures_cut(struct figures *figures, const struct figures *before, size_t most) {
    struct figure *figure, *next;
    uint64_t floor = before ? before->floor : 1;
    while (floor < UINT64_C(1) << 62 && listed_sites(figures, floor, before) > most) floor *= 2;
    figures->floor = floor;
    HASH_ITER(hh, figures->table, figure, next)
    if (!figures_is_listed(figure, floor, before)) figure_drop(figures, figure);
}

/* --- names of figures --- */

/* A hash of the whole text. It distinguishes long names that begin alike. */
static uint32_t name_hash(const char *text) {
    uint32_t sum = 0x811C9DC5u;
    for (; *text; text++) sum = (sum ^ (unsigned char)*text) * 0x01000193u;
    return sum;
}

/* Writes a text to `to`. If the text is a path, writes only its last name. A long text is cut between characters, and
 * ends with a hash of the whole text. */
static void figures_part(char *to, const char *text) {
    size_t length = strlen(text), from = 0;
    if (*text == '/') {
        while (length > 1 && text[length - 1] == '/') length--;
        for (from = length; from && text[from - 1] != '/';) from--;
        length -= from;
    }
    bool cut = length >= PART_MOST;
    if (cut) length = utf8_cut(text + from, PART_MOST - HASHED);
    memcpy(to, text + from, length);
    if (cut)
        snprintf(to + length, HASHED, "~%08x", name_hash(text + from));
    else
        to[length] = 0;
}

static bool name_put(char *to, size_t capacity, const char *text) {
    size_t used = strlen(to), length = strlen(text);
    if (used + length + 1 > capacity) return false;
    memcpy(to + used, text, length + 1);
    return true;
}

/* Appends `lead`, and then one quoted text that consists of `a`, `between` and `b`. Returns false if there is no space;
 * then nothing is appended. */
static bool put_pair(char *to, size_t capacity, const char *lead, const char *a, const char *between, const char *b) {
    char text[2 * PART_MOST + 8], first[PART_MOST], second[PART_MOST];
    size_t used = strlen(to);
    figures_part(first, a);
    figures_part(second, b);
    snprintf(text, sizeof text, "%s%s%s", first, between, second);
    if (name_put(to, capacity, lead) && scan_quote(to, capacity, text)) return true;
    to[used] = 0;
    return false;
}

bool figure_name_owner(char *to, size_t capacity, const char *kind, const char *name, const char *origin) {
    char text[PART_MOST];
    to[0] = 0;
    if (!name_put(to, capacity, kind) || !name_put(to, capacity, " ")) return false;
    figures_part(text, name);
    if (!scan_quote(to, capacity, text) || !name_put(to, capacity, " ")) return false;
    figures_part(text, origin);
    return scan_quote(to, capacity, text);
}

bool figure_name_frame(char *to, size_t capacity, const char *function, const char *module) {
    return put_pair(to, capacity, " ", function, "@", module);
}

bool figure_name_of(char *to, size_t capacity, const char *kind, const char *name, const char *origin) {
    if (!put_pair(to, capacity, strstr(to, "\" of \"") ? " " : " of ", kind, ":", name)) return false;
    return !*origin || put_pair(to, capacity, " from ", origin, "", "");
}

bool figure_part(const char **next, enum figure_part *part, char *to, size_t capacity) {
    struct scan scan;
    *next += strspn(*next, " ");
    if (*part == PART_ORIGIN) *part = PART_OWNER; /* an origin is one text */
    if (**next && **next != '"') {                /* "at", "of", "from", or the kind of an owner */
        bool of = strncmp(*next, "of ", 3) == 0, from = strncmp(*next, "from ", 5) == 0;
        *part = of ? PART_OWNER : from ? PART_ORIGIN : PART_FRAME;
        *next += strcspn(*next, "\"");
    }
    if (!**next) return false;
    scan_begin(&scan, "", *next, strlen(*next));
    if (scan_string(&scan, to, capacity, false, "") < 0) return false;
    *next = scan.at;
    return true;
}

bool figure_has_origin(const struct figure *figure) {
    char text[SCAN_STRING_MOST];
    const char *next = figure_name(figure);
    enum figure_part part = PART_FRAME;
    while (figure->kind == FIGURE_SITE && figure_part(&next, &part, text, sizeof text))
        if (part == PART_ORIGIN ||
            (part == PART_OWNER && (strncmp(text, "model:", 6) == 0 || strncmp(text, "custom:", 7) == 0)))
            return true;
    return false;
}

static void owner_words(const struct figure *figure, char *to, size_t capacity) {
    char name[SCAN_STRING_MOST] = "", origin[SCAN_STRING_MOST] = "";
    const char *next = figure_name(figure);
    enum figure_part part = PART_FRAME;
    int kind = (int)strcspn(next, " ");
    figure_part(&next, &part, name, sizeof name);
    figure_part(&next, &part, origin, sizeof origin);
    snprintf(to, capacity, *origin ? "%.*s %s (%s)" : "%.*s %s", kind, figure_name(figure), name, origin);
}

static void site_words(const struct figure *figure, char *to, size_t capacity) {
    char text[SCAN_STRING_MOST];
    const char *next = figure_name(figure);
    enum figure_part part = PART_FRAME;
    to[0] = 0;
    while (figure_part(&next, &part, text, sizeof text)) {
        if (*to) name_put(to, capacity, part == PART_ORIGIN ? " (" : part == PART_OWNER ? ", " : " < ");
        name_put(to, capacity, text);
        if (part == PART_ORIGIN) name_put(to, capacity, ")");
    }
}

void figure_words(const struct figure *figure, char *to, size_t capacity) {
    switch (figure->kind) {
    case FIGURE_TOTAL:
        snprintf(to, capacity, "all memory");
        break;
    case FIGURE_OWNER:
        owner_words(figure, to, capacity);
        break;
    case FIGURE_SITE:
        site_words(figure, to, capacity);
        break;
    }
    if (figure->cuda) name_put(to, capacity, " on CUDA devices");
}
