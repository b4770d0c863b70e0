/* innermost.c — see innermost.h. */
#include "tools/symbols/innermost.h"
#include "tools/views/stacks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct snap_code *code_of(const struct image *image, uint32_t id) {
    const struct snap_frame *frame = stack_frame(image, id);
    return frame ? frame_code(image, frame) : NULL;
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

/* The first Python frame from `from` on; `count` if there is none. */
static size_t find_python(const struct stack *stack, size_t from) {
    while (from < stack->count && !innermost_is_python(stack->image, stack->frames[from])) from++;
    return from;
}

/* Adds lines for the frames from `next` on, up to frame `end` or `most` lines in all. Returns the frame after them. */
static size_t frames_add(struct innermost *innermost, const struct stack *stack, size_t next, size_t end, size_t most) {
    for (; next < end && innermost->count < most; next++) {
        const struct named_frame *frame = symbols_frame(stack->symbols, stack->frames[next]);
        for (uint32_t i = 0; i < frame->count && innermost->count < most; i++) {
            struct innermost_line *line = &innermost->lines[innermost->count++];
            *line = (struct innermost_line){frame, &frame->symbols[i], line->skipped};
        }
    }
    return next;
}

/* Skips the frames between the innermost ones and the first Python line. A single frame is shown, because a note about
 * it takes a line, too. */
static size_t skip_to_python(struct innermost *innermost, const struct stack *stack, size_t next, size_t python) {
    size_t skipped = python - next;
    if (skipped == 1) return frames_add(innermost, stack, next, python, INNERMOST_LINES);
    innermost->lines[innermost->count].skipped = skipped;
    return python;
}

void innermost_of(struct innermost *innermost, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct stack stack = {image, symbols, NULL, 0};
    stack.frames = stack_all(image, node, &stack.count);
    *innermost = (struct innermost){.count = 0};
    size_t python = find_python(&stack, 0);
    size_t native = python < stack.count ? INNERMOST_BELOW_PYTHON : INNERMOST_NATIVE;
    size_t next = frames_add(innermost, &stack, 0, python, native);
    if (python < stack.count) next = skip_to_python(innermost, &stack, next, python);
    size_t most =
        innermost->count + INNERMOST_PYTHON < INNERMOST_LINES ? innermost->count + INNERMOST_PYTHON : INNERMOST_LINES;
    for (; python < stack.count && innermost->count < most; python = find_python(&stack, next))
        next = frames_add(innermost, &stack, python, python + 1, most);
    if (stack.count - next == 1) next = frames_add(innermost, &stack, next, stack.count, INNERMOST_LINES);
    innermost->more = stack.count - next;
}

static bool begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

static bool ends(const char *name, const char *with) {
    size_t length = strlen(name), end = strlen(with);
    return length >= end && strcasecmp(name + length - end, with) == 0;
}

bool innermost_is_allocator(const char *function) {
    return function && (begins(function, "operator new") || begins(function, "std::") ||
                        begins(function, "__gnu_cxx::") || ends(function, "malloc") || ends(function, "calloc") ||
                        ends(function, "realloc") || ends(function, "memalign"));
}

static bool find_caller(const struct stack *stack, struct innermost_line *line) {
    for (size_t i = 0; i < stack->count; i++) {
        const struct named_frame *frame = symbols_frame(stack->symbols, stack->frames[i]);
        for (uint32_t k = 0; k < frame->count; k++) {
            *line = (struct innermost_line){frame, &frame->symbols[k], 0};
            if (!innermost_is_allocator(frame->symbols[k].function)) return true;
        }
    }
    return false;
}

bool innermost_caller(struct innermost_line *line, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct stack stack = {image, symbols, NULL, 0};
    stack.frames = stack_all(image, node, &stack.count);
    size_t python = find_python(&stack, 0);
    if (!stack.count) return false;
    if (python < stack.count) {
        stack.frames += python;
        stack.count = 1;
    }
    if (!find_caller(&stack, line)) {
        const struct named_frame *frame = symbols_frame(symbols, stack.frames[0]);
        *line = (struct innermost_line){frame, &frame->symbols[0], 0};
    }
    return true;
}

struct text_line innermost_text(const struct innermost_line *line, int width) {
    struct text_line text;
    snprintf(text.s, sizeof text.s, "%s %.1000s", line->frame->python ? "py" : "  ",
             symbol_text(line->frame, line->symbol, width - 3).s);
    return text;
}

void innermost_print(const struct innermost *innermost, FILE *to, int indent) {
    enum { WIDTH = 100 };
    for (size_t i = 0; i < innermost->count; i++) {
        const struct innermost_line *line = &innermost->lines[i];
        if (line->skipped) fprintf(to, "%*s   … %zu frames\n", indent, "", line->skipped);
        fprintf(to, "%*s%s\n", indent, "", innermost_text(line, WIDTH - indent).s);
    }
    if (innermost->more) fprintf(to, "%*s   … %zu more\n", indent, "", innermost->more);
}
