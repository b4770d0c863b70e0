/* cupti.c — see cupti.h. */
#include "cupti.h"

#include <errno.h>
#include <stdbool.h>

#include "cuda_blocks.h"
#include "ledger.h"
#include "process.h"
#include "stow_cuda.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int memstow_cupti_begin(uint32_t seam, struct cupti_place *out) {
    if (seam != CUPTI_SEAM || !process_tracked()) return -EINVAL; /* a forked child's ledger is its own */
    out->head = ledger_section(SNAP_CUPTI, sizeof *out->head, 1, 0);
    out->differences = ledger_section(SNAP_CUPTI_BLOCK, sizeof *out->differences, SNAP_CUPTI_BLOCKS, 0);
    return out->head && out->differences ? 0 : -ENOMEM;
}

/* What CUPTI has records of, with the same addresses: not what is served from physical memory. */
static bool is_compared(enum cuda_space space, const struct snap_cuda_block *block) {
    struct stow_cuda_found served;
    if (space != CUDA_ADDRESS || stow_cuda_find(block->address, &served)) return false;
    return block->kind == SNAP_CUDA_DEVICE_MEMORY || block->kind == SNAP_CUDA_POOL_MEMORY ||
           block->kind == SNAP_CUDA_MANAGED || block->kind == SNAP_CUDA_PINNED;
}

struct visit {
    cupti_visit *visit;
    void *context;
};

static void pass_on(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    const struct visit *to = context;
    if (is_compared(space, block)) to->visit(block, to->context);
}

EXPORTED void memstow_cupti_blocks(cupti_visit *visit, void *context) {
    cuda_blocks_all(pass_on, &(struct visit){visit, context});
}
