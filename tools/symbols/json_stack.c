/* json_stack.c — call stacks in JSON; see json_stack.h. */
#include "tools/symbols/json_stack.h"
#include "tools/views/stacks.h"

#include <stdlib.h>

struct rendered {
    char *text;
    size_t length;
};

struct json_stacks {
    const struct image *image;
    struct symbols *symbols;
    struct rendered *frames; /* by frame id */
    struct json json;        /* renders into memory */
    uint32_t ids[STACK_FRAMES_MAX];
};

struct json_stacks *json_stacks_begin(const struct image *image, struct symbols *symbols) {
    struct json_stacks *stacks = calloc(1, sizeof *stacks);
    if (!stacks) return NULL;
    stacks->image = image;
    stacks->symbols = symbols;
    stacks->frames = calloc(image->frame_count + 1, sizeof *stacks->frames);
    if (stacks->frames) return stacks;
    json_stacks_end(stacks);
    return NULL;
}

void json_stacks_end(struct json_stacks *stacks) {
    if (!stacks) return;
    for (size_t i = 0; stacks->frames && i < stacks->image->frame_count; i++) free(stacks->frames[i].text);
    free(stacks->frames);
    free(stacks);
}

static void put_symbol(struct json *json, const struct named_frame *frame, const struct symbol *symbol) {
    json_object(json, NULL);
    json->one_line = true;
    json_string(json, "function", symbol->function);
    json_string(json, "file", symbol->file);
    if (symbol->line)
        json_number(json, "line", symbol->line);
    else
        json_null(json, "line");
    json_string(json, "module", frame->module);
    json_string(json, "kind", frame->python ? "python" : "native");
    json_end_object(json);
    json->one_line = false;
}

static const struct rendered *json_stack_render(struct json_stacks *stacks, uint32_t id, int depth) {
    static const struct rendered none;
    struct json *json = &stacks->json;
    if (id >= stacks->image->frame_count) return &none;
    struct rendered *to = &stacks->frames[id];
    if (to->text) return to;
    json->out = open_memstream(&to->text, &to->length);
    if (!json->out) return &none;
    json->depth = depth;
    json->some = false;
    const struct named_frame *frame = symbols_frame(stacks->symbols, id);
    for (uint32_t i = 0; i < frame->count; i++) put_symbol(json, frame, &frame->symbols[i]);
    json_flush(json);
    fclose(json->out);
    return to;
}

void json_stack(struct json *json, struct json_stacks *stacks, uint32_t node, uint32_t module) {
    static const struct symbol unknown;
    const struct named_frame caller = {.module = image_module(stacks->image, module)};
    size_t count = stack_frames(stacks->image, node, stacks->ids, STACK_FRAMES_MAX);
    json_array(json, "stack");
    for (size_t i = 0; i < count; i++) {
        const struct rendered *frame = json_stack_render(stacks, stacks->ids[i], json->depth);
        json_raw(json, frame->text, frame->length);
    }
    if (!count && caller.module) put_symbol(json, &caller, &unknown);
    json_end_array(json);
}
