/* innermost.c — the few lines of a call stack that say where an allocation comes from; see innermost.h. */
#include "innermost.h"
#include "stacks.h"

#include <stdio.h>
#include <string.h>

bool innermost_is_python(const struct image *image, uint32_t id) {
    static const char import[] = "<frozen importlib";
    const struct snap_frame *frame = stack_frame(image, id);
    const struct snap_code *code = frame ? frame_code(image, frame) : NULL;
    return code && strncmp(image_string(image, code->file), import, sizeof import - 1) != 0;
}

struct stack {
    const struct image *image;
    struct symbols *symbols;
    const uint32_t *frames;
    size_t count;
};

/* The first Python frame from `from` on; `count` when there is none. */
static size_t find_python(const struct stack *stack, size_t from) {
    while (from < stack->count && !innermost_is_python(stack->image, stack->frames[from])) from++;
    return from;
}

/* Lines of the frames from `next` on, up to frame `end` or `most` lines in all; returns the frame after them. */
static size_t add(struct innermost *innermost, const struct stack *stack, size_t next, size_t end, size_t most) {
    for (; next < end && innermost->count < most; next++) {
        const struct named_frame *frame = symbols_frame(stack->symbols, stack->frames[next]);
        for (uint32_t i = 0; i < frame->count && innermost->count < most; i++)
            innermost->lines[innermost->count++] = (struct innermost_line){frame, &frame->symbols[i], 0};
    }
    return next;
}

void innermost_of(struct innermost *innermost, const struct image *image, struct symbols *symbols, uint32_t node) {
    static uint32_t frames[STACK_FRAMES_MAX];
    struct stack stack = {image, symbols, frames, stack_frames(image, node, frames, STACK_FRAMES_MAX)};
    innermost->count = 0;
    size_t python = find_python(&stack, 0);
    size_t native = python < stack.count ? INNERMOST_BELOW_PYTHON : INNERMOST_NATIVE;
    size_t next = add(innermost, &stack, 0, python, native);
    size_t most = innermost->count + INNERMOST_PYTHON;
    for (size_t line = innermost->count; python < stack.count && innermost->count < most; line = INNERMOST_LINES) {
        size_t skipped = python - next;
        next = add(innermost, &stack, python, python + 1, most);
        if (line < innermost->count) innermost->lines[line].skipped = skipped;
        python = find_python(&stack, next);
    }
    innermost->more = stack.count - next;
}

struct text_line innermost_text(const struct innermost_line *line, int width) {
    struct text_line text;
    snprintf(text.s, sizeof text.s, "%s %.1000s", line->frame->python ? "py" : "  ",
             symbol_text(line->frame, line->symbol, width - 3).s);
    return text;
}
