/* cupti.c — see cupti.h. */
#include "preload/life/cupti.h"

#include <errno.h>
#include <stdbool.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/ledger/ledger.h"
#include "preload/life/process.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_table.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int memstow_cupti_begin(uint32_t seam, struct cupti_sections *out) {
    /* In a forked child that has no ledger yet, process_tracked begins one. */
    if (seam != CUPTI_SEAM || !process_tracked()) return -EINVAL;
    out->head = ledger_section(SNAP_CUPTI, sizeof *out->head, 1, 0);
    out->differences = ledger_section(SNAP_CUPTI_BLOCK, sizeof *out->differences, SNAP_CUPTI_BLOCKS, 0);
    return out->head && out->differences ? 0 : -ENOMEM;
}

/* Whether CUPTI has a record of the block at the same address. For a block that memstow serves, CUPTI has only records
 * of the pieces (pass_on_served). */
static bool is_compared(enum cuda_space space, const struct snap_cuda_block *block) {
    struct vram_found served;
    if (space == CUDA_PHYSICAL) return block->kind == SNAP_CUDA_PHYSICAL;
    if (space == CUDA_POOL) return true;
    if (space == CUDA_MAPPING || space == CUDA_RANGE)
        return block->kind != SNAP_CUDA_BACKUP && block->kind != SNAP_CUDA_BUFFER;
    if (space != CUDA_ADDRESS || vram_memory_find(block->address, &served)) return false;
    return block->kind == SNAP_CUDA_DEVICE_MEMORY || block->kind == SNAP_CUDA_POOL_MEMORY ||
           block->kind == SNAP_CUDA_MANAGED || block->kind == SNAP_CUDA_PINNED;
}

struct visit {
    cupti_visit *visit;
    void *context;
};

static void pass_on(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    const struct visit *to = context;
    if (is_compared(space, block)) to->visit(space, block, to->context);
}

/* Calls to->visit for all that a served block consists of (vram_table.h): an address range, physical pieces and their
 * mappings. The ledger does not list these. */
static void pass_on_served(const struct vram_block *served, const struct visit *to) {
    struct snap_cuda_block is = {
        .kind = SNAP_CUDA_RESERVED, .device = (uint16_t)served->device, .address = served->at, .size = served->size};
    if (served->at) to->visit(CUDA_RANGE, &is, to->context);
    for (uint32_t i = 0; i < served->made; i++) {
        is.size = vram_block_piece_bytes(served, i);
        is.kind = SNAP_CUDA_PHYSICAL;
        is.stream = served->memory[i];
        to->visit(CUDA_PHYSICAL, &is, to->context);
        is.kind = SNAP_CUDA_MAPPING;
        is.address = served->at + i * served->piece;
        if (i < served->mapped) to->visit(CUDA_MAPPING, &is, to->context);
    }
}

EXPORTED void memstow_cupti_blocks(cupti_visit *visit, void *context) {
    struct visit to = {visit, context};
    cuda_blocks_all(pass_on, &to);
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next) pass_on_served(block, &to);
    vram_table_let_go();
}
