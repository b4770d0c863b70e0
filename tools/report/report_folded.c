/* report_folded.c — the stacks of a report for flame graph programs; see report.h and folded.h.
 * In: options. Out: one line for each stack, and on standard error what is merged. The lines always add up to all
 * memory. */
#include "tools/base/complain.h"
#include "tools/report/folded.h"
#include "tools/views/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a flame graph has space for: half a pixel of 1,000, and a thousand frames on top of each other. */
enum { SHARE = 2000, DEEPEST = 1000 };

/* --- lines --- */

static void path_append(struct folded_path *path, const char *text) {
    size_t length = strlen(text);
    if (path->used + length + 1 > path->room) {
        size_t room = 2 * (path->used + length + 1);
        char *grown = realloc(path->text, room);
        path->failed |= !grown;
        if (!grown) return;
        path->text = grown;
        path->room = room;
    }
    memcpy(path->text + path->used, text, length + 1);
    path->used += length;
}

/* A ';' separates frames, and a line end separates stacks. */
static void append_safe(struct folded_path *path, const char *text) {
    size_t from = path->used;
    path_append(path, text);
    for (char *c = path->failed ? "" : path->text + from; *c; c++)
        *c = *c == ';' ? ':' : (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
}

static void begin_frame(struct folded_path *path) {
    if (path->used) path_append(path, ";");
}

void folded_push(struct folded_path *path, const char *name) {
    begin_frame(path);
    append_safe(path, name);
}

static void append_place(struct folded_path *path, const struct symbol *symbol) {
    char line[16];
    path_append(path, " (");
    append_safe(path, symbols_short_path(symbol->file));
    snprintf(line, sizeof line, ":%" PRIu32, symbol->line);
    if (symbol->line) path_append(path, line);
    path_append(path, ")");
}

void folded_push_symbol(struct folded_path *path, const struct named_frame *frame, const struct symbol *symbol) {
    char name[SYMBOL_NAMELESS];
    begin_frame(path);
    if (frame->python) path_append(path, "py:");
    append_safe(path, symbol->function ? symbol->function : symbol_nameless(frame, name));
    if (frame->python && symbol->file) append_place(path, symbol);
}

void folded_print(const struct folded_path *path, uint64_t bytes) {
    if (!bytes || path->failed) return;
    fwrite_unlocked(path->text, 1, path->used, stdout);
    printf(" %" PRIu64 "\n", bytes);
}

void folded_clear(struct folded_path *path) {
    free(path->text);
    *path = (struct folded_path){.used = 0};
}
/* --- each stack by itself --- */

struct folded {
    const struct report *report;
    const struct roots *roots;
    struct folded_path path;
    char **frames; /* as written, innermost inlined function last; NULL: not made yet */
    uint32_t ids[STACK_FRAMES_MAX];
};

static char *write_frame(const struct named_frame *frame) {
    struct folded_path path = {.used = 0};
    for (uint32_t i = frame->count; i--;) folded_push_symbol(&path, frame, &frame->symbols[i]);
    if (!path.failed) return path.text;
    folded_clear(&path);
    return NULL;
}

/* Adds a frame. A frame that the file does not have gets the text of an unknown one. */
static void push_frame(struct folded *folded, uint32_t id) {
    size_t at = id < folded->report->image->frame_count ? id : folded->report->image->frame_count;
    if (report_skips_frame(folded->report, id)) return;
    if (!folded->frames[at]) folded->frames[at] = write_frame(symbols_frame(folded->report->symbols, id));
    folded->path.failed |= !folded->frames[at];
    if (!folded->frames[at]) return;
    begin_frame(&folded->path);
    path_append(&folded->path, folded->frames[at]);
}

static void put_stack(struct folded *folded, const struct total *total, uint64_t bytes) {
    const struct image *image = folded->report->image;
    const char *root = folded->roots->names[roots_of(folded->roots, total->tag)];
    size_t count = stack_frames(image, total->stack, folded->ids, STACK_FRAMES_MAX);
    folded->path.used = 0;
    if (root) folded_push(&folded->path, root);
    size_t before = folded->path.used;
    for (size_t i = count; i--;) push_frame(folded, folded->ids[i]);
    if (folded->path.used == before) folded_push(&folded->path, report_no_frames(folded->report, total->module));
    folded_print(&folded->path, bytes);
}

/* Writes one line for everything that --top leaves out. */
static void put_rest(struct folded *folded, const struct listed_site *sites, size_t count) {
    char name[64];
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += sites[i].bytes;
    snprintf(name, sizeof name, "(%zu more)", count);
    folded->path.used = 0;
    folded_push(&folded->path, name);
    folded_print(&folded->path, bytes);
    if (bytes)
        complain("%s call stacks are not shown by themselves: \"%s\" has %s", text_count(count).s, name,
                 text_size(bytes).s);
}

static int put_stacks(struct folded *folded) {
    size_t count, frames = folded->report->image->frame_count, top = folded->report->top;
    struct listed_site *sites = report_sites(folded->report, false, &count);
    folded->frames = calloc(frames + 1, sizeof *folded->frames);
    bool ready = sites && folded->frames;
    size_t shown = count < top ? count : top;
    for (size_t i = 0; ready && i < shown; i++)
        put_stack(folded, &folded->report->image->totals[sites[i].first], sites[i].bytes);
    if (ready && shown < count) put_rest(folded, sites + shown, count - shown);
    for (size_t i = 0; folded->frames && i <= frames; i++) free(folded->frames[i]);
    free(folded->frames);
    free(sites);
    return ready ? 0 : -1;
}

static int stacks_one_by_one(const struct report *report, const struct roots *roots) {
    struct folded *folded = calloc(1, sizeof *folded);
    if (!folded) return -1;
    folded->report = report;
    folded->roots = roots;
    int result = put_stacks(folded);
    if (folded->path.failed) result = -1;
    folded_clear(&folded->path);
    free(folded);
    return result;
}

/* --- as a tree, without branches that are too small to see --- */

static uint64_t sum_of(const struct report *report) {
    uint64_t sum = 0;
    for (size_t i = 0; i < report->image->total_count; i++)
        if (report_keeps(report, &report->image->totals[i]))
            sum += total_measure(&report->image->totals[i], report->measure);
    return sum;
}

static void tell_merged(const struct report *report, struct folded_limits limits, struct folded_merged merged) {
    char share[32];
    snprintf(share, sizeof share, report->min_given ? "" : ", 1/%d of all,", SHARE);
    if (merged.smaller)
        complain("what holds less than %s%s is merged into \"(n smaller)\": %s%s", text_size(limits.least).s, share,
                 text_size(merged.smaller).s, report->min_given ? "" : " (--min=0 shows all of it)");
    if (merged.deeper)
        complain("what is more than %s frames deep is merged into \"(deeper)\": %s (--min=0 shows all of it)",
                 text_count(limits.deepest).s, text_size(merged.deeper).s);
}

static int stacks_as_tree(const struct report *report, const struct roots *roots) {
    struct folded_merged merged;
    struct folded_limits limits = {report->min, SIZE_MAX};
    if (!report->min_given) limits = (struct folded_limits){sum_of(report) / SHARE + 1, DEEPEST};
    if (folded_tree(report, roots, limits, &merged) < 0) return -1;
    tell_merged(report, limits, merged);
    return 0;
}

int report_folded(const struct report *report) {
    struct roots roots;
    bool all = (report->min_given && !report->min) || report->top != SIZE_MAX;
    int result = roots_make(&roots, report);
    if (result == 0) report_tell_estimates(report);
    if (result == 0) result = all ? stacks_one_by_one(report, &roots) : stacks_as_tree(report, &roots);
    roots_clear(&roots);
    return result;
}
