/* vram_refusal.c — see vram_refusal.h. */
#include "preload/vram/vram_refusal.h"

#include "preload/vram/vram_table.h"

bool vram_refusal_is_of_blocks(uint32_t refusal) {
    return refusal >= VRAM_REFUSAL_HANDLE && refusal <= VRAM_REFUSAL_MIXED;
}

const char *vram_refusal_text(uint32_t refusal) {
    static const char *const texts[VRAM_REFUSALS] = {
        [VRAM_REFUSAL_DONE] = "done",
        [VRAM_REFUSAL_EMPTY] = "it has no device memory that can move",
        [VRAM_REFUSAL_CAPTURE] = "a stream is being captured",
        [VRAM_REFUSAL_BUSY] = "a kernel did not end in time",
        [VRAM_REFUSAL_AT_WORK] = "another move, or a call that ends a context, is in progress",
        [VRAM_REFUSAL_NOT_IDLE] = "the owner is not declared idle",
        [VRAM_REFUSAL_HANDLE] = "its handle was handed out (cuMemRetainAllocationHandle): others may map or export it",
        [VRAM_REFUSAL_MULTICAST] = "it is bound to a multicast object",
        [VRAM_REFUSAL_EXPORTED] = "it was exported to another process or device",
        [VRAM_REFUSAL_RDMA] = "it was set up for other devices' direct access (GPUDirect RDMA)",
        [VRAM_REFUSAL_WORKSPACE] = "a library keeps its workspace there",
        [VRAM_REFUSAL_MIXED] = "parts of a block belong to other owners",
        [VRAM_REFUSAL_DRIVER] = "the driver answered with an error",
        [VRAM_REFUSAL_CONTEXTS] = "there are more contexts than can be waited for",
        [VRAM_REFUSAL_CANCELLED] = "the move was cancelled",
        [VRAM_REFUSAL_NO_THREAD] = "memstow has no thread that could call the driver",
        [VRAM_REFUSAL_NO_MEMORY] = "no host memory to move it to",
        [VRAM_REFUSAL_DISK_FULL] = "the disk is too full for it",
        [VRAM_REFUSAL_DISK_ERROR] = "the disk answered with an error",
        [VRAM_REFUSAL_DISK] = "there is no usable directory to move it to",
        [VRAM_REFUSAL_NO_VRAM] = "no device memory to bring it back to",
        [VRAM_REFUSAL_CHANGED] = "it was written to while it was copied",
        [VRAM_REFUSAL_AIMDO] = "comfy-aimdo is loaded, which manages device memory itself",
        [VRAM_REFUSAL_DEVICES] = "another device could not copy from it",
        [VRAM_REFUSAL_OLD] = "the driver lacks a function that memstow needs",
        [VRAM_REFUSAL_OFF] = "MEMSTOW_CUDA_MOVES is not set",
        [VRAM_REFUSAL_SMALL] =
            ("it is smaller than MEMSTOW_CUDA_MOVES, or it is in an explicit pool, made by a library, "
             "kept for IPC, allocated outside of the model's load phases, or in a block of another owner"),
        [VRAM_REFUSAL_KIND] = "it is managed memory, an array, memory of a graph, or mapped by the program",
    };
    return refusal < VRAM_REFUSALS ? texts[refusal] : "unknown";
}

void vram_refusal_note(uint64_t address, enum vram_refusal why) {
    if (!vram_table_count() || !vram_table_enter()) return;
    struct vram_block *block = vram_table_around(address);
    if (block && !block->refused) block->refused = (uint8_t)why;
    vram_table_let_go();
}

enum vram_refusal vram_refusal_of(const struct vram_block *block) {
    if (block->refused) return (enum vram_refusal)block->refused;
    return block->mixed ? VRAM_REFUSAL_MIXED : VRAM_REFUSAL_DONE;
}
