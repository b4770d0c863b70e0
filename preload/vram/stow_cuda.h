/* stow_cuda.h — device memory that memstow serves, so that it can move: out of the device to the host and back, at the
 * same addresses. In: requests of the program that are to be served, frees of served memory; requests to move an
 * owner's memory. Out: the driver's results; bytes that moved, and why some did not. A device cannot fault memory back:
 * a caller that stows must restore before anything uses the addresses again. Any thread. Nothing is served or moved
 * during a capture, and no capture is broken. A thread that frees a block which moves waits for it. */
#ifndef MEMSTOW_STOW_CUDA_H
#define MEMSTOW_STOW_CUDA_H

#include "preload/stow/move_end.h"
#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_block.h"
#include "preload/vram/vram_quiet.h"

#pragma GCC visibility push(hidden)

/* Whether the driver has all that it takes. Once; `find` gives functions by name. */
bool stow_cuda_begin(void *(*find)(const char *name));
bool stow_cuda_is_on(void);

struct stow_cuda_request {
    uint64_t bytes;
    uint32_t device, owner;
    cuda_handle context; /* current on the thread */
    bool in_stream;      /* in place of a pool */
};
/* The driver's result; on failure nothing is left behind that will not be given back later. */
int stow_cuda_serve(const struct stow_cuda_request *request, uint64_t *at);

/* The devices that may use served memory have changed (vram_reach.h): new ones get access to memory that is there, and
 * to memory that is out when it comes back. 0; or the driver's first error, and some access is as it was. Waits for
 * blocks that move. */
int stow_cuda_reach(void);

/* Frees the block at `at`, as cuMemFree does: memory in place of a pool at once, other memory when nothing runs in its
 * context. The second frees it when all that is on a stream now has been executed. False: it is not ours. */
bool stow_cuda_free(uint64_t at, int *result);
bool stow_cuda_free_in(uint64_t at, cuda_handle stream, int *result);
/* Gives back what was freed and has been executed by now. */
void stow_cuda_reap(void);
/* There is no memory: waits for some that was freed, for 5 seconds at most. False: there is none to come. */
bool stow_cuda_wait_freed(void);

/* The block that begins at an address, or that an address lies in; false: none of ours. */
struct stow_cuda_found {
    uint64_t at, asked, size; /* size: of whole granules */
    uint64_t id;              /* of its memory: another one when that has come back, no driver's */
    uint64_t devices;         /* a bit for each that may use it */
    cuda_handle context;      /* in which it was asked for */
    enum vram_state state;
    uint32_t device;
    bool in_stream, rdma; /* rdma: network cards can have it */
};
bool stow_cuda_find(uint64_t at, struct stow_cuda_found *out);
bool stow_cuda_around(uint64_t address, struct stow_cuda_found *out);
enum stow_cuda_refusal {
    STOW_CUDA_DONE,
    STOW_CUDA_EMPTY,    /* the owner has nothing that could move this way */
    STOW_CUDA_CAPTURE,  /* somebody captures a stream */
    STOW_CUDA_BUSY,     /* a kernel did not end in time */
    STOW_CUDA_AT_WORK,  /* another move is on, and is not to be waited for */
    STOW_CUDA_NOT_IDLE, /* nobody said that the owner is not in use */
    STOW_CUDA_CONTEXTS, /* there are more contexts than can be waited for */
    STOW_CUDA_CANCELLED,
    STOW_CUDA_HANDLE,    /* its handle was handed out, by which it can be mapped or exported elsewhere (NCCL does) */
    STOW_CUDA_MULTICAST, /* bound to a multicast object */
    STOW_CUDA_EXPORTED,  /* to another process or device */
    STOW_CUDA_RDMA,      /* set up for other devices' direct access */
    STOW_CUDA_MIXED,     /* parts of a block are other owners' */
    STOW_CUDA_DRIVER,    /* the driver answered with an error */
    STOW_CUDA_NO_ROOM,   /* no memory of the host's for it, or no more than is allowed */
    STOW_CUDA_DISK_FULL, /* where it would go, or what may be written there is less */
    STOW_CUDA_DISK_ERROR,
    STOW_CUDA_DISK,    /* there is no directory for it, or none that will do */
    STOW_CUDA_NO_VRAM, /* no memory of the device's to bring it back to */
    STOW_CUDA_CHANGED, /* what was copied is not what is there */
    STOW_CUDA_AIMDO,   /* comfy-aimdo is loaded, which manages addresses itself */
    STOW_CUDA_DEVICES, /* there is a device that could not copy from it */
    STOW_CUDA_OLD,     /* the driver lacks a function that it takes */
    STOW_CUDA_OFF,     /* nobody asked for it */
    STOW_CUDA_SMALL,   /* below what was asked for, or of an explicit pool */
    STOW_CUDA_KIND,    /* memory that is never served */
    STOW_CUDA_REFUSALS
};

