/* cuda_parts.c — see cuda_parts.h. Parts never overlap: when a range is assigned again, its bytes first go back from
 * their old parts to the block. */
#include "preload/serve/cuda_parts.h"

#include <errno.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/count/owner.h"
#include "preload/vram/vram_owned.h"
#include "preload/base/forked.h"

static struct lock assigning;

/* --- finding the block that contains a range --- */

struct search {
    uint64_t start, end;
    struct snap_cuda_block block;
};

static bool can_have_parts(uint32_t kind) {
    return kind == SNAP_CUDA_DEVICE_MEMORY || kind == SNAP_CUDA_POOL_MEMORY || kind == SNAP_CUDA_MANAGED ||
           kind == SNAP_CUDA_PINNED;
}

static bool cuda_parts_holds(const struct snap_cuda_block *block, uint64_t start, uint64_t end) {
    return start >= block->address && end <= block->address + block->size && can_have_parts(block->kind);
}

static void look_at_block(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    struct search *search = context;
    if (space == CUDA_ADDRESS && cuda_parts_holds(block, search->start, search->end)) search->block = *block;
}

static bool find_block(struct search *search) {
    if (cuda_blocks_find(CUDA_ADDRESS, search->start, &search->block) &&
        cuda_parts_holds(&search->block, search->start, search->end))
        return true;
    search->block = (struct snap_cuda_block){0};
    cuda_blocks_all(look_at_block, search);
    return search->block.size != 0;
}

/* --- ending parts --- */

struct ending {
    uint64_t block, start, end; /* start, end: the range that is taken from all parts of `block` */
    uint32_t keep; /* id of the block's counts, which get the bytes; 0: the parts are freed with the block */
    uint64_t bytes;
};

static void cuda_parts_add_part(const struct snap_cuda_block *like, uint64_t start, uint64_t end, uint32_t count) {
    struct snap_cuda_block part = *like;
    part.address = start;
    part.size = end - start;
    part.pool = like->pool;
    part.count = count;
    part.flags = SNAP_CUDA_PART;
    cuda_blocks_add(CUDA_PART, &part);
}

/* Takes the range of `ending` out of a part, and counts the removed bytes for the block again. What is left of the
 * part, in front of the range or behind it, stays a part. */
static void cuda_parts_cut(const struct snap_cuda_block *part, const struct ending *ending, uint32_t block_count) {
    uint64_t part_end = part->address + part->size;
    uint64_t start = part->address > ending->start ? part->address : ending->start;
    uint64_t end = part_end < ending->end ? part_end : ending->end;
    uint32_t model = cuda_counts_model(part->count);
    uint32_t back = cuda_counts_shift(part->count, cuda_counts_model(block_count), end - start, 0);
    cuda_counts_let_go(back); /* the block uses this record already, and cuda_counts_shift has added one more use */
    if (part->address < start) {
        uint32_t same = cuda_counts_shift(part->count, model, 0, 0);
        cuda_parts_add_part(part, part->address, start, same);
    }
    if (end < part_end) {
        uint32_t same = cuda_counts_shift(part->count, model, 0, 0);
        cuda_parts_add_part(part, end, part_end, same);
    }
    cuda_counts_let_go(part->count);
}

static void end_part(enum cuda_space space, const struct snap_cuda_block *record, void *context) {
    struct ending *ending = context;
    struct snap_cuda_block part;
    if (space != CUDA_PART || record->pool != ending->block) return;
    if (record->address >= ending->end || record->address + record->size <= ending->start) return;
    if (!cuda_blocks_take(CUDA_PART, record->address, &part)) return;
    ending->bytes += part.size;
    if (ending->keep)
        cuda_parts_cut(&part, ending, ending->keep);
    else
        cuda_counts_remove(part.count, part.size, 0);
}

uint64_t cuda_parts_end(const struct snap_cuda_block *block) {
    struct ending ending = {.block = block->address, .end = UINT64_MAX};
    cuda_blocks_all(end_part, &ending);
    return ending.bytes;
}

static void cuda_parts_clear(const struct snap_cuda_block *block, uint64_t start, uint64_t end) {
    struct ending ending = {.block = block->address, .start = start, .end = end, .keep = block->count};
    if (block->flags & SNAP_CUDA_PARTS) cuda_blocks_all(end_part, &ending);
}

/* --- assigning blocks and parts to a model --- */

static int assign_whole(struct snap_cuda_block *block, uint32_t model) {
    uint32_t to = cuda_counts_shift(block->count, model, block->size, 1);
    if (!to) return -ENOMEM;
    cuda_counts_let_go(block->count);
    __atomic_store_n(&block->count, to, __ATOMIC_RELEASE);
    return 0;
}

