/* vram_move.c — see vram_move.h. While a thread calls the driver for a block, that thread alone has the block, and
 * other threads wait. There is one move at a time. */
#include "preload/vram/vram_move.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/vram/vram_contexts.h"
#include "preload/vram/vram_dying.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_ring.h"
#include "preload/vram/vram_sums.h"
#include "preload/vram/vram_table.h"
#include "preload/base/forked.h"

static bool mover, quieting;          /* quieting: the mover waits for the work of all contexts */
static struct vram_block *held;       /* the blocks that the mover has, by in_move */
static uint64_t left;                 /* blocks that have left so far */
static uint32_t moves;                /* the number of the present move, or of the last one */
static const char *noted[VRAM_SLOTS]; /* the ring's buffers that the ledger knows */
static struct vram_ring ring = {.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};

/* --- the ring --- */

static void forget_buffers(void) {
    for (int i = 0; i < VRAM_SLOTS; i++)
        if (noted[i]) vram_backup_forget_buffer(noted[i]);
    memset(noted, 0, sizeof noted);
}

static void forget_ring(void) {
    forget_buffers();
    ring = (struct vram_ring){.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
}

void vram_move_forget_ring(cuda_handle context) {
    if (ring.context == context) forget_ring();
}

static void vram_move_abandon(void) {
    mover = quieting = false;
    held = NULL;
    memset(noted, 0, sizeof noted); /* the table is empty */
    forget_ring();
}
FORKED(vram_move_abandon);

/* --- moving --- */

struct move {
    const struct vram_move_options *options;
    struct vram_block *last; /* the block that was chosen last: the search goes on behind it */
    enum vram_refusal refusal;
    int error;
    uint64_t moved;
};

/* Notes why a block stayed. A reason why a block never moves does not replace another reason. */
static void vram_move_refuse(struct move *self, enum vram_refusal why, int error) {
    bool says_more =
        vram_refusal_is_of_blocks(self->refusal) && !vram_refusal_is_of_blocks(why) && why != VRAM_REFUSAL_EMPTY;
    if (self->refusal && !says_more) return;
    self->refusal = why;
    self->error = error;
}

/* The ring goes to another context. A thread that ends the former context need not wait any more. */
static void ring_goes_to(cuda_handle context) {
    vram_table_lock();
    ring.context = context;
    vram_table_changed();
    vram_table_let_go();
}

/* Makes the ring ready for a context. All contexts share one ring, which must be small because its memory stays
 * pinned. */
static int ring_ready(cuda_handle context, uint32_t device) {
    if (ring.context && ring.context != context) {
        struct vram_visit visit;
        int error = vram_driver_enter(&vram_driver, ring.context, &visit);
        if (error) return error;
        error = vram_ring_end(&vram_driver, &ring);
        vram_driver_leave(&vram_driver, &visit);
        if (error) return error;
        forget_buffers();
    }
    if (ring.context != context) ring_goes_to(context);
    int error = vram_ring_begin(&vram_driver, &ring);
    for (int i = 0; i < VRAM_SLOTS && !error; i++) {
        if (!noted[i]) vram_backup_note_buffer(ring.slot[i], ring.slot_bytes, device);
        noted[i] = ring.slot[i];
    }
    return error;
}

static enum vram_refusal disk_refuses(uint32_t refusal) {
    switch (refusal) {
    case STOW_DONE:
        return VRAM_REFUSAL_DONE;
    case STOW_EMPTY:
        return VRAM_REFUSAL_NO_MEMORY;
    case STOW_DISK_FULL:
    case STOW_FILE_LIMIT:
        return VRAM_REFUSAL_DISK_FULL;
    case STOW_DISK_ERROR:
        return VRAM_REFUSAL_DISK_ERROR;
    default:
        return VRAM_REFUSAL_DISK;
    }
}

/* Exceeding the file size limit also raises a signal, which must find no handler on this thread. */
static enum vram_refusal write_out(struct move *self, struct vram_block *block) {
    struct stow_file file;
    uint64_t signals;
    if (!lock_out_signals(&signals)) return VRAM_REFUSAL_NO_MEMORY;
    uint32_t refusal = vram_backup_make_file(block, &self->options->limits, &file);
    if (!refusal) {
        self->error = vram_ring_out_to_file(&vram_driver, &ring, &file, block->at, block->size, &refusal);
        stow_file_close(&file);
    }
    lock_let_signals(signals);
    return self->error ? VRAM_REFUSAL_DRIVER : disk_refuses(refusal);
}

/* Copies a block to memory. If there is no room in memory, it copies to a disk, if that is allowed. */
static enum vram_refusal copy_out(struct move *self, struct vram_block *block) {
    if (!vram_backup_make(&vram_driver, block, &self->options->limits)) return write_out(self, block);
    self->error = (block->backup_kind == VRAM_PINNED ? vram_ring_out_pinned : vram_ring_out)(
        &vram_driver, &ring, block->backup, block->at, block->size);
    return self->error ? VRAM_REFUSAL_DRIVER : VRAM_REFUSAL_DONE;
}

/* Takes a block off its device. It runs in the block's context. The content is on the device until the last step but
 * one has succeeded, and in the backup after that. */
static enum vram_refusal take_out(struct move *self, struct vram_block *block) {
    bool same = true;
    if ((self->error = ring_ready(block->context, block->device))) return VRAM_REFUSAL_DRIVER;
    enum vram_refusal why = copy_out(self, block);
    if (why) return why;
    if (self->options->verify)
        self->error = vram_ring_compare(&vram_driver, &ring, block->backup, block->at, block->size,
                                        block->backup_kind == VRAM_IN_FILE, &same);
    if (self->error) return VRAM_REFUSAL_DRIVER;
    if (!same) return VRAM_REFUSAL_CHANGED;
    /* Memory that the driver does not release now is released at the next attempt, or used again. */
    vram_block_strip(&vram_driver, block);
    return block->mapped ? VRAM_REFUSAL_DRIVER : VRAM_REFUSAL_DONE;
}

static enum vram_refusal copy_in(struct move *self, struct vram_block *block) {
    typedef int copies(const struct vram_driver *, struct vram_ring *, uint64_t, const char *, uint64_t);
    /* The index is enum vram_backup_kind. */
    static copies *const by[] = {vram_ring_in, vram_ring_in_pinned, vram_ring_in_from_file};
    if ((self->error = ring_ready(block->context, block->device))) return VRAM_REFUSAL_DRIVER;
    self->error = by[block->backup_kind](&vram_driver, &ring, block->at, block->backup, block->size);
    if (self->error == VRAM_UNREADABLE) return VRAM_REFUSAL_DISK_ERROR;
    return self->error ? VRAM_REFUSAL_DRIVER : VRAM_REFUSAL_DONE;
}

/* Trims the driver's default pool, which keeps memory that the program has freed. This is done before a request fails
 * for lack of memory. */
static void trim_pool(uint32_t device) {
    cuda_handle pool;
    if (!vram_driver.cuDeviceGetDefaultMemPool(&pool, (int)device)) vram_driver.cuMemPoolTrimTo(pool, 0);
}

static enum vram_refusal vram_move_fill(struct move *self, struct vram_block *block) {
    self->error = vram_block_fill(&vram_driver, block);
    if (self->error == CUDA_OUT_OF_MEMORY) {
        trim_pool(block->device);
        vram_memory_wait_freed();
        self->error = vram_block_fill(&vram_driver, block);
    }
    if (!self->error) return VRAM_REFUSAL_DONE;
    return self->error == CUDA_OUT_OF_MEMORY ? VRAM_REFUSAL_NO_VRAM : VRAM_REFUSAL_DRIVER;
}

typedef enum vram_refusal step(struct move *self, struct vram_block *block);

/* Moves a block, which the mover has, in its context. False: the move was refused. */
static bool in_its_context(struct move *self, struct vram_block *block, step *does) {
    struct vram_visit visit;
    int error = vram_driver_enter(&vram_driver, block->context, &visit);
    enum vram_refusal why = error ? VRAM_REFUSAL_DRIVER : does(self, block);
    if (!error) vram_driver_leave(&vram_driver, &visit);
    if (why) vram_move_refuse(self, why, error ? error : self->error);
    return !why;
}

static bool is_next(const struct move *self, const struct vram_block *block, enum vram_state state) {
    if (block->state != state || block->moving || block->tried == moves) return false;
    if (self->options->owner && block->owner != self->options->owner) return false;
    return !vram_dying_has(block->context);
}

/* The next block from here on; context NULL: of any. */
static struct vram_block *vram_move_search(const struct move *self, struct vram_block *block, cuda_handle context,
                                           enum vram_state state) {
    while (block && !((!context || block->context == context) && is_next(self, block, state))) block = block->next;
    return block;
}

/* Chooses the next block, first of all one of the same context: for each other context the ring is pinned again. The
 * search goes on behind the last block, which the mover still has. So a move looks at each block once for each context,
 * and once more at blocks that came or were given back meanwhile. */
static struct vram_block *vram_move_choose(const struct move *self, enum vram_state state) {
    struct vram_block *from = self->last ? self->last->next : vram_table_first();
    cuda_handle context = self->last ? self->last->context : ring.context;
    struct vram_block *block = context ? vram_move_search(self, from, context, state) : NULL;
    return block ? block : vram_move_search(self, vram_table_first(), NULL, state);
}

/* Takes a block in this state that this move has not tried yet. With the table's lock. */
static struct vram_block *next_block(struct move *self, enum vram_state state) {
    for (struct vram_block *block; (block = vram_move_choose(self, state));) {
        block->tried = moves;
        self->last = block;
        if (!vram_refusal_of(block) || state == VRAM_STOWED) {
            block->moving = true;
            return block;
        }
        vram_move_refuse(self, vram_refusal_of(block), 0);
    }
    return NULL;
}

/* Drops a backup. If it is pinned, the device may still be writing to it. */
static void drop_backup(struct vram_block *block) {
    if (block->backup_kind == VRAM_PINNED && ring.unsettled) vram_backup_leave(block);
    vram_backup_drop(&vram_driver, block);
}

/* Frees the backups that earlier moves have left, when no copy is in progress. */
static void collect_backups(void) {
    if (!ring.unsettled) vram_backup_collect(&vram_driver);
}

/* Takes the next block to move out. From now on only the end of its context, or of the ring's, waits for the mover. */
static struct vram_block *take_next(struct move *self) {
    vram_table_lock();
    struct vram_block *block = move_is_ended(self->options->end) ? NULL : next_block(self, VRAM_LIVE);
    if (block) block->in_move = NULL;
    held = block;
    quieting = false;
    vram_table_changed();
    vram_table_let_go();
    return block;
}

/* Moves blocks out one by one, so that a thread that frees another block need not wait. The next block is taken before
 * the last one is given back, because that is where the search goes on. */
static void move_out(struct move *self) {
    struct vram_block *block = take_next(self), *next;
    if (!block)
        vram_move_refuse(self, move_is_ended(self->options->end) ? VRAM_REFUSAL_CANCELLED : VRAM_REFUSAL_EMPTY, 0);
    for (; block; block = next) {
        bool moved = in_its_context(self, block, take_out);
        if (moved) self->moved += block->size, block->left_ns = os_now(), block->trigger = self->options->trigger;
        if (!moved) drop_backup(block);
        block->copied = ring.unsettled;
        next = take_next(self);
        vram_end_give_back(block, moved ? VRAM_STOWED : VRAM_LIVE);
        if (moved) __atomic_fetch_add(&left, 1, __ATOMIC_RELEASE);
    }
}

static void vram_move_strip(struct vram_block *block) {
    struct vram_visit visit;
    /* the block keeps its device memory until the next attempt */
    if (vram_driver_enter(&vram_driver, NULL, &visit)) return;
    vram_block_strip(&vram_driver, block);
    vram_driver_leave(&vram_driver, &visit);
}

/* Keeps blocks of one context together. */
static void add_to_move(struct vram_block **all, struct vram_block *block) {
    while (*all && (*all)->context != block->context) all = &(*all)->in_move;
    block->in_move = *all;
    *all = block;
}

static void holds_no_more_than(struct vram_block *rest) {
    vram_table_lock();
    held = rest;
    vram_table_let_go();
}

/* Moves back all blocks or none, because a model with a missing part cannot be used. First all blocks get memory. */
static void move_in(struct move *self) {
    struct vram_block *all = NULL, *block, *next;
    vram_table_lock();
    while ((block = next_block(self, VRAM_STOWED))) add_to_move(&all, block);
    held = all;
    vram_table_let_go();
    if (!all) vram_move_refuse(self, VRAM_REFUSAL_EMPTY, 0);
    for (block = all; block && !self->refusal; block = block->in_move) in_its_context(self, block, vram_move_fill);
    for (block = all; block && !self->refusal; block = block->in_move) in_its_context(self, block, copy_in);
    for (block = all; block; block = next) {
        next = block->in_move;
        block->copied = ring.unsettled;
        if (self->refusal && !ring.unsettled) vram_move_strip(block);
        if (!self->refusal) vram_backup_drop(&vram_driver, block);
        /* The memory gets a new id, so that a client that had registered it registers it again. */
        if (!self->refusal) self->moved += block->size, block->id = vram_table_id();
        holds_no_more_than(next);
        vram_end_give_back(block, self->refusal ? VRAM_STOWED : VRAM_LIVE);
    }
}

/* One move at a time, and none while a context ends. Another one waits, or fails. */
static bool begin_move(struct move *self, bool out) {
    vram_table_lock();
    while ((mover || vram_dying_any()) && !self->options->at_once && !vram_dying_is_mine())
        mover ? vram_table_wait() : vram_table_wait_briefly();
    if (mover || vram_dying_any()) vram_move_refuse(self, VRAM_REFUSAL_AT_WORK, 0);
    if (!self->refusal) mover = true, quieting = out, moves++;
    vram_table_let_go();
    return !self->refusal;
}

static void end_move(void) {
    vram_table_lock();
    mover = quieting = false;
    held = NULL;
    vram_table_changed();
    vram_table_let_go();
}

static bool works_in(cuda_handle context) {
    if (quieting || (mover && ring.context == context)) return true;
    for (const struct vram_block *block = held; block; block = block->in_move)
        if (block->context == context) return true;
    return false;
}

/* The driver frees the ring with its context, and the mover would go on to copy from it. */
void vram_move_hold_off(cuda_handle context, const uintptr_t *mark) {
    vram_table_lock();
    while (!vram_dying_comes(context, mark))
        if (vram_dying_any()) vram_table_wait_briefly();
    while (works_in(context)) vram_table_wait();
    vram_dying_begins(mark);
    vram_table_let_go();
}

void vram_move_go_on(const uintptr_t *mark) {
    vram_table_lock();
    vram_dying_over(mark);
    vram_table_changed();
    vram_table_let_go();
}

void vram_move_asked_at(const void *frame) {
    if (!vram_dying_maybe() || !vram_table_enter()) return;
    vram_dying_left((uintptr_t)frame);
    vram_table_let_go();
}

static bool is_at_work(void) {
    if (!vram_table_enter()) return false;
    bool is = mover;
    vram_table_let_go();
    return is;
}

uint64_t vram_move_left(void) { return __atomic_load_n(&left, __ATOMIC_ACQUIRE); }

bool vram_move_wait(uint32_t milliseconds) {
    const struct timespec while_ = {.tv_nsec = 1000000};
    uint64_t end = os_now() + milliseconds * (uint64_t)1000000;
    if (!vram_driver_is_on() || !is_at_work()) return false;
    while (is_at_work() && os_now() < end) os_call(SYS_nanosleep, &while_, NULL);
    return !is_at_work();
}

/* Whether no work runs in any context. A block does not tell which contexts use it, so all are asked. */
static bool is_quiet(struct move *self) {
    cuda_handle all[VRAM_CONTEXTS];
    bool missing;
    uint32_t count = vram_contexts_all(all, &missing);
    if (missing) vram_move_refuse(self, VRAM_REFUSAL_CONTEXTS, 0);
    int error = missing ? 0 : vram_quiet(&vram_driver, all, count, self->options->milliseconds);
    if (error == VRAM_CAPTURE) vram_move_refuse(self, VRAM_REFUSAL_CAPTURE, 0);
    if (error) vram_move_refuse(self, error == VRAM_NOT_QUIET ? VRAM_REFUSAL_BUSY : VRAM_REFUSAL_DRIVER, error);
    return !self->refusal;
}

static bool has_any(uint32_t owner, bool out) {
    struct vram_sums sums = vram_sums(owner, UINT32_MAX);
    return out ? sums.live : sums.stowed;
}

/* No signal handler runs on the thread from here on, as in a move of the host's memory: one that left the move by
 * longjmp would leave its blocks to nobody, and no other move could begin. */
static void move_all(struct move *self, bool out) {
    uint64_t signals;
    bool blocked = lock_out_signals(&signals);
    if (begin_move(self, out)) {
        vram_memory_reap();
        if (!out)
            move_in(self);
        else if (is_quiet(self))
            move_out(self);
        collect_backups();
        end_move();
    }
    if (blocked) lock_let_signals(signals);
}

static uint64_t vram_move_move(const struct vram_move_options *options, bool out, enum vram_refusal *refusal,
                               int *error) {
    struct move self = {.options = options};
    if (!vram_driver_is_on() || !has_any(options->owner, out)) {
        vram_move_refuse(&self, VRAM_REFUSAL_EMPTY, 0);
    } else if (cuda_captures_any()) {
        vram_move_refuse(&self, VRAM_REFUSAL_CAPTURE, 0);
    } else {
        move_all(&self, out);
    }
    *refusal = self.refusal;
    *error = self.refusal == VRAM_REFUSAL_DONE ? 0 : self.error;
    return self.moved;
}

uint64_t vram_move_out(const struct vram_move_options *options, enum vram_refusal *refusal, int *error) {
    return vram_move_move(options, true, refusal, error);
}

uint64_t vram_move_in(const struct vram_move_options *options, enum vram_refusal *refusal, int *error) {
    return vram_move_move(options, false, refusal, error);
}
