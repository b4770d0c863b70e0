/* innermost.c — see innermost.h. */
#include "tools/symbols/innermost.h"
#include "tools/views/stacks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct snap_code *code_of(const struct image *image, uint32_t id) {
    const struct snap_frame *frame = stack_frame(image, id);
    return frame ? stack_frame_code(image, frame) : NULL;
}

bool innermost_is_import(const struct image *image, uint32_t id) {
    static const char import[] = "<frozen importlib";
    const struct snap_code *code = code_of(image, id);
    return code && strncmp(image_string(image, code->file), import, sizeof import - 1) == 0;
}

bool innermost_is_python(const struct image *image, uint32_t id) {
    return code_of(image, id) && !innermost_is_import(image, id);
}

struct stack {
    const struct image *image;
    struct symbols *symbols;
    const uint32_t *frames;
    size_t count;
};

/* Returns the index of the first Python frame from index `from` on, or `count` if there is none. */
static size_t find_python(const struct stack *stack, size_t from) {
    while (from < stack->count && !innermost_is_python(stack->image, stack->frames[from])) from++;
    return from;
}

static bool innermost_begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

static bool innermost_ends(const char *name, const char *with) {
    size_t length = strlen(name), end = strlen(with);
    return length >= end && strcasecmp(name + length - end, with) == 0;
}

bool innermost_is_allocator(const char *function) {
    static const char *const first[] = {
        "operator new",    "std::",      "__gnu_cxx::",  "alloc::",       "__rust_",           "new_arena",
        "_PyObject_Arena", "arena_map_", "_PyObject_GC", "_PyObject_New", "c10::DefaultCPUAl", "at::detail::empty_"};
    static const char *const last[] = {"alloc",    "alloc0", "alloc_mmap",   "alloc_cpu",
                                       "memalign", "strdup", "from_new_pool"};
    bool found = false;
    for (size_t i = 0; function && i < sizeof first / sizeof *first; i++) found |= innermost_begins(function, first[i]);
    for (size_t i = 0; function && i < sizeof last / sizeof *last; i++) found |= innermost_ends(function, last[i]);
    return found;
}

/* Where the shown part of a stack begins: the frame, and the function in it. A frame into which functions were inlined
 * has several functions. */
struct start {
    size_t frame;
    uint32_t symbol;
};

/* Finds the innermost function that does not allocate for others. If all of them do, returns the innermost function. */
static struct start find_caller(const struct stack *stack) {
    for (size_t i = 0; i < stack->count; i++) {
        const struct named_frame *frame = symbols_frame(stack->symbols, stack->frames[i]);
        for (uint32_t k = 0; k < frame->count; k++)
            if (!innermost_is_allocator(frame->symbols[k].function)) return (struct start){i, k};
    }
    return (struct start){0};
}

static struct start find_start(const struct stack *stack) {
    size_t python = find_python(stack, 0);
    return python < stack->count ? (struct start){python, 0} : find_caller(stack);
}

static bool all_frames;

void innermost_show_all(void) { all_frames = true; }
bool innermost_shows_all(void) { return all_frames; }

/* Adds a line for each function of the frame from.frame, beginning with from.symbol, up to `most` lines in all. */
static void frame_add(struct innermost *innermost, const struct stack *stack, struct start from, size_t most) {
    const struct named_frame *frame = symbols_frame(stack->symbols, stack->frames[from.frame]);
    for (uint32_t i = from.symbol; i < frame->count && innermost->count < most; i++)
        innermost->lines[innermost->count++] = (struct innermost_line){frame, &frame->symbols[i]};
}

void innermost_of(struct innermost *innermost, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct stack stack = {image, symbols, NULL, 0};
    stack.frames = stack_all(image, node, &stack.count);
    *innermost = (struct innermost){.count = 0};
    if (!stack.count) return;
    struct start from = all_frames ? (struct start){0} : find_start(&stack);
    bool python = !all_frames && innermost_is_python(image, stack.frames[from.frame]);
    size_t most = all_frames ? INNERMOST_LINES : python ? INNERMOST_PYTHON : INNERMOST_NATIVE, next = from.frame;
    innermost->inside = from.frame;
    while (from.frame < stack.count && innermost->count < most) {
        frame_add(innermost, &stack, from, most);
        next = from.frame + 1;
        from = (struct start){python ? find_python(&stack, next) : next, 0};
    }
    /* a note that one frame is hidden would take a line, too, so the frame is shown */
    if (stack.count - next == 1 && !innermost->inside)
        frame_add(innermost, &stack, (struct start){next++, 0}, INNERMOST_LINES);
    innermost->more = stack.count - next;
}

bool innermost_caller(struct innermost_line *line, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct stack stack = {image, symbols, NULL, 0};
    stack.frames = stack_all(image, node, &stack.count);
    if (!stack.count) return false;
    struct start from = find_start(&stack);
    const struct named_frame *frame = symbols_frame(symbols, stack.frames[from.frame]);
    *line = (struct innermost_line){frame, &frame->symbols[from.symbol]};
    return true;
}

struct text_line innermost_text(const struct innermost_line *line, int width) {
    struct text_line text;
    snprintf(text.s, sizeof text.s, "%s %.1000s", line->frame->python ? "py" : "  ",
             symbol_text(line->frame, line->symbol, width - 3).s);
    return text;
}

struct text_line innermost_left_out(const struct innermost *innermost) {
    struct text_line text = {""};
    const char *plural = innermost->inside == 1 ? "" : "s";
    if (innermost->more && innermost->inside)
        snprintf(text.s, sizeof text.s, "… %zu more, %zu inner frame%s", innermost->more, innermost->inside, plural);
    else if (innermost->more)
        snprintf(text.s, sizeof text.s, "… %zu more", innermost->more);
    else if (innermost->inside)
        snprintf(text.s, sizeof text.s, "… %zu inner frame%s", innermost->inside, plural);
    return text;
}

void innermost_print(const struct innermost *innermost, FILE *to, int indent) {
    enum { WIDTH = 100 };
    struct text_line left_out = innermost_left_out(innermost);
    for (size_t i = 0; i < innermost->count; i++)
        fprintf(to, "%*s%s\n", indent, "", innermost_text(&innermost->lines[i], WIDTH - indent).s);
    if (*left_out.s) fprintf(to, "%*s   %s\n", indent, "", left_out.s);
}