static int assign_part(struct snap_cuda_block *block, uint64_t start, uint64_t end, uint32_t model) {
    struct snap_cuda_block like = *block;
    uint32_t to = cuda_counts_shift(block->count, model, end - start, 0);
    if (!to) return -ENOMEM;
    __atomic_fetch_or(&block->flags, SNAP_CUDA_PARTS, __ATOMIC_RELAXED);
    like.pool = block->address;
    cuda_parts_add_part(&like, start, end, to);
    return 0;
}

static int assign_cleared(struct snap_cuda_block *block, uint64_t start, uint64_t end, uint32_t model) {
    cuda_parts_clear(block, start, end);
    if (start == block->address && end == start + block->size) return assign_whole(block, model);
    if (model == cuda_counts_model(block->count)) return 0;
    return assign_part(block, start, end, model);
}

/* Assigns a range within one block. If there is no memory for the counts, nothing changes. */
static int assign_in(struct snap_cuda_block *block, uint64_t start, uint64_t end, uint32_t model) {
    uint32_t reserved = cuda_counts_shift(block->count, model, 0, 0);
    if (!reserved) return -ENOMEM;
    int result = assign_cleared(block, start, end, model);
    cuda_counts_let_go(reserved);
    return result;
}

/* The bytes of all parts of a block, and the model that has the parts. several: more than one model has parts. */
struct share {
    uint64_t block, bytes;
    uint32_t model;
    bool several;
};

static void look_at_part(enum cuda_space space, const struct snap_cuda_block *record, void *context) {
    struct share *share = context;
    if (space != CUDA_PART || record->pool != share->block) return;
    uint32_t model = owner_final(cuda_counts_model(record->count));
    if (share->bytes && model != share->model) share->several = true;
    share->model = model;
    share->bytes += record->size;
}

struct owners_of {
    uint64_t block;
    uint32_t *owners, count, capacity;
};

static void cuda_parts_add_owner(enum cuda_space space, const struct snap_cuda_block *record, void *context) {
    struct owners_of *self = context;
    bool is_part = space == CUDA_PART && record->pool == self->block;
    if (!is_part && (space != CUDA_ADDRESS || record->address != self->block)) return;
    uint32_t model = owner_final(cuda_counts_model(record->count)), i = 0;
    while (i < self->count && self->owners[i] != model) i++;
    if (model && i == self->count && i < self->capacity) self->owners[self->count++] = model;
}

uint32_t cuda_parts_owners(uint64_t block, uint32_t *owners, uint32_t capacity) {
    struct owners_of of = {block, owners, 0, capacity};
    cuda_blocks_all(cuda_parts_add_owner, &of);
    return of.count;
}

/* Notes which owner has a served block. If one model has all of it, the block moves with that model; otherwise it does
 * not move. */
static void tell_server(struct vram_block *served, const struct snap_cuda_block *block) {
    struct share share = {.block = block->address};
    if (block->flags & SNAP_CUDA_PARTS) cuda_blocks_all(look_at_part, &share);
    bool all = share.bytes == block->size && !share.several;
    uint32_t model = all ? share.model : owner_final(cuda_counts_model(block->count));
    vram_owned_assign(served, model, share.bytes && !all);
}

/* Assigns a range of the block at `address`. Holds the block's record meanwhile, so a thread that frees the block
 * waits, and then finds all parts of the block. */
static int assign_of(uint64_t address, struct vram_block *served, uint64_t start, uint64_t end, uint32_t model) {
    struct cuda_hold hold;
    struct snap_cuda_block *block = cuda_blocks_hold(CUDA_ADDRESS, address, &hold);
    if (!block) return -ENXIO;
    int result = cuda_parts_holds(block, start, end) ? assign_in(block, start, end, model) : -ENXIO;
    if (!result && served) tell_server(served, block);
    cuda_blocks_let_go(&hold);
    return result;
}

/* Finds the block that contains the range, and assigns the range. Meanwhile a served block is held so that no thread
 * moves it, because a move reads which owner has the block. If the block is off its device, returns -EBUSY: the owner
 * that put the block away must bring it back, so the block cannot change its owner. */
static int cuda_parts_assign_range(uint64_t start, uint64_t end, uint32_t model) {
    struct search search = {.start = start, .end = end};
    struct vram_block *served;
    if (!find_block(&search)) return -ENXIO;
    if (!vram_owned_hold(search.block.address, &served)) return -EBUSY;
    int result = assign_of(search.block.address, served, start, end, model);
    if (served) vram_owned_let_go(served);
    return result;
}

int cuda_parts_assign(uint64_t start, uint64_t length, uint32_t model) {
    if (!cuda_counts_begun()) return -ENXIO;
    if (!lock_wait(&assigning)) return -EBUSY;
    int result = cuda_parts_assign_range(start, start + length, model);
    lock_let_go(&assigning);
    return result;
}

static void cuda_parts_abandon(void) { assigning = (struct lock){0}; }
FORKED(cuda_parts_abandon);
