/* source.c — see source.h. Facts that CUPTI's records lack are left out. So a call stack has only one frame, which is
 * the address of the call, and no memory has an owner. Only one thread at a time may call these functions, except
 * source_lost and source_end. */
#include "cupti/source.h"

#include "preload/cuda/cuda_blocks.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/life/process.h"
#include "preload/count/site.h"
#include "cupti/pools.h"
#include "cupti/seen.h"
#include "cupti/vmm.h"

static enum cuda_space space_of(uint8_t kind) { return kind == SNAP_CUDA_ARRAY ? CUDA_ARRAY : CUDA_ADDRESS; }

static uint32_t count_in(const struct seen *seen, const struct cupti_memory *record) {
    return cuda_counts_add(site_of_address((uintptr_t)record->pc), 0, (enum snap_cuda_kind)seen->kind, seen->device,
                           seen->bytes);
}

/* Adds a block to the ledger. Its age counts from the arrival of its record, because CUPTI has another clock. */
static void source_add_block(const struct seen *seen, const struct cupti_memory *record) {
    if (!seen->kind) return;
    struct snap_cuda_block block = {.kind = seen->kind,
                                    .device = seen->device,
                                    .address = seen->address,
                                    .size = seen->bytes,
                                    .birth_ns = os_now(),
                                    .context = seen->context,
                                    .stream = record->stream,
                                    .pool = record->is_async ? record->pool.address : 0,
                                    .count = count_in(seen, record),
                                    .thread = SNAP_THREAD_SHARED};
    if (!cuda_blocks_add(space_of(seen->kind), &block)) cuda_counts_remove(block.count, block.size, 1);
}

static void take_block(const struct seen *seen) {
    struct snap_cuda_block block;
    if (seen->kind && cuda_blocks_take(space_of(seen->kind), seen->address, &block))
        cuda_counts_remove(block.count, block.size, 1);
}

static void pass_block(const struct seen *seen, const struct cupti_memory *record) {
    if (seen->kind) cuda_counts_remove(count_in(seen, record), seen->bytes, 1);
}

/* --- pools in the ledger --- */

static void add_pool(const struct pool *pool) {
    struct snap_cuda_block block = {.kind = SNAP_CUDA_POOL,
                                    .device = pool->device,
                                    .address = pool->address,
                                    .birth_ns = os_now(),
                                    .thread = SNAP_THREAD_SHARED};
    cuda_blocks_add(CUDA_POOL, &block);
}

static void take_pool(const struct pool *pool) {
    struct snap_cuda_block block;
    cuda_blocks_take(CUDA_POOL, pool->address, &block);
}

/* Notes the figures of a pool that the program did not make. Such a pool is the default pool of its device. */
static void note_pool(const struct pool *pool) {
    struct snap_cuda_device *device = cuda_counts_device(pool->device);
    if (!device) return;
    os_store(&device->pool_reserved, pool->reserved);
    os_store(&device->pool_used, pool->used);
}

bool source_begin(struct cupti_sections *sections) {
    static const struct seen_told told = {source_add_block, take_block, pass_block};
    static const struct pools_told pools = {add_pool, take_pool, note_pool};
    process_is_from_cupti();
    if (!process_begin() || memstow_cupti_begin(CUPTI_SEAM, sections) < 0) return false;
    cuda_counts_head();
    vmm_count(true);
    seen_tell(&told);
    pools_tell(&pools);
    return true;
}

void source_lost(uint64_t records) {
    __atomic_fetch_add(&ledger_head->lost[SNAP_LOST_CUDA], records, __ATOMIC_RELAXED);
}

void source_end(bool quick) { process_end(quick ? SNAP_ABRUPT_EXIT : SNAP_EXITED); }
