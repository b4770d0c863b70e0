/* vram_move.h — moves device memory that memstow serves (made in place of the driver) off its device to the host, and
 * back to the same addresses.
 * In: requests to move an owner's memory. Out: how many bytes moved, and why others did not. A device does not fetch
 * stowed memory by itself: a caller that stows must restore before anything uses the addresses. Any thread may call.
 * During a capture no move begins, and no capture is broken. */
#ifndef MEMSTOW_VRAM_MOVE_H
#define MEMSTOW_VRAM_MOVE_H

#include "preload/stow/move_end.h"
#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_refusal.h"

#pragma GCC visibility push(hidden)

/* Content that a move out did not copy, because it is unchanged since it came back (limits.standby). */
struct vram_unchanged {
    uint64_t bytes;
    int error; /* why some blocks could not be hashed: the driver's error or VRAM_HASH_LATE; 0: nothing failed */
};

struct vram_move_options {
    uint32_t owner;                   /* 0: all owners */
    uint32_t milliseconds;            /* how long to wait for running work */
    bool verify;                      /* compare the copy with the original */
    bool discard;                     /* make no copy */
    struct vram_limits limits;        /* limits for all backups together */
    bool at_once;                     /* wait neither for another move nor for a call that ends a context */
    uint64_t trigger;                 /* the number of the trigger that began this move; 0: a request began it */
    struct vram_unchanged *unchanged; /* NULL, or where a move out tells what it did not copy */
    /* for a move out: says when the move must end (move_is_ended). The move then stops after its present block */
    struct move_end end;
};
/* Both return the bytes that moved. If bytes stayed, *refusal and *error (the driver's) say why. The first reason
 * counts, but a reason that concerns the whole move replaces one that concerns a single block. vram_move_in brings
 * everything back or nothing. */
uint64_t vram_move_out(const struct vram_move_options *options, enum vram_refusal *refusal, int *error);
uint64_t vram_move_in(const struct vram_move_options *options, enum vram_refusal *refusal, int *error);

/* Gives unused pinned memory and standby backups back to the system. During a move it does nothing. */
void vram_move_shrink(void);

/* Call vram_move_begin_pinning before the device thread pins memory ahead of need (vram_ahead.h) in this context, and
 * vram_move_end_pinning afterwards. In between, no move begins, and no call ends the context. The caller of
 * vram_move_begin_pinning holds the lock of the table. vram_move_begin_pinning returns false if a move is in progress
 * or about to begin, or if a call that ends a context is in progress. */
bool vram_move_begin_pinning(cuda_handle context);
void vram_move_end_pinning(void);
/* Call these between vram_move_begin_pinning and vram_move_end_pinning. vram_move_lacks_buffers returns whether moves
 * lack their copy buffers; if another context than `context` has the buffers, it returns false. vram_move_make_buffers
 * makes the buffers in `context`, which must be the current context. It returns 0 or the driver's error. */
bool vram_move_lacks_buffers(cuda_handle context);
int vram_move_make_buffers(cuda_handle context, uint32_t device);

/* How many blocks have left their device so far, by any thread's moves. */
uint64_t vram_move_left(void);
/* Waits for another thread's move, for this time at most. True: there was a move, and it is over. */
bool vram_move_wait(uint32_t milliseconds);

/* Call these before and after a call of the driver that destroys a context. vram_move_hold_off waits as long as a move
 * or pinning uses this context, or a move waits for the work of all contexts. Until vram_move_go_on, no move begins.
 * `mark`: see vram_dying_comes. */
void vram_move_hold_off(cuda_handle context, uintptr_t *mark);
void vram_move_go_on(const uintptr_t *mark);
/* Call this when the program asks for a move. `frame` is a stack frame of this request. Forgets the calls of this
 * thread that destroy a context and whose stack frames lie below `frame`: the program has left these calls by
 * longjmp. */
void vram_move_asked_at(const void *frame);
/* Call this when a context has ended. Forgets the copy buffers and the pinned memory that ended with it. The caller
 * holds the lock of the table, and moves are held off. */
void vram_move_forget_context(cuda_handle context);

#pragma GCC visibility pop

#endif
