/* assign.c — see assign.h. What a block is, hook_host.c knows; here is what it is counted at. */
#include "assign.h"

#include <errno.h>

#include "account.h"
#include "cuda_parts.h"
#include "host.h"
#include "mappings.h"
#include "parts.h"
#include "pin.h"
#include "site.h"

static bool shift_allocated(uint32_t from, uint32_t to, uint64_t bytes) {
    return from == to || account_shift(from, to, bytes, 0, false);
}

static void give_back(const struct part *part, void *rest) {
    shift_allocated(part->site, *(const uint32_t *)rest, part->length);
}

static bool assign_whole(struct host_block *block, uint32_t model) {
    uint32_t from = block->site;
    if (block->parts) parts_take(block->start, give_back, &from);
    block->parts = false;
    block->site = site_of_model(from, model);
    if (block->site != from && !account_shift(from, block->site, block->size, 1, false)) block->site = from;
    host_change(block);
    return block->site != from || site_of_model(from, model) == from;
}

static bool assign_part(struct host_block *block, uint64_t start, uint64_t length, uint32_t model) {
    struct part part = {block->start, start, length, site_of_model(block->site, model)};
    block->parts = true;
    host_change(block);
    return parts_add(&part, block->site, shift_allocated);
}

static int assign_in(struct host_block *block, uint64_t start, uint64_t length, uint32_t model) {
    enum pin pin = pin_begin((uintptr_t)__builtin_frame_address(0));
    bool whole = length == block->size;
    bool done = whole ? assign_whole(block, model) : assign_part(block, start, length, model);
    pin_end(pin);
    return done ? 0 : -ENOMEM;
}

int assign_range(uintptr_t start, uint64_t length, uint32_t model) {
    struct host_block block;
    int on_device = cuda_parts_assign(start, length, model);
    if (on_device != -ENXIO) return on_device;
    if (host_find(start, &block) && length <= block.size - (start - block.start))
        return assign_in(&block, start - block.start, length, model);
    return mappings_assign(start, length, model);
}

/* --- when a block ends --- */

static void count_part_out(const struct part *part, void *rest) {
    account_shift(*(const uint32_t *)rest, part->site, part->length, 0, true);
}

void assign_end_parts(uintptr_t block, uint32_t site) { parts_take(block, count_part_out, &site); }
