/* stacks.h — the call stacks of an image.
 * In: the sections NODE, SEGMENT, FRAME and CODE of the file. Out: the frames of one stack on request, and figures of
 * all stacks in one pass over the nodes. It never expands all stacks: a million stacks that share segments would have a
 * hundred million frames. */
#ifndef MEMSTOW_STACKS_H
#define MEMSTOW_STACKS_H

#include "tools/image/image.h"

/* The most frames of one stack. Stacks that memstow records are shorter. Longer stacks, of a hostile file, are cut. */
enum { STACK_FRAMES_MAX = 1 << 19 };

/* The frame ids of a node's own segment, outermost first. */
struct segment {
    const uint32_t *frames;
    uint32_t count;
};
struct segment stack_segment(const struct image *image, uint32_t node);

/* Copies the frame ids of a stack, innermost first, at most `most` of them. Returns their number. */
size_t stack_frames(const struct image *image, uint32_t node, uint32_t *frames, size_t most);

/* All frame ids of a stack, innermost first. They are valid until the next call. */
const uint32_t *stack_all(const struct image *image, uint32_t node, size_t *count);

/* The record of a frame. NULL: the file does not have that frame. */
const struct snap_frame *stack_frame(const struct image *image, uint32_t frame);
/* The function of a Python frame; NULL for a native frame. */
const struct snap_code *stack_frame_code(const struct image *image, const struct snap_frame *frame);
/* The module of a native frame, or NULL. */
const struct snap_module *stack_frame_module(const struct image *image, const struct snap_frame *frame);

/* For each node, a hash of its path: of all frames of the stack that ends there. It is made of names, build ids, lines
 * and offsets in modules, not of ids or addresses of one file. So equal paths in two files have equal hashes. The empty
 * stack has 0. NULL: no memory. */
uint64_t *stack_hashes(const struct image *image);
/* For each node, a hash of the Python frames of its path, whatever their order. A path without Python frames has 0.
 * NULL: no memory. */
uint64_t *stack_python_hashes(const struct image *image);

/* For each node: whether its path has a marked frame. `marks` has one byte a frame. NULL: no memory. */
uint8_t *stack_marked(const struct image *image, const uint8_t *marks);

#endif
