/* stow_cuda.h — device memory that memstow serves, so that it can move off the device to the host and back, at the same
 * addresses.
 * In: requests of the program that are to be served, frees of served memory; requests to move an owner's memory. Out:
 * the driver's results; bytes that moved, and why others did not. A device cannot fault memory back: a caller that
 * stows must restore before anything uses the addresses. Any thread. During a capture nothing is served or moved, and
 * no capture is broken. A thread that frees a moving block waits for it. */
#ifndef MEMSTOW_STOW_CUDA_H
#define MEMSTOW_STOW_CUDA_H

#include "preload/stow/move_end.h"
#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_block.h"
#include "preload/vram/vram_quiet.h"

#pragma GCC visibility push(hidden)

/* Whether the driver has all that is needed. Call it once; `find` returns functions by name. */
bool stow_cuda_begin(void *(*find)(const char *name));
bool stow_cuda_is_on(void);

struct stow_cuda_request {
    uint64_t bytes;
    uint32_t device, owner;
    cuda_handle context; /* current on the thread */
    bool in_stream;      /* in place of a pool */
};
/* The driver's result. After a failure, what is left is given back later. */
int stow_cuda_serve(const struct stow_cuda_request *request, uint64_t *at);

/* The set of devices that may use served memory has changed (vram_reach.h). New devices get access to memory now, and
 * to stowed memory when it comes back. 0, or the driver's first error; then some access is as before. It waits for
 * moving blocks. */
int stow_cuda_reach(void);

/* Free the block at `at`. stow_cuda_free works as cuMemFree does: memory in place of a pool is freed at once, other
 * memory when nothing runs in its context. stow_cuda_free_in frees it when the present work on a stream is done. False:
 * the block is not ours. */
bool stow_cuda_free(uint64_t at, int *result);
bool stow_cuda_free_in(uint64_t at, cuda_handle stream, int *result);
/* Gives back blocks that were freed and whose work is done by now. */
void stow_cuda_reap(void);
/* There is no memory: waits, 5 seconds at most, for blocks that were freed. False: there are none. */
bool stow_cuda_wait_freed(void);

/* The block that begins at an address, or contains it; false: none of ours does. */
struct stow_cuda_found {
    uint64_t at, asked, size; /* size: in whole granules */
    uint64_t id;              /* of its memory; it changes when the memory comes back, and is no id of the driver */
    uint64_t devices;         /* a bit for each device that may use it */
    cuda_handle context;      /* in which it was requested */
    enum vram_state state;
    uint32_t device;
    bool in_stream, rdma; /* rdma: network cards can use it */
};
bool stow_cuda_find(uint64_t at, struct stow_cuda_found *out);
bool stow_cuda_around(uint64_t address, struct stow_cuda_found *out);
enum stow_cuda_refusal {
    STOW_CUDA_DONE,
    STOW_CUDA_EMPTY,    /* the owner has nothing that could move this way */
    STOW_CUDA_CAPTURE,  /* a stream is in capture */
    STOW_CUDA_BUSY,     /* a kernel did not end in time */
    STOW_CUDA_AT_WORK,  /* another move is in progress, and must not be waited for */
    STOW_CUDA_NOT_IDLE, /* nobody has declared the owner idle */
    STOW_CUDA_CONTEXTS, /* there are more contexts than it can wait for */
    STOW_CUDA_CANCELLED,
    STOW_CUDA_HANDLE,    /* its handle was returned, so it can be mapped or exported elsewhere (NCCL does) */
    STOW_CUDA_MULTICAST, /* bound to a multicast object */
    STOW_CUDA_EXPORTED,  /* to another process or device */
    STOW_CUDA_RDMA,      /* set up for other devices' direct access */
    STOW_CUDA_MIXED,     /* other owners have parts of the block */
    STOW_CUDA_DRIVER,    /* the driver answered with an error */
    STOW_CUDA_NO_ROOM,   /* no host memory for it, or no more than is allowed */
    STOW_CUDA_DISK_FULL, /* the disk is full, or no more may be written there */
    STOW_CUDA_DISK_ERROR,
    STOW_CUDA_DISK,    /* there is no directory for it, or none that can be used */
    STOW_CUDA_NO_VRAM, /* no device memory to bring it back to */
    STOW_CUDA_CHANGED, /* the copy differs from the original */
    STOW_CUDA_AIMDO,   /* comfy-aimdo is loaded, which manages addresses itself */
    STOW_CUDA_DEVICES, /* another device could not copy from it */
    STOW_CUDA_OLD,     /* the driver lacks a necessary function */
    STOW_CUDA_OFF,     /* serving is not turned on */
    STOW_CUDA_SMALL,   /* smaller than the setting, or from an explicit pool */
    STOW_CUDA_KIND,    /* this kind of memory is never served */
    STOW_CUDA_REFUSALS
};

