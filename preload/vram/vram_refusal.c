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
        [VRAM_REFUSAL_AT_WORK] = "another move is on",
        [VRAM_REFUSAL_NOT_IDLE] = "the owner is not declared idle",
        [VRAM_REFUSAL_HANDLE] = "its handle was handed out (cuMemRetainAllocationHandle): others may map or export it",
        [VRAM_REFUSAL_MULTICAST] = "it is bound to a multicast object",
        [VRAM_REFUSAL_EXPORTED] = "it was exported to another process or device",
        [VRAM_REFUSAL_RDMA] = "it was set up for other devices' direct access (GPUDirect RDMA)",
        [VRAM_REFUSAL_WORKSPACE] = "a library keeps its workspace there",
        [VRAM_REFUSAL_MIXED] = "parts of a block are other owners'",
        [VRAM_REFUSAL_DRIVER] = "the driver answered with an error",
        [VRAM_REFUSAL_CONTEXTS] = "there are more contexts than can be waited for",
        [VRAM_REFUSAL_CANCELLED] = "it was told to end",
        [VRAM_REFUSAL_NO_MEMORY] = "no host memory to move it to",
        [VRAM_REFUSAL_DISK_FULL] = "the disk is too full for it",
        [VRAM_REFUSAL_DISK_ERROR] = "the disk answered with an error",
        [VRAM_REFUSAL_DISK] = "there is no directory that will do to move it to",
        [VRAM_REFUSAL_NO_VRAM] = "no device memory to bring it back to",
        [VRAM_REFUSAL_CHANGED] = "it was written to while it was copied",
        [VRAM_REFUSAL_AIMDO] = "comfy-aimdo is loaded, which manages device memory itself",
        [VRAM_REFUSAL_DEVICES] = "there is a device that could not copy from it",
        [VRAM_REFUSAL_OLD] = "the driver lacks a function that it takes",
        [VRAM_REFUSAL_OFF] = "MEMSTOW_CUDA_MOVES is not set",
        [VRAM_REFUSAL_SMALL] =
            "below MEMSTOW_CUDA_MOVES, of an explicit pool, a library's, kept for IPC, or part of another's block",
        [VRAM_REFUSAL_KIND] = "managed, arrays, graphs, or mapped by the program",
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
