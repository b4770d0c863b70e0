/* stacks.c — see stacks.h.
 *
 * A segment is a range of the image's array of words (ids of frames), and segments may overlap. So facts about a
 * segment are computed from running sums over all words. The number of marked words between two words is the difference
 * of two sums. The polynomial hash of all words in between is the later sum minus the earlier sum, which is first
 * multiplied by a power of the base. Work and memory therefore grow with the sizes of the tables only, even if nodes of
 * a hostile file share long segments. */
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t HASH_BASE = UINT64_C(0x9e3779b97f4a7c15);

struct segment stack_segment(const struct image *image, uint32_t node) {
    struct segment none = {NULL, 0};
    if (node >= image->node_count) return none;
    uint64_t at = image->nodes[node].segment;
    if (at >= image->word_count || image->words[at] > image->word_count - at - 1) return none;
    return (struct segment){image->words + at + 1, image->words[at]};
}

size_t stack_frames(const struct image *image, uint32_t node, uint32_t *frames, size_t most) {
    size_t count = 0;
    for (; node && node < image->node_count && count < most; node = image->nodes[node].parent) {
        struct segment segment = stack_segment(image, node);
        for (uint32_t i = segment.count; i-- && count < most;) frames[count++] = segment.frames[i];
    }
    return count;
}

const uint32_t *stack_all(const struct image *image, uint32_t node, size_t *count) {
    static uint32_t frames[STACK_FRAMES_MAX];
    *count = stack_frames(image, node, frames, STACK_FRAMES_MAX);
    return frames;
}

const struct snap_frame *stack_frame(const struct image *image, uint32_t frame) {
    return frame < image->frame_count ? &image->frames[frame] : NULL;
}

static bool is_python(const struct snap_frame *frame) { return frame->code && !(frame->code & SNAP_FRAME_INTERRUPTED); }

const struct snap_code *stack_frame_code(const struct image *image, const struct snap_frame *frame) {
    static const struct snap_code unknown;
    if (!is_python(frame)) return NULL;
    return frame->code <= image->code_count ? &image->codes[frame->code - 1] : &unknown;
}

const struct snap_module *stack_frame_module(const struct image *image, const struct snap_frame *frame) {
    if (is_python(frame) || frame->module == 0 || frame->module > image->module_count) return NULL;
    return &image->modules[frame->module - 1];
}

static uint64_t stacks_mix(uint64_t hash) {
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < length; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return stacks_mix(hash);
}

static uint64_t hash_string(const struct image *image, uint64_t hash, uint32_t string) {
    const char *text = image_string(image, string);
    return hash_bytes(hash, text, strlen(text));
}

static uint64_t module_hash(const struct image *image, const struct snap_module *module) {
    if (module->build_id_length && module->build_id_length <= sizeof module->build_id)
        return hash_bytes(1, module->build_id, module->build_id_length);
    return hash_string(image, 2, module->path);
}

static uint64_t frame_hash(const struct image *image, const uint64_t *modules, const struct snap_frame *frame) {
    const struct snap_code *code = stack_frame_code(image, frame);
    if (code) return stacks_mix(hash_string(image, hash_string(image, 3, code->name), code->file) ^ frame->line);
    const struct snap_module *module = stack_frame_module(image, frame);
    if (!module) return stacks_mix(frame->address + 4);
    return stacks_mix(modules[module - image->modules] ^ (frame->address - module->bias));
}

/* One hash for each frame, and a last one for an unknown frame. */
static uint64_t *frame_hashes(const struct image *image) {
    uint64_t *hashes = malloc((image->frame_count + 1) * sizeof *hashes);
    uint64_t *modules = malloc((image->module_count + 1) * sizeof *modules);
    for (size_t i = 0; modules && i < image->module_count; i++) modules[i] = module_hash(image, &image->modules[i]);
    for (size_t i = 0; hashes && modules && i < image->frame_count; i++)
        hashes[i] = frame_hash(image, modules, &image->frames[i]);
    if (hashes) hashes[image->frame_count] = stacks_mix(5);
    bool failed = !modules;
    free(modules);
    if (!failed) return hashes;
    free(hashes);
    return NULL;
}