/* The block does not move any more: others may know where its memory is (IPC, NCCL, RDMA). The first reason counts. */
void stow_cuda_refuse(uint64_t address, enum stow_cuda_refusal why);
/* Calls visit for each block of an owner that is on its device and stays for such a reason, or because it is mixed.
 * visit must not call CUDA. */
typedef void stow_cuda_kept_visitor(enum stow_cuda_refusal why, uint64_t at, uint64_t bytes, void *context);
void stow_cuda_visit_kept(uint32_t owner, stow_cuda_kept_visitor *visit, void *context);
/* The sums of an owner (0: of all), or of a device (UINT32_MAX: of all). */
struct stow_cuda_sums {
    uint64_t live, stowed;                        /* bytes, in whole granules */
    uint64_t asked, stowed_asked;                 /* as requested: of both, of the stowed part */
    uint64_t in_streams;                          /* requested in place of a pool, live or stowed */
    uint64_t streams_taken;                       /* the same in whole granules */
    uint64_t in_streams_most, streams_taken_most; /* of the device and all owners, since they were reset */
    uint64_t backup;                              /* bytes on the host that hold the content, for all owners */
    uint32_t blocks, wrecks;
};
struct stow_cuda_sums stow_cuda_sums(uint32_t owner, uint32_t device);
void stow_cuda_forget_most(uint32_t device, bool taken);
/* Calls visit for each block that is live or stowed. visit must not call CUDA. */
typedef void stow_cuda_visitor(uint32_t owner, uint64_t bytes, bool stowed, void *context);
void stow_cuda_visit(stow_cuda_visitor *visit, void *context);
/* Everything of `from` now belongs to `to`. */
void stow_cuda_change_owner(uint32_t from, uint32_t to);
/* Holds the block at `at` in place until it is released. Waits for a thread that moves it. False: it is off its device.
 * *held is NULL if no block of ours is there. */
bool stow_cuda_hold(uint64_t at, struct vram_block **held);
/* Gives the block to an owner (0: nobody). `mixed`: others have parts of it, so it does not move. */
void stow_cuda_assign(struct vram_block *held, uint32_t owner, bool mixed);
void stow_cuda_let_go(struct vram_block *held);

/* How many blocks have left their device so far, by any thread's moves. */
uint64_t stow_cuda_left(void);
/* Waits for another thread's move, for that time at most. True: there was one, and it is over. */
bool stow_cuda_wait_move(uint32_t milliseconds);

/* A context in which work may run. Every move waits for it first. Call it even if nothing is served. */
void stow_cuda_context(cuda_handle context);
/* All these contexts. *missing: there were more. */
uint32_t stow_cuda_contexts(cuda_handle to[VRAM_CONTEXTS], bool *missing);
/* The device of a context, if anything was served in it; false: nothing was. */
bool stow_cuda_device_of(cuda_handle context, uint32_t *device);
/* Before the driver ends a context: the number of this end. */
uint64_t stow_cuda_end_begins(void);
/* The context has ended, with the blocks that were served in it before the end began. Later blocks belong to the next
 * context with that address. Blocks in place of a pool belong to no context. They go to `heir`, which may be the same
 * context, begun anew. NULL: there is none, and they end, too. */
void stow_cuda_context_ended(cuda_handle context, cuda_handle heir, uint64_t end);

const char *stow_cuda_refusal_text(uint32_t refusal);
/* Whether the refusal concerns single blocks, which stay when the rest moves. */
bool stow_cuda_is_of_blocks(uint32_t refusal);

struct stow_cuda_options {
    uint32_t owner;            /* 0: all owners */
    uint32_t milliseconds;     /* to wait for running work */
    bool verify;               /* compare the copy with the original */
    struct vram_limits limits; /* of everything that is off the devices */
    bool at_once;              /* do not wait for another move */
    struct move_end end;       /* for moving out: the move ends after its present block */
};
/* Return the bytes that moved. *refusal and *error (the driver's) say why others stayed: the first reason counts, but a
 * reason of a single block gives way to any other. stow_cuda_in brings everything back or nothing. */
uint64_t stow_cuda_out(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error);
uint64_t stow_cuda_in(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error);

#pragma GCC visibility pop

#endif
