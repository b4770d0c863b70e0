/* vram_memory.h — device memory that memstow serves (makes in place of the driver): allocating it, freeing it, finding
 * it.
 * In: requests of the program that are to be served, frees of served memory, addresses. Out: the driver's results;
 * blocks. Any thread may call, and no capture is broken. A thread that frees a block waits while the block moves. */
#ifndef MEMSTOW_VRAM_MEMORY_H
#define MEMSTOW_VRAM_MEMORY_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

struct vram_request {
    uint64_t bytes;
    uint32_t device, owner;
    cuda_handle context; /* the thread's current context; for in_stream it may be the stream's context instead */
    bool in_stream;      /* requested from a pool: served in place of the pool */
    cuda_handle stream;  /* for in_stream: the stream that the program gave with the request */
};
/* Serves a request. Returns 0 and the address in *at, or the driver's error. After a failure, memory that the driver
 * did not take back at once is given back later. */
int vram_memory_serve(const struct vram_request *request, uint64_t *at);

/* Call it when the set of devices that may use served memory has changed (vram_reach.h). New devices get access to
 * mapped blocks now, and to stowed blocks when these come back. Returns 0, or the driver's first error: then access to
 * some blocks has not changed. It waits for moving blocks. */
int vram_memory_reach(void);

/* Free the block at `at`. *result: 0 or the driver's error. False: the block is not ours.
 * vram_memory_free works as cuMemFree does. In two cases it first waits until nothing runs in the block's context:
 * - A copy of the block may still go on.
 * - The block is live and was not requested from a pool.
 * During a capture it does not wait in these cases, and the block ends later.
 * vram_memory_free_in frees the block when the present work on a stream is done. */
bool vram_memory_free(uint64_t at, int *result);
bool vram_memory_free_in(uint64_t at, cuda_handle stream, int *result);
/* Gives back blocks that were freed and whose work is done by now, or keeps them as spares (vram_spare.h). */
void vram_memory_reap(void);
/* Does what vram_memory_reap does, and then gives back all spares, so that the device has as much free memory as
 * possible. */
void vram_memory_give_back(void);
/* Gives back the spares of an owner (0: of all owners). False: there were none. */
bool vram_memory_end_spares(uint32_t owner);
/* Call it when a device has no memory. It ends all spares. If there are none, and no stream is in capture, it waits
 * until a freed block ends, for 5 seconds at most. False: nothing ended. */
bool vram_memory_wait_freed(void);

/* A served block, as the next two functions give it. */
struct vram_found {
    uint64_t at, asked, size; /* at: the address; asked: bytes as requested; size: `asked` in whole VRAM_GRANULEs */
    uint64_t id;              /* the memory's id. The driver has no such id. Memory that comes back gets a new id */
    uint64_t devices;         /* a bit for each device that may use the block */
    cuda_handle context;      /* the context of the request */
    enum vram_state state;
    uint32_t device;
    bool in_stream, rdma; /* rdma: network cards can use it */
};
/* vram_memory_find: the block that begins at `at`. vram_memory_around: the block that contains the address. False:
 * there is none. */
bool vram_memory_find(uint64_t at, struct vram_found *out);
bool vram_memory_around(uint64_t address, struct vram_found *out);
/* Takes the block that begins at `at` (vram_table_take). NULL: there is none. */
struct vram_block *vram_memory_take(uint64_t at);

#pragma GCC visibility pop

#endif
