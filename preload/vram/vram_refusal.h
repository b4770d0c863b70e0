/* vram_refusal.h — why device memory stays where it is.
 * In: blocks whose addresses other devices, processes or libraries know. Out: a reason, and its text for the trace. Any
 * thread may call. */
#ifndef MEMSTOW_VRAM_REFUSAL_H
#define MEMSTOW_VRAM_REFUSAL_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

enum vram_refusal {
    VRAM_REFUSAL_DONE,
    VRAM_REFUSAL_EMPTY,    /* the owner has no memory that could move in this direction (off its device, or back) */
    VRAM_REFUSAL_CAPTURE,  /* a stream is in capture */
    VRAM_REFUSAL_BUSY,     /* a kernel did not end in time */
    VRAM_REFUSAL_AT_WORK,  /* another move, pinning ahead of need, or a call that ends a context is in progress */
    VRAM_REFUSAL_NOT_IDLE, /* nobody has declared the owner idle */
    VRAM_REFUSAL_CONTEXTS, /* there are more contexts than a move can wait for */
    VRAM_REFUSAL_CANCELLED,
    VRAM_REFUSAL_NO_THREAD, /* the caller cannot call the driver, and the device thread (vram_thread.h) is not there */
    /* the program got the memory's handle, and may map or export the memory elsewhere, as NCCL does */
    VRAM_REFUSAL_HANDLE,
    VRAM_REFUSAL_MULTICAST, /* bound to a multicast object */
    VRAM_REFUSAL_EXPORTED,  /* shared with another process or device */
    VRAM_REFUSAL_RDMA,      /* set up for direct access by other devices */
    VRAM_REFUSAL_WORKSPACE, /* a library uses it as a workspace, on behalf of all its callers */
    VRAM_REFUSAL_MIXED,     /* other owners have parts of the block */
    VRAM_REFUSAL_DRIVER,    /* the driver answered with an error */
    VRAM_REFUSAL_NO_MEMORY, /* the host has no memory for the backup, or the limit is reached */
    VRAM_REFUSAL_DISK_FULL, /* the disk is full, or the limit for files is reached */
    VRAM_REFUSAL_DISK_ERROR,
    VRAM_REFUSAL_DISK,    /* no directory can be used for the backup, or no file can be made or mapped in it */
    VRAM_REFUSAL_NO_VRAM, /* there is no device memory to which the block could come back */
    VRAM_REFUSAL_CHANGED, /* the copy differs from the original */
    VRAM_REFUSAL_AIMDO,   /* comfy-aimdo is loaded, which manages addresses itself */
    VRAM_REFUSAL_DEVICES, /* another device could not copy from the block */
    VRAM_REFUSAL_OLD,     /* the driver lacks a necessary function */
    VRAM_REFUSAL_OFF,     /* MEMSTOW_CUDA_MOVES is not set, so nothing is served */
    VRAM_REFUSAL_SMALL,   /* smaller than MEMSTOW_CUDA_MOVES, or not served for another reason (an explicit pool…) */
    VRAM_REFUSAL_KIND,    /* this kind of memory is never served */
    VRAM_REFUSALS
};

/* Notes why the block around this address never moves: others may know its address (IPC, NCCL, RDMA). A later reason
 * does not replace the first. */
void vram_refusal_note(uint64_t address, enum vram_refusal why);
/* Why this block does not move: others know its address, or have parts of it. VRAM_REFUSAL_DONE: it can move. */
enum vram_refusal vram_refusal_of(const struct vram_block *block);

const char *vram_refusal_text(uint32_t refusal);
/* Whether the refusal concerns single blocks, which stay when the rest moves. */
bool vram_refusal_is_of_blocks(uint32_t refusal);

#pragma GCC visibility pop

#endif
