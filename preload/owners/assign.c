/* assign.c — see assign.h. blocks/host.c finds the block; this file changes where it is counted. */
#include "preload/owners/assign.h"

#include <errno.h>

#include "preload/count/account.h"
#include "preload/serve/cuda_parts.h"
#include "preload/blocks/host.h"
#include "preload/base/lock.h"
#include "preload/blocks/mappings.h"
#include "preload/blocks/parts.h"
#include "preload/count/pin.h"
#include "preload/count/site.h"

/* How often an assignment is tried while another thread holds a lock for long. Each try waits at least a tenth of a
 * second. */
enum { TRIES = 50 };

static bool shift_allocated(uint32_t from, uint32_t to, uint64_t bytes) {
    return from == to || account_shift(from, to, bytes, 0, false);
}

static const struct parts_counts counts = {.reserve = account_shift_reserve, .shift = shift_allocated};

/* Assigns a whole block to a model. False: there is no memory, and nothing has changed. Everything that may fail comes
 * before the first count moves. */
static bool assign_whole(struct host_block *block, uint32_t model) {
    uint32_t from = block->site, to;
    if (!site_of_model(from, model, &to)) return false;
    if (to != from && !(account_shift_reserve(from) && account_shift_reserve(to))) return false;
    if (block->parts && !parts_join(block->start, from, &counts)) return false;
    if (to != from) account_shift(from, to, block->size, 1, false);
    block->parts = false;
    block->site = to;
    host_change(block);
    return true;
}

/* Assigns a part of a block to a model. The mark `parts` is set in the block first: without it, a thread that frees the
 * block would not look for parts. The mark without any part does no harm. */
static bool assign_part(struct host_block *block, uint64_t start, uint64_t length, uint32_t model) {
    struct part part = {block->start, start, length, 0};
    if (!site_of_model(block->site, model, &part.site)) return false;
    block->parts = true;
    host_change(block);
    return parts_add(&part, block->site, &counts);
}

static int assign_in(struct host_block *block, uint64_t start, uint64_t length, uint32_t model) {
    enum pin pin = pin_begin((uintptr_t)__builtin_frame_address(0));
    bool whole = length == block->size;
    bool done = whole ? assign_whole(block, model) : assign_part(block, start, length, model);
    pin_end(pin);
    return done ? 0 : -ENOMEM;
}

static int try_to_assign(uintptr_t start, uint64_t length, uint32_t model) {
    struct host_block block;
    int on_device = cuda_parts_assign(start, length, model);
    if (on_device != -ENXIO) return on_device;
    if (host_find(start, &block) && length <= block.size - (start - block.start))
        return assign_in(&block, start - block.start, length, model);
    return mappings_assign(start, length, model);
}

/* If a try gave up waiting for a lock, another thread held the lock for long, perhaps because it made the ledger grow
 * and waited for the disk. That is no reason to refuse the assignment, so it is tried again. */
int assign_range(uintptr_t start, uint64_t length, uint32_t model) {
    int result = -ENOMEM;
    uint32_t seen;
    for (int i = 0; i < TRIES && (result == -ENOMEM || result == -EBUSY); i++) {
        seen = lock_given_up();
        result = try_to_assign(start, length, model);
        if (lock_given_up() == seen) break;
    }
    return result;
}

/* --- when a block is freed --- */

static void count_part_out(const struct part *part, void *rest) {
    account_shift(*(const uint32_t *)rest, part->site, part->length, 0, true);
}

void assign_end_parts(uintptr_t block, uint32_t site) { parts_take(block, count_part_out, &site); }
