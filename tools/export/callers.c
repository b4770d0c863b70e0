/* callers.c — see callers.h. */
#include "tools/export/callers.h"
#include "tools/views/stacks.h"

#include <stdlib.h>

static const struct symbol_line nothing = {UINT32_MAX, UINT32_MAX};

void caller_begin(struct caller *caller, uint32_t stack, uint64_t bytes) {
    *caller = (struct caller){.bytes = bytes, .node = stack, .position = UINT32_MAX};
}

/* After this many nodes in a row without a frame to show, frame_out treats the stack as ended. */
enum { NODES_MOST = 1000 };

/* Moves the caller to the next frame outwards. If there is none, sets caller->node to 0. */
static void frame_out(const struct callers *self, struct caller *caller) {
    const struct image *image = self->image;
    caller->level = 0;
    for (int nodes = 0; caller->node && caller->node < image->node_count && nodes < NODES_MOST; nodes++) {
        struct segment segment = stack_segment(image, caller->node);
        if (caller->position > segment.count) caller->position = segment.count + 1;
        while (caller->position > 1) {
            caller->position--;
            if (!self->skips(self->skips_context, segment.frames[caller->position - 1])) return;
        }
        caller->node = image->nodes[caller->node].parent;
        caller->position = UINT32_MAX;
    }
    caller->node = 0;
}

static struct symbol_line callers_line_of(const struct callers *self, const struct caller *caller) {
    if (!caller->node) return nothing;
    return (struct symbol_line){stack_segment(self->image, caller->node).frames[caller->position - 1], caller->level};
}

/* Goes to the next function outwards. With inlining, a frame has several functions, the innermost first. */
static void step_out(const struct callers *self, struct caller *caller) {
    bool begun = caller->node && caller->position != UINT32_MAX;
    uint32_t functions = begun ? symbols_frame(self->symbols, callers_line_of(self, caller).frame)->count : 0;
    if (begun && caller->level + 1 < functions)
        caller->level++;
    else
        frame_out(self, caller);
    caller->line = callers_line_of(self, caller);
}

static int compare_lines(struct symbol_line a, struct symbol_line b) {
    if (a.frame != b.frame) return a.frame < b.frame ? -1 : 1;
    return a.symbol < b.symbol ? -1 : a.symbol > b.symbol;
}

static int callers_by_line(const void *left, const void *right) {
    return compare_lines(((const struct caller *)left)->line, ((const struct caller *)right)->line);
}

static int callers_by_bytes(const void *left, const void *right) {
    const struct caller_group *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return compare_lines(a->first->line, b->first->line);
}

static size_t same_line(const struct caller *list, size_t first, size_t count) {
    size_t next = first + 1;
    while (next < count && compare_lines(list[first].line, list[next].line) == 0) next++;
    return next;
}

/* If the lines of several callers have the same text, gives all these callers the same line. Then sorts the callers by
 * line. */
static void callers_unite(const struct callers *self, struct caller *list, size_t count) {
    for (size_t i = 0, next; i < count; i = next) {
        next = same_line(list, i, count);
        if (!list[i].node) continue;
        struct symbol_line line = symbols_alike(self->symbols, list[i].line);
        for (size_t k = i; k < next; k++) list[k].line = line;
    }
    qsort(list, count, sizeof *list, callers_by_line);
}

struct caller_group *callers_step(const struct callers *self, struct caller *list, size_t count, size_t *groups) {
    for (size_t i = 0; i < count; i++) step_out(self, &list[i]);
    qsort(list, count, sizeof *list, callers_by_line);
    callers_unite(self, list, count);
    *groups = 0;
    for (size_t i = 0; i < count; i = same_line(list, i, count)) ++*groups;
    struct caller_group *found = calloc(*groups + 1, sizeof *found);
    *groups = 0;
    for (size_t i = 0, next; found && i < count; i = next) {
        next = same_line(list, i, count);
        struct caller_group *group = &found[(*groups)++];
        *group = (struct caller_group){.first = &list[i], .count = next - i, .ended = !list[i].node};
        for (size_t k = i; k < next; k++) group->bytes += list[k].bytes;
    }
    if (found) qsort(found, *groups, sizeof *found, callers_by_bytes);
    return found;
}
