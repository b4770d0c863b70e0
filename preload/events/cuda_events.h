/* cuda_events.h — what a call of CUDA means: blocks that come and go, pools, physical memory, graphs, contexts.
 * In: the arguments and results of entries, in the words of cuda_table.h. Out: the ledger's table and counters of CUDA
 * memory. Any thread may call these functions, before or after the driver's call. */
#ifndef MEMSTOW_CUDA_EVENTS_H
#define MEMSTOW_CUDA_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"
#include "preload/cuda/cuda_blocks.h"
#include "preload/cuda/cuda_device.h"
#include "preload/stacks/stack.h"

#pragma GCC visibility push(hidden)

enum cuda_ending { CUDA_NOTHING_ENDS, CUDA_GRAPH_ENDS, CUDA_CONTEXT_ENDS, CUDA_DEVICE_ENDS };
enum cuda_capture { CUDA_NO_CAPTURE, CUDA_CAPTURE_BEGINS, CUDA_CAPTURE_ENDS, CUDA_STREAM_ENDS };

/* A call of an entry (an entry point of CUDA). This structure lies on the stack of the hook. */
struct cuda_call {
    struct caller caller;
    bool outermost;  /* the thread's outermost call */
    bool outer;      /* the call is the outermost one, and the process is tracked: what the call does is counted */
    bool per_thread; /* the default stream is the thread's own */
    bool removes;    /* the call frees the block with the number `number`, which is not 0 */
    bool found;      /* that block was in the table: `taken` is its record */
    bool in_use;     /* the block stays in the table, because it has other users left */
    bool impossible; /* the call is not passed to the driver, because stowed content cannot come back */
    enum cuda_capture captured; /* what the call does to the captures of `stream` */
    cuda_handle stream;         /* the stream whose capture begins or ends, or that is destroyed */
    uint32_t capture;           /* the number of the capture that ends; 0: unknown */
    uint64_t captures;          /* slots of the captures that begin or end with the call (cuda_captures.h) */
    enum cuda_ending ending;    /* what kind of thing ends with the call */
    bool ends_much;             /* a capture, a graph or a context ends: such teardowns are numbered */
    uint32_t end;               /* the number of the teardown */
    uint64_t served_end;        /* if a context ends: the answer of vram_contexts_end_begins */
    uint64_t ends;              /* the handle of the graph or context that ends */
    uintptr_t mark;             /* if a context ends: see vram_dying.h */
    uint32_t device;            /* the device that is reset, or whose primary context is released */
    enum cuda_space space;      /* with `number`: the block that the call frees */
    enum snap_cuda_kind asked_kind;
    uint64_t asked;  /* bytes that the program requests from the driver; 0: the call requests no memory */
    uint64_t number; /* the block that the call frees, or the address of host memory that the call registers */
    uint64_t locked; /* bytes from address `number` on that were locked in place; a failed call unlocks them */
    struct snap_cuda_block taken;
};

/* Before the call: takes the block that is to be freed out of the table. */
void cuda_events_take(struct cuda_call *call, enum cuda_space space, uint64_t number);
/* Before the call: one use of the block ends. If it is the last use, the block leaves the table. */
void cuda_events_take_one(struct cuda_call *call, enum cuda_space space, uint64_t number);
/* After a call that succeeded: the block stays out of the table. cuda_events_gone_in is for a free in the order of a
 * stream: if the stream is in capture, nothing is freed yet, and the block goes back into the table. */
void cuda_events_gone(struct cuda_call *call);
void cuda_events_gone_in(struct cuda_call *call, cuda_handle stream);
/* After any call that failed: a block that was taken out goes back, and memory that cuda_events_register locked is
 * unlocked. */
void cuda_events_stays(struct cuda_call *call);

/* Before the call: the program registers its own memory with a device. Stowed content of that memory comes back first,
 * completely. Then the memory does not move until it is unregistered. If the content cannot come back, the call is not
 * passed to the driver (`impossible`). */
void cuda_events_register(struct cuda_call *call, uint64_t at, uint64_t bytes);

/* After a call that succeeded: notes a new block of this kind. */
void cuda_events_made(const struct cuda_call *call, enum snap_cuda_kind kind, uint64_t number, uint64_t bytes);
void cuda_events_made_in_pool(const struct cuda_call *call, uint64_t at, uint64_t bytes, cuda_handle stream,
                              cuda_handle pool);
void cuda_events_made_in_graph(const struct cuda_call *call, const struct cuda_alloc_node *alloc, cuda_handle graph);
void cuda_events_made_pool(const struct cuda_call *call, cuda_handle pool, const struct cuda_properties *properties);
void cuda_events_made_physical(const struct cuda_call *call, cuda_memory memory, uint64_t bytes,
                               const struct cuda_properties *properties);
/* cuda_events_opened: the block is memory of another process, which must be closed as often as it was opened.
 * cuda_events_made_of_another: the block is physical memory of another process, or a multicast object. */
void cuda_events_opened(const struct cuda_call *call, uint64_t at);
void cuda_events_made_of_another(const struct cuda_call *call, cuda_memory memory);

/* Counts one more handle of the memory that is mapped at `at`. */
void cuda_events_retained(const struct cuda_call *call, cuda_memory memory, cuda_address at);
/* Subtracts one from the number of handles of the memory. Call it after cuda_events_take_one. */
void cuda_events_released(struct cuda_call *call);
void cuda_events_mapped(const struct cuda_call *call, cuda_address at, uint64_t bytes, cuda_memory memory);
void cuda_events_unmapped(cuda_address at, uint64_t bytes);

/* Sets a flag of a block. If `number` is an address in a mapping, sets the flag of the physical memory that is mapped
 * there. cuda_events_mark_memory finds physical memory by a handle, and sets its flag. */
void cuda_events_mark(enum cuda_space space, uint64_t number, enum snap_cuda_flag flag);
void cuda_events_mark_memory(cuda_memory memory, enum snap_cuda_flag flag);
/* Call it when the driver had no memory for the request of the call. */
void cuda_events_refused(const struct cuda_call *call);

/* For a block that is gone, and that the caller has taken out of the table: counts it as freed, and lets pinned or
 * registered memory of the host move again. */
void cuda_events_forget(enum cuda_space space, const struct snap_cuda_block *block);

/* Call it when a resolver (a function that returns addresses of CUDA's entries) has given the program the address of an
 * entry that concerns memory and is not in cuda_table.h. */
void cuda_events_unknown(const char *name);

/* The bytes of arrays, from their descriptions. Bytes that the driver adds for its layout are not included. */
uint64_t cuda_array_bytes(const struct cuda_channels *channels, struct cuda_extent extent, uint32_t levels,
                          unsigned flags);
uint64_t cuda_array_2d_bytes(const struct cuda_array_2d *is);
uint64_t cuda_array_3d_bytes(const struct cuda_array_3d *is, uint32_t levels);

#pragma GCC visibility pop

#endif