/* Something outside now knows where its memory is, or may (IPC, NCCL, RDMA): it does not move any more. The first
 * reason counts. */
void stow_cuda_refuse(uint64_t address, enum stow_cuda_refusal why);
/* Each of an owner's that is in its device, and stays there for such a reason, or because it is mixed. Nothing of
 * CUDA's may be called. */
typedef void stow_cuda_kept_visitor(enum stow_cuda_refusal why, uint64_t at, uint64_t bytes, void *context);
void stow_cuda_visit_kept(uint32_t owner, stow_cuda_kept_visitor *visit, void *context);
/* Of an owner (0: of all), or of a device (UINT32_MAX: of all). */
struct stow_cuda_sums {
    uint64_t live, stowed;                        /* bytes, of whole granules */
    uint64_t asked, stowed_asked;                 /* as asked for: of both, of what is stowed */
    uint64_t in_streams;                          /* asked for in place of a pool, live or out */
    uint64_t streams_taken;                       /* the same, of whole granules */
    uint64_t in_streams_most, streams_taken_most; /* of the device and all owners, since they were forgotten */
    uint64_t backup;                              /* bytes of the host that hold it, for all of them */
    uint32_t blocks, wrecks;
};
struct stow_cuda_sums stow_cuda_sums(uint32_t owner, uint32_t device);
void stow_cuda_forget_most(uint32_t device, bool taken);
/* Each that is live or out; nothing of CUDA's may be called. */
typedef void stow_cuda_visitor(uint32_t owner, uint64_t bytes, bool stowed, void *context);
void stow_cuda_visit(stow_cuda_visitor *visit, void *context);
/* What is `from`'s is `to`'s. */
void stow_cuda_change_owner(uint32_t from, uint32_t to);
/* Holds the block at `at` where it is until it is released; waits for a thread that moves it. False: it is out of the
 * device. *held is NULL where there is none of ours. */
bool stow_cuda_hold(uint64_t at, struct vram_block **held);
/* Gives it to the owner (0: nobody), without the parts that others have where it is mixed: then it is not moved out. */
void stow_cuda_assign(struct vram_block *held, uint32_t owner, bool mixed);
void stow_cuda_let_go(struct vram_block *held);

/* How many blocks have left their device so far, in any thread's moves. */
uint64_t stow_cuda_left(void);
/* Another thread's move is waited for, so long at most. True: there was one, and it is over. */
bool stow_cuda_wait_move(uint32_t milliseconds);

/* A context that work may run in: it is waited for before anything moves. Also where nothing is served. */
void stow_cuda_context(cuda_handle context);
/* All of these. *missing: there were more. */
uint32_t stow_cuda_contexts(cuda_handle to[VRAM_CONTEXTS], bool *missing);
/* Which device it is on, as far as something was served in it; false: nothing was. */
bool stow_cuda_device_of(cuda_handle context, uint32_t *device);
/* Before the driver is asked to end a context: a number, that of this end. */
uint64_t stow_cuda_end_begins(void);
/* It is gone, and what was served in it too, as far as that was before the end began: what came later is of the next
 * context of that name. What was in place of a pool is no context's: it goes on in `heir`, which may be the same, begun
 * anew; NULL: there is none, and it is gone as well. */
void stow_cuda_context_ended(cuda_handle context, cuda_handle heir, uint64_t end);

const char *stow_cuda_refusal_text(uint32_t refusal);
/* Of single blocks, which stay whenever the rest moves. */
bool stow_cuda_is_of_blocks(uint32_t refusal);

struct stow_cuda_options {
    uint32_t owner;            /* 0: all */
    uint32_t milliseconds;     /* to wait for what runs */
    bool verify;               /* what was copied out is compared with what is there */
    struct vram_limits limits; /* of what is out */
    bool at_once;              /* another move is not waited for */
    struct move_end end;       /* of moving out: it ends with the block that it is at */
};
/* Bytes that moved; why others stayed is in *refusal and *error (the driver's): the first reason, but that of single
 * blocks gives way to any other. All that is out comes back,
 * or none of it. */
uint64_t stow_cuda_out(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error);
uint64_t stow_cuda_in(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error);

#pragma GCC visibility pop

#endif
