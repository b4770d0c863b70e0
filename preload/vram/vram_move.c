/* vram_move.c — see vram_move.h. A thread takes a block (vram_table.h) before it calls the driver for the block, and
 * other threads wait. There is one move at a time, and the thread that makes it is the mover. */
#include "preload/vram/vram_move.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/shared/pressure.h"
#include "preload/stow/stow.h"
#include "preload/vram/vram_contexts.h"
#include "preload/vram/vram_dying.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_standby.h"
#include "preload/vram/vram_leaving.h"
#include "preload/vram/vram_memory.h"
#include "preload/copies/vram_ring.h"
#include "preload/copies/vram_stock.h"
#include "preload/copies/vram_thread.h"
#include "preload/vram/vram_sums.h"
#include "preload/vram/vram_table.h"
#include "preload/base/forked.h"

enum { PINNING_MS = 5000, ENDING_MS = 10000 };

static bool mover, quieting;          /* quieting: the mover waits for the work of all contexts */
static cuda_handle pinning;           /* the context in which memory is pinned ahead of need now (vram_ahead.h) */
static uint64_t pinning_since;        /* when this pinning began */
static uint32_t waiting;              /* how many threads wait to begin a move */
static struct vram_block *held;       /* the blocks that the mover has taken, linked by in_move */
static uint64_t left;                 /* how many blocks have left their device so far */
static uint32_t moves;                /* the number of the present move, or else of the latest one */
static const char *noted[VRAM_SLOTS]; /* the ring's buffers that the ledger lists */
static struct vram_ring ring = {.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
static struct vram_hash hash; /* hash.context is the ring's context, or NULL */

/* --- the ring of copy buffers --- */

static void forget_buffers(void) {
    for (int i = 0; i < VRAM_SLOTS; i++)
        if (noted[i]) vram_backup_forget_buffer(noted[i]);
    memset(noted, 0, sizeof noted);
}

static void forget_ring(void) {
    forget_buffers();
    ring = (struct vram_ring){.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
}

void vram_move_forget_context(cuda_handle context) {
    if (ring.context == context) forget_ring();
    if (hash.context == context) hash = (struct vram_hash){0};
    if (hash.without == context) hash.without = NULL;
    vram_stock_forget(context);
}

static void vram_move_abandon(void) {
    mover = quieting = false;
    pinning = NULL;
    waiting = 0;
    held = NULL;
    memset(noted, 0, sizeof noted); /* the child's ledger does not list them */
    forget_ring();
    hash = (struct vram_hash){0};
}
FORKED(vram_move_abandon);

/* --- moving blocks --- */

struct move {
    const struct vram_move_options *options;
    struct vram_block *last; /* the block that was chosen most recently: the search goes on behind it */
    enum vram_refusal refusal;
    int error;
    uint64_t moved;
    uint64_t expected;                     /* how many bytes may still go out */
    bool settled;                          /* no copy of an earlier move goes on */
    bool fits;                             /* the device surely has memory for all blocks that come back */
    struct vram_block *batch[VRAM_HASHES]; /* blocks that were taken, and that leave next */
    struct vram_unchanged unchanged;
    struct vram_leaving leaving;
};

/* Notes why a block stayed. The first reason counts. But a reason that concerns the whole move, other than
 * VRAM_REFUSAL_EMPTY, replaces one that concerns a single block. */
static void vram_move_refuse(struct move *self, enum vram_refusal why, int error) {
    bool says_more =
        vram_refusal_is_of_blocks(self->refusal) && !vram_refusal_is_of_blocks(why) && why != VRAM_REFUSAL_EMPTY;
    if (self->refusal && !says_more) return;
    self->refusal = why;
    self->error = error;
}

/* Notes that the ring belongs to another context now. Wakes the threads that wait, because a thread that ends the
 * ring's old context need not wait for the ring any more. */
static void ring_goes_to(cuda_handle context) {
    vram_table_lock();
    ring.context = context;
    vram_table_changed();
    vram_table_let_go();
}

/* Makes the ring ready for a context. All contexts share one small ring, because its memory stays pinned. */
static int ring_ready(cuda_handle context, uint32_t device) {
    if (ring.context && ring.context != context) {
        struct vram_visit visit;
        int error = vram_driver_enter(&vram_driver, ring.context, &visit);
        if (error) return error;
        error = vram_hash_end(&vram_driver, &hash);
        if (!error) error = vram_ring_end(&vram_driver, &ring);
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

/* Writes a block to a file. A write beyond the file size limit also raises a signal (SIGXFSZ). Its handlers must not
 * run on this thread, so signals are blocked. */
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

static void finish_copied(struct move *self, struct vram_block *block, enum vram_refusal why) {
    vram_leaving_add_copied(&self->leaving, block, why, self->error);
}

/* Called when the host has too little memory for the backup of a block. Copies the block to a file, if that is
 * allowed. */
static void leave_for_file(struct move *self, struct vram_block *block) {
    vram_leaving_end(&self->leaving);
    finish_copied(self, block, write_out(self, block));
}

/* Compares the copy of the block that was added last with the original. */
static void verify(struct move *self, struct vram_block *block) {
    struct vram_leaving_block *of = vram_leaving_wait(&self->leaving);
    bool same = true;
    if (of->why) return;
    of->error = vram_ring_compare(&vram_driver, &ring, block->backup, block->at, block->size,
                                  block->backup_kind == VRAM_IN_FILE, &same);
    of->why = of->error ? VRAM_REFUSAL_DRIVER : same ? VRAM_REFUSAL_DONE : VRAM_REFUSAL_CHANGED;
}

static void leave_without_content(struct move *self, struct vram_block *block) {
    vram_backup_drop(block);
    block->backup_kind = VRAM_DISCARDED;
    finish_copied(self, block, VRAM_REFUSAL_DONE);
}

/* Takes a block off its device without a copy, because its standby backup has the same content. */
static void leave_unchanged(struct move *self, struct vram_block *block) {
    self->unchanged.bytes += block->size;
    finish_copied(self, block, VRAM_REFUSAL_DONE);
}

static bool wants_hashes(const struct move *self) { return self->options->limits.standby && !self->options->discard; }

/* Begins to take a block off its device. The block's context is the current one. While a kernel may still read blocks
 * to hash them (hash.unsettled), a block leaves only if its content is discarded. */
static void leave(struct move *self, struct vram_block *block) {
    bool has_backup = vram_backup_use(block);
    if (self->options->discard) return leave_without_content(self, block);
    if (!wants_hashes(self)) block->hashed = block->unchanged = false;
    self->error = hash.unsettled ? 0 : ring_ready(block->context, block->device);
    if (hash.unsettled)
        finish_copied(self, block, self->unchanged.error == VRAM_HASH_LATE ? VRAM_REFUSAL_BUSY : VRAM_REFUSAL_DRIVER);
    else if (self->error)
        finish_copied(self, block, VRAM_REFUSAL_DRIVER);
    else if (has_backup && block->unchanged)
        leave_unchanged(self, block);
    else if (has_backup || vram_backup_make(&vram_driver, block, &self->options->limits, self->expected))
        vram_leaving_add(&self->leaving, block);
    else
        leave_for_file(self, block);
    self->expected -= block->size < self->expected ? block->size : self->expected;
    if (self->options->verify) verify(self, block);
}

static int settle_once(struct move *self) {
    int error = self->settled ? 0 : vram_ring_settle(&vram_driver, &ring);
    self->settled = !error;
    return error;
}

/* Gives a block its device memory, and begins to copy its content into that memory. */
static enum vram_refusal copy_in(struct move *self, struct vram_block *block) {
    typedef int copies(const struct vram_driver *, struct vram_ring *, uint64_t, const char *, uint64_t);
    /* The index is enum vram_backup_kind. */
    static copies *const by[] = {vram_ring_in, vram_ring_in_pinned, vram_ring_in_from_file};
    if ((self->error = vram_block_fill(&vram_driver, block))) return VRAM_REFUSAL_DRIVER;
    if (block->backup_kind == VRAM_DISCARDED) return VRAM_REFUSAL_DONE;
    if ((self->error = ring_ready(block->context, block->device))) return VRAM_REFUSAL_DRIVER;
    if ((self->error = settle_once(self))) return VRAM_REFUSAL_DRIVER;
    self->error = by[block->backup_kind](&vram_driver, &ring, block->at, block->backup, block->size);
    if (self->error == VRAM_UNREADABLE) return VRAM_REFUSAL_DISK_ERROR;
    return self->error ? VRAM_REFUSAL_DRIVER : VRAM_REFUSAL_DONE;
}

/* Waits for all copies in the ring's context, which is that of the latest block. Copies in other contexts are over,
 * because the ring was settled before it went to another context. */
static enum vram_refusal wait_for_copies(struct move *self, struct vram_block *block) {
    (void)block;
    self->error = vram_ring_settle(&vram_driver, &ring);
    return self->error ? VRAM_REFUSAL_DRIVER : VRAM_REFUSAL_DONE;
}

/* Makes the driver's default pool give back the memory that it keeps after the program has freed it. This is tried
 * before a move back fails for lack of memory. */
static void trim_pool(uint32_t device) {
    cuda_handle pool;
    if (!vram_driver.cuDeviceGetDefaultMemPool(&pool, (int)device)) vram_driver.cuMemPoolTrimTo(pool, 0);
}

static enum vram_refusal vram_move_make(struct move *self, struct vram_block *block) {
    self->error = vram_block_make(&vram_driver, block);
    if (self->error == CUDA_OUT_OF_MEMORY) {
        trim_pool(block->device);
        vram_memory_wait_freed();
        self->error = vram_block_make(&vram_driver, block);
    }
    if (!self->error) return VRAM_REFUSAL_DONE;
    return self->error == CUDA_OUT_OF_MEMORY ? VRAM_REFUSAL_NO_VRAM : VRAM_REFUSAL_DRIVER;
}

typedef enum vram_refusal step(struct move *self, struct vram_block *block);

/* Does one step of the move of a block, in the block's context. False: the step was refused. */
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

/* The first block in this state, from `block` on, that this move may try. `context` NULL: a block of any context. */
static struct vram_block *vram_move_search(const struct move *self, struct vram_block *block, cuda_handle context,
                                           enum vram_state state) {
    while (block && !((!context || block->context == context) && is_next(self, block, state))) block = block->next;
    return block;
}

/* Chooses the next block: if possible, one of the same context as `last`, the block chosen before. For another context,
 * the ring's buffers must be pinned again. The search goes on behind `last`, so that a move need not look at the blocks
 * in front of it again. Only if it finds none, the search begins again at the first block, for any context.
 * If the mover has taken `last`, `last` is still in the table, because the mover has not given it back yet. */
static struct vram_block *vram_move_choose(const struct move *self, enum vram_state state) {
    struct vram_block *from = self->last ? self->last->next : vram_table_first();
    cuda_handle context = self->last ? self->last->context : ring.context;
    struct vram_block *block = context ? vram_move_search(self, from, context, state) : NULL;
    return block ? block : vram_move_search(self, vram_table_first(), NULL, state);
}

/* Takes a block in this state that this move has not tried yet. The caller holds the table's lock. */
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

/* Drops a block's backup. If the device may still write to the backup, the backup's memory stays until
 * vram_backup_collect. */
static void drop_backup(struct vram_block *block) {
    if (block->backup_kind == VRAM_PINNED && ring.unsettled) vram_backup_leave(block);
    vram_backup_drop(block);
}

/* Frees the backups that moves have given up, if no copy is in progress. Unused pinned memory and standby backups stay
 * for the next move, as long as the system has at least as much memory left as they take. */
static void collect_backups(void) {
    if (ring.unsettled) return;
    vram_backup_collect();
    if (pressure_left() < vram_stock_bytes() + vram_backup_standby()) vram_standby_drop_all();
    if (pressure_left() < vram_stock_bytes()) vram_stock_shrink(&vram_driver);
}

static bool must_stop(const struct move *self) { return move_is_ended(self->options->end) || vram_thread_must_end(); }

/* Takes the next block to move out. `first`: this block is the first of those that move together. The wait for all
 * contexts is over, so `quieting` becomes false. From now on, a thread that ends a context waits for the mover only if
 * the mover uses that context (works_in). */
static struct vram_block *take_next(struct move *self, bool first) {
    vram_table_lock();
    struct vram_block *block = must_stop(self) ? NULL : next_block(self, VRAM_LIVE);
    if (block) block->in_move = first ? NULL : held;
    if (block || first) held = block;
    quieting = false;
    vram_table_changed();
    vram_table_let_go();
    return block;
}

/* Takes the next blocks to move out. A move that hashes blocks takes as many as it hashes at once. Any other move takes
 * one block. */
static uint32_t take_batch(struct move *self) {
    uint32_t count = 0, most = wants_hashes(self) ? VRAM_HASHES : 1;
    while (count < most && (self->batch[count] = take_next(self, !count))) count++;
    return count;
}

/* Gives back a block whose copy is over. If the copy is complete, unmaps the block, and gives it back as stowed.
 * Otherwise gives it back as it was, because the content is still on the device. Physical memory that the driver does
 * not release now is released at the next attempt, or used again. */
static void has_left(void *context, struct vram_block *block, enum vram_refusal why, int error) {
    struct move *self = context;
    if (!why) vram_block_strip(&vram_driver, block);
    if (!why && block->mapped) why = VRAM_REFUSAL_DRIVER;
    if (why) vram_move_refuse(self, why, error);
    if (why) drop_backup(block);
    if (!why) self->moved += block->size, block->left_ns = os_now(), block->trigger = self->options->trigger;
    block->copied = why && (ring.unsettled || hash.unsettled);
    vram_end_give_back(block, why ? VRAM_LIVE : VRAM_STOWED);
    if (!why) __atomic_fetch_add(&left, 1, __ATOMIC_RELEASE);
}

static void end_leaving(struct move *self) {
    struct vram_visit visit;
    int error = vram_driver_enter(&vram_driver, ring.context, &visit);
    vram_leaving_end(&self->leaving);
    if (!error) vram_driver_leave(&vram_driver, &visit);
}

static void leave_in_its_context(struct move *self, struct vram_block *block) {
    struct vram_visit visit;
    if (vram_leaving_any(&self->leaving) && ring.context != block->context) end_leaving(self);
    self->error = vram_driver_enter(&vram_driver, block->context, &visit);
    if (self->error) return finish_copied(self, block, VRAM_REFUSAL_DRIVER);
    leave(self, block);
    vram_driver_leave(&vram_driver, &visit);
}

/* --- hashing blocks before they leave */

/* Asks for the hashes of some blocks of one context, and waits for them. Returns 0 or an error. */
static int compute_hashes(struct move *self, struct vram_block *const *blocks, uint32_t count) {
    int error = ring_ready(blocks[0]->context, blocks[0]->device);
    if (!error) error = vram_hash_begin(&vram_driver, &hash, blocks[0]->context);
    if (error) return error;
    for (uint32_t i = 0; i < count && !error; i++)
        error = vram_hash_ask(&vram_driver, &hash, blocks[i]->at, blocks[i]->size);
    int waited = vram_hash_wait(&vram_driver, &hash, self->options->milliseconds);
    return error ? error : waited;
}

/* Notes the hash of a block's present content, and whether its standby backup has this content. */
static void note_hash(struct vram_block *block, const struct vram_hash_value *value) {
    block->unchanged = block->standby && block->hashed && value && vram_hash_same(value, &block->hash);
    block->hashed = value != NULL;
    if (value) block->hash = *value;
}

/* Hashes blocks of one context. A block whose hash is not known is copied, and its backup is not kept later. */
static void hash_blocks(struct move *self, struct vram_block *const *blocks, uint32_t count) {
    struct vram_hash_value value;
    struct vram_visit visit;
    if (vram_leaving_any(&self->leaving) && ring.context != blocks[0]->context) end_leaving(self);
    int error = vram_driver_enter(&vram_driver, blocks[0]->context, &visit);
    if (!error) {
        error = compute_hashes(self, blocks, count);
        vram_driver_leave(&vram_driver, &visit);
    }
    if (error) self->unchanged.error = error;
    for (uint32_t i = 0; i < count; i++)
        note_hash(blocks[i], !error && vram_hash_result(&hash, i, &value) ? &value : NULL);
}

/* How many blocks from number `first` on are of one context. */
static uint32_t of_one_context(const struct move *self, uint32_t first, uint32_t count) {
    uint32_t i = first + 1;
    while (i < count && self->batch[i]->context == self->batch[first]->context) i++;
    return i - first;
}

/* Gives back a block that stays because the move must stop. Sets `copied` if the device may still copy, or if a kernel
 * may still read the block to hash it. */
static void stay(struct vram_block *block) {
    block->copied = ring.unsettled || hash.unsettled;
    vram_end_give_back(block, VRAM_LIVE);
}

static void leave_batch(struct move *self, uint32_t count) {
    for (uint32_t first = 0, n; first < count; first += n) {
        n = of_one_context(self, first, count);
        if (wants_hashes(self) && !must_stop(self)) hash_blocks(self, self->batch + first, n);
        for (uint32_t i = first; i < first + n; i++)
            if (must_stop(self))
                stay(self->batch[i]);
            else
                leave_in_its_context(self, self->batch[i]);
    }
}

/* Waits for the hashes that an earlier move asked for and did not get. Until this wait succeeds, no block leaves with
 * its content (leave). So every move out calls this, even a move that needs no hashes itself. */
static void settle_hashes(struct move *self) {
    struct vram_visit visit;
    if (!hash.unsettled) return;
    self->unchanged.error = vram_driver_enter(&vram_driver, hash.context, &visit);
    if (self->unchanged.error) return;
    self->unchanged.error = vram_hash_wait(&vram_driver, &hash, self->options->milliseconds);
    vram_driver_leave(&vram_driver, &visit);
}

/* Moves blocks out batch by batch, so that a thread that frees a block need not wait for the whole move. */
static void move_out(struct move *self) {
    settle_hashes(self);
    uint32_t count = take_batch(self);
    if (!count)
        vram_move_refuse(self, move_is_ended(self->options->end) ? VRAM_REFUSAL_CANCELLED : VRAM_REFUSAL_EMPTY, 0);
    self->expected = vram_sums(self->options->owner, UINT32_MAX).live;
    self->leaving = (struct vram_leaving){.driver = &vram_driver, .ring = &ring, .over = has_left, .context = self};
    for (; count; count = hash.unsettled ? 0 : take_batch(self)) leave_batch(self, count);
    if (vram_leaving_any(&self->leaving)) end_leaving(self);
    if (self->options->unchanged) *self->options->unchanged = self->unchanged;
}

static void vram_move_strip(struct vram_block *block) {
    struct vram_visit visit;
    /* if this fails, the block keeps its device memory until the next attempt */
    if (vram_driver_enter(&vram_driver, NULL, &visit)) return;
    vram_block_strip(&vram_driver, block);
    vram_driver_leave(&vram_driver, &visit);
}

/* Adds a block to a list in which blocks of one context are together. */
static void add_to_move(struct vram_block **all, struct vram_block *block) {
    while (*all && (*all)->context != block->context) all = &(*all)->in_move;
    block->in_move = *all;
    *all = block;
}

/* Sets self->fits: whether the device surely has memory for all blocks in the list `all`. It is false if these blocks
 * are of several contexts. */
static enum vram_refusal ask_whether_it_fits(struct move *self, struct vram_block *all) {
    size_t free_bytes = 0, total;
    uint64_t needed = 0;
    self->fits = !vram_driver.cuMemGetInfo_v2(&free_bytes, &total);
    for (const struct vram_block *block = all; block; block = block->in_move) {
        needed += block->size;
        if (block->context != all->context) self->fits = false;
    }
    if (needed > free_bytes) self->fits = false;
    return VRAM_REFUSAL_DONE;
}

/* Begins to bring back the blocks. If memory may be short, all blocks get their memory first, so that nothing is
 * copied in vain. Otherwise the device copies one block while the next one gets its memory. Returns the block
 * whose copy was begun last; NULL: no copy was begun. */
static struct vram_block *begin_to_copy_in(struct move *self, struct vram_block *all) {
    struct vram_block *block, *last = NULL;
    if (all) in_its_context(self, all, ask_whether_it_fits);
    for (block = all; block && !self->refusal && !self->fits; block = block->in_move)
        in_its_context(self, block, vram_move_make);
    for (block = all; block && !self->refusal; block = block->in_move) {
        if (self->fits && !in_its_context(self, block, vram_move_make)) break;
        in_its_context(self, last = block, copy_in);
    }
    return last;
}

static void holds_no_more_than(struct vram_block *rest) {
    vram_table_lock();
    held = rest;
    vram_table_let_go();
}

/* Moves back all blocks or none, because a model with a missing part cannot be used. */
static void move_in(struct move *self) {
    struct vram_block *all = NULL, *last, *block, *next;
    vram_table_lock();
    while ((block = next_block(self, VRAM_STOWED))) add_to_move(&all, block);
    held = all;
    vram_table_let_go();
    if (!all) vram_move_refuse(self, VRAM_REFUSAL_EMPTY, 0);
    last = begin_to_copy_in(self, all);
    if (last && !self->refusal) in_its_context(self, last, wait_for_copies);
    for (block = all; block; block = next) {
        next = block->in_move;
        block->copied = ring.unsettled;
        if (self->refusal && !ring.unsettled) vram_move_strip(block);
        if (!self->refusal && !vram_backup_keep(block, &self->options->limits)) vram_backup_drop(block);
        /* The memory gets a new id. The id tells a client that registered the memory to register it again. */
        if (!self->refusal) self->moved += block->size, block->id = vram_table_id();
        holds_no_more_than(next);
        vram_end_give_back(block, self->refusal ? VRAM_STOWED : VRAM_LIVE);
    }
}

static bool is_over(uint64_t since, uint32_t milliseconds) {
    return os_now() >= since + milliseconds * (uint64_t)1000000;
}

/* Whether a move must still wait before it begins. A move that must stop does not wait. Any other move waits for:
 * - pinning ahead of need. Otherwise the move would pin memory itself, which takes as long. With `at_once`, the move
 *   waits no longer than PINNING_MS after the pinning began, because the driver may hang.
 * - another move, but not with `at_once`, and not if this thread itself made a call that ends a context.
 * - calls that end a context, with the same two exceptions, and no longer than ENDING_MS after *since. This limit
 *   is for a call that the program has left by longjmp. memstow does not see that if the call's frame is intact and its
 *   thread waits in a function whose frame is below the call's frame.
 * *since: when the wait began, or when another move or pinning was last seen. */
static bool must_wait(const struct move *self, uint64_t *since) {
    bool at_once = self->options->at_once;
    if (must_stop(self)) return false;
    if (mover || pinning) *since = os_now();
    if (pinning && !(at_once && is_over(pinning_since, PINNING_MS))) return true;
    bool ending = vram_dying_any() && !is_over(*since, ENDING_MS);
    return (mover || ending) && !at_once && !vram_dying_is_mine();
}

/* Begins a move. There is one move at a time, and none while memory is pinned ahead of need or a call ends a context.
 * So this function first waits as long as must_wait says. False: the move is refused, because it must stop, or because
 * another move, pinning or such a call is still in progress. */
static bool begin_move(struct move *self, bool out) {
    uint64_t since = os_now();
    vram_table_lock();
    for (waiting++; must_wait(self, &since);) vram_table_wait_briefly();
    waiting--;
    if (must_stop(self)) vram_move_refuse(self, VRAM_REFUSAL_CANCELLED, 0);
    if (mover || pinning || vram_dying_any()) vram_move_refuse(self, VRAM_REFUSAL_AT_WORK, 0);
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

/* Whether the end of the context would disturb a move or the pinning of memory. A move also uses memory that was pinned
 * in other contexts than its own (vram_stock_serves). */
static bool works_in(cuda_handle context) {
    if (quieting || (mover && ring.context == context) || pinning == context) return true;
    if (mover && vram_stock_serves(context)) return true;
    for (const struct vram_block *block = held; block; block = block->in_move)
        if (block->context == context) return true;
    return false;
}

/* Waits until no move works in the context. Otherwise the driver would free the ring's buffers with the context while
 * the mover still uses them. If the list of calls that end contexts (vram_dying.h) stays full, this call goes on
 * without an entry. */
void vram_move_hold_off(cuda_handle context, uintptr_t *mark) {
    uint64_t since = os_now();
    vram_table_lock();
    while (!vram_dying_comes(context, mark) && !is_over(since, ENDING_MS))
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

bool vram_move_begin_pinning(cuda_handle context) {
    if (mover || pinning || waiting || vram_dying_maybe()) return false;
    pinning = context;
    pinning_since = os_now();
    return true;
}

void vram_move_end_pinning(void) {
    vram_table_lock();
    pinning = NULL;
    vram_table_changed();
    vram_table_let_go();
}

bool vram_move_lacks_buffers(cuda_handle context) {
    return !ring.context || (ring.context == context && !ring.slot[VRAM_SLOTS - 1]);
}

int vram_move_make_buffers(cuda_handle context, uint32_t device) { return ring_ready(context, device); }

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

/* Waits until no work runs in any context. Nothing tells which contexts use a block, so all contexts are waited for.
 * False: the move is refused. */
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

/* Blocks signals during the move. Otherwise a signal handler could leave the move by longjmp: then the mover's blocks
 * would stay taken for ever, and no other move could begin. */
static void move_all(struct move *self, bool out) {
    uint64_t signals;
    bool blocked = lock_out_signals(&signals);
    if (begin_move(self, out)) {
        if (!out || is_quiet(self)) {
            vram_memory_give_back();
            (out ? move_out : move_in)(self);
        }
        collect_backups();
        end_move();
    }
    if (blocked) lock_let_signals(signals);
}

void vram_move_shrink(void) {
    struct move self = {.options = &(struct vram_move_options){.at_once = true}};
    uint64_t signals;
    if (!vram_driver_is_on() || !(vram_stock_bytes() || vram_backup_standby())) return;
    bool blocked = lock_out_signals(&signals);
    if (begin_move(&self, false)) {
        vram_standby_drop_all();
        vram_stock_shrink(&vram_driver);
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