static uint64_t stacks_power(uint64_t base, uint32_t exponent) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

/* For each word, the hash of all words before it, as if they were one stack. Only every EVERY-th of these hashes is
 * stored, because there may be many millions of words. */
struct word_sums {
    const struct image *image;
    uint64_t base, *frames, *stored;
};
enum { EVERY = 8 };

static uint64_t add_word(const struct word_sums *self, uint64_t sum, size_t word) {
    uint32_t frame = self->image->words[word];
    if (frame > self->image->frame_count) frame = (uint32_t)self->image->frame_count;
    return sum * self->base + self->frames[frame];
}

/* Takes over `frames`, the hashes of the frames. Returns 0, or -1: no memory. Call word_sums_end() whatever the result
 * is. */
static int word_sums_begin(struct word_sums *self, const struct image *image, uint64_t *frames, uint64_t base) {
    *self = (struct word_sums){image, base, frames, malloc((image->word_count / EVERY + 1) * sizeof *self->stored)};
    if (!frames || !self->stored) return -1;
    uint64_t sum = 0;
    for (size_t i = 0; i < image->word_count; i++) {
        if (i % EVERY == 0) self->stored[i / EVERY] = sum;
        sum = add_word(self, sum, i);
    }
    if (image->word_count % EVERY == 0) self->stored[image->word_count / EVERY] = sum;
    return 0;
}

static uint64_t sum_before(const struct word_sums *self, size_t word) {
    uint64_t sum = self->stored[word / EVERY];
    for (size_t i = word - word % EVERY; i < word; i++) sum = add_word(self, sum, i);
    return sum;
}

static void word_sums_end(struct word_sums *self) {
    free(self->frames);
    free(self->stored);
}

/* The hash of each node's path. Takes over `frames`, the hashes of the frames. NULL: no memory. */
static uint64_t *hash_paths(const struct image *image, uint64_t *frames, uint64_t base) {
    struct word_sums sums;
    uint64_t *hashes = calloc(image->node_count + 1, sizeof *hashes);
    if (word_sums_begin(&sums, image, frames, base) < 0 || !hashes) {
        word_sums_end(&sums);
        free(hashes);
        return NULL;
    }
    for (uint32_t node = 1; node < image->node_count; node++) {
        struct segment segment = stack_segment(image, node);
        uint64_t parent = hashes[image->nodes[node].parent];
        hashes[node] = parent;
        if (!segment.count) continue;
        size_t first = (size_t)(segment.frames - image->words);
        uint64_t factor = stacks_power(base, segment.count);
        hashes[node] = parent * factor + sum_before(&sums, first + segment.count) - sum_before(&sums, first) * factor;
    }
    word_sums_end(&sums);
    return hashes;
}

uint64_t *stack_hashes(const struct image *image) { return hash_paths(image, frame_hashes(image), HASH_BASE); }

/* With base 1 a path's hash is the sum of the hashes of its frames, and native frames add 0. */
uint64_t *stack_python_hashes(const struct image *image) {
    uint64_t *frames = frame_hashes(image);
    for (size_t i = 0; frames && i <= image->frame_count; i++)
        if (i == image->frame_count || !is_python(&image->frames[i])) frames[i] = 0;
    return hash_paths(image, frames, 1);
}

uint8_t *stack_marked(const struct image *image, const uint8_t *marks) {
    uint8_t *marked = calloc(image->node_count + 1, 1);
    uint32_t *before = malloc((image->word_count + 1) * sizeof *before); /* number of marked words before each word */
    if (!marked || !before) {
        free(marked);
        free(before);
        return NULL;
    }
    before[0] = 0;
    for (size_t i = 0; i < image->word_count; i++)
        before[i + 1] = before[i] + (image->words[i] < image->frame_count && marks[image->words[i]]);
    for (uint32_t node = 1; node < image->node_count; node++) {
        struct segment segment = stack_segment(image, node);
        size_t first = segment.count ? (size_t)(segment.frames - image->words) : 0;
        marked[node] = marked[image->nodes[node].parent] || before[first + segment.count] != before[first];
    }
    free(before);
    return marked;
}
