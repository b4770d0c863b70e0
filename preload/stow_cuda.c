/* stow_cuda.c — see stow_cuda.h. The table is locked for looking things up, never while the driver works on a block:
 * that one is marked as moving, and who wants it waits. One move at a time. */
#include "stow_cuda.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "arena.h"
#include "os.h"
#include "vram_quiet.h"
#include "vram_ring.h"

enum { OUT_OF_MEMORY = 2, NO_TIMING = 2, RINGS = 8 };

static struct vram_driver driver;
static bool on;
static struct vram_block *blocks, *unused;
static uint32_t lock, turn; /* futexes: held (2: waited for); counts blocks that have ended moving */
static bool mover;
static uint64_t backup_bytes; /* of the host's memory */
static uint32_t moves;        /* the number of the one at work, or of the last */
static cuda_handle contexts[VRAM_CONTEXTS];
static uint32_t context_count;
static struct vram_ring rings[RINGS];

/* --- the lock, and blocks that move --- */

static void take_lock(void) {
    uint32_t was = 0;
    if (__atomic_compare_exchange_n(&lock, &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&lock, 2, __ATOMIC_ACQUIRE)) os_call(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, NULL);
}

static void let_go(void) {
    if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) == 2) os_call(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1);
}

/* With the lock, which is given up while waiting: the caller looks anew. */
static void wait_turn(void) {
    uint32_t seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
    let_go();
    os_call(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, NULL);
    take_lock();
}

static void next_turn(void) {
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    os_call(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static struct vram_block *find(uint64_t at) {
    for (struct vram_block *block = blocks; block; block = block->next)
        if (block->state != VRAM_WRECK && at - block->at < block->size) return block;
    return NULL;
}

/* The block that begins there, and is the caller's from now on; NULL: none. */
static struct vram_block *take_block(uint64_t at) {
    for (;;) {
        struct vram_block *block = find(at);
        if (!block || block->at != at || block->state == VRAM_FREEING) return NULL;
        if (!block->moving) {
            block->moving = true;
            return block;
        }
        wait_turn();
    }
}

static struct vram_block *block_new(void) {
    struct vram_block *self = unused;
    if (self)
        unused = self->next;
    else
        self = arena_take(sizeof *self);
    if (self) memset(self, 0, sizeof *self);
    return self;
}

static void block_drop(struct vram_block *self) {
    struct vram_block **link = &blocks;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    self->next = unused;
    unused = self;
}

/* --- ends --- */

static void drop_backup(struct vram_block *self) {
    if (!self->backup) return;
    os_unmap(self->backup, self->size);
    self->backup = NULL;
    take_lock();
    backup_bytes -= self->size;
    let_go();
}

/* Without the lock; `self` is the caller's. What the driver would not take back stays as a wreck. */
static void end_block(struct vram_block *self) {
    take_lock();
    self->state = VRAM_WRECK; /* nobody finds it any more */
    let_go();
    drop_backup(self);
    bool gone = vram_block_end(&driver, self);
    if (gone && self->event) gone = !driver.cuEventDestroy_v2(self->event);
    take_lock();
    self->moving = false;
    if (gone) block_drop(self);
    next_turn();
    let_go();
}

static bool is_ripe(struct vram_block *self) {
    if (self->moving) return false;
    if (self->state == VRAM_WRECK) return true;
    return self->state == VRAM_FREEING && !driver.cuEventQuery(self->event);
}

/* Ends what is freed and has been executed, and tries wrecks again. Whoever comes by does it. */
static void reap(void) {
    struct vram_block *ripe[16];
    uint32_t count = 0;
    take_lock();
    for (struct vram_block *block = blocks; block && count < 16; block = block->next)
        if (is_ripe(block)) {
            block->moving = true;
            ripe[count++] = block;
        }
    let_go();
    for (uint32_t i = 0; i < count; i++) end_block(ripe[i]);
}

/* --- beginning --- */

bool stow_cuda_begin(void *(*find_function)(const char *name)) {
    on = vram_driver_find(&driver, find_function);
    for (uint32_t i = 0; i < RINGS; i++) rings[i].slot_bytes = VRAM_SLOT, rings[i].copiers = VRAM_COPIERS;
    return on;
}

bool stow_cuda_is_on(void) { return on; }

void stow_cuda_abandon(void) {
    blocks = unused = NULL;
    lock = turn = context_count = 0;
    mover = false;
    backup_bytes = 0;
    memset(rings, 0, sizeof rings);
    on = false;
    vram_quiet_abandon();
}

void stow_cuda_context(cuda_handle context) {
    uint32_t i = 0;
    take_lock();
    while (i < context_count && contexts[i] != context) i++;
    if (i == context_count && i < VRAM_CONTEXTS && context) contexts[context_count++] = context;
    let_go();
}

static void forget_context(cuda_handle context) {
    for (uint32_t i = 0; i < context_count; i++)
        if (contexts[i] == context) contexts[i] = contexts[--context_count];
    for (uint32_t i = 0; i < RINGS; i++)
        if (rings[i].context == context)
            rings[i] = (struct vram_ring){.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
}

static struct vram_block *of_context(cuda_handle context) {
    for (struct vram_block *block = blocks; block; block = block->next)
        if (block->context == context && block->state != VRAM_WRECK) return block;
    return NULL;
}

/* Memory of this kind is no context's to the driver: it is given back here. */
void stow_cuda_context_ended(cuda_handle context) {
    struct vram_block *block;
    take_lock();
    forget_context(context);
    while ((block = of_context(context))) {
        if (block->moving) {
            wait_turn();
            continue;
        }
        block->moving = true;
        block->event = NULL; /* it went with its context */
        let_go();
        end_block(block);
        take_lock();
    }
    let_go();
}

/* --- serving --- */

int stow_cuda_serve(const struct stow_cuda_request *request, uint64_t *at) {
    if (!on || !request->bytes || request->device >= VRAM_DEVICES) return OUT_OF_MEMORY;
    reap();
    stow_cuda_context(request->context);
    take_lock();
    struct vram_block *self = block_new();
    let_go();
    if (!self) return OUT_OF_MEMORY;
    vram_block_plan(self, request->bytes);
    self->device = request->device;
    self->owner = request->owner;
    self->context = request->context;
    self->in_stream = request->in_stream;
    self->devices = request->devices | (uint64_t)1 << request->device;
    self->moving = true;
    int error = vram_block_reserve(&driver, self);
    if (!error) error = vram_block_fill(&driver, self);
    take_lock();
    self->next = blocks;
    blocks = self;
    let_go();
    if (error) {
        end_block(self);
        return error;
    }
    *at = self->at;
    take_lock();
    self->moving = false;
    let_go();
    return 0;
}

bool stow_cuda_free(uint64_t at, int *result) {
    take_lock();
    struct vram_block *self = take_block(at);
    let_go();
    if (!self) return false;
    end_block(self);
    *result = 0;
    return true;
}

static void give_back(struct vram_block *self, enum vram_state state) {
    take_lock();
    self->state = state;
    self->moving = false;
    next_turn();
    let_go();
}

/* What is stowed is used by nobody; else its end waits for what is on the stream. */
bool stow_cuda_free_in(uint64_t at, cuda_handle stream, int *result) {
    reap();
    take_lock();
    struct vram_block *self = take_block(at);
    let_go();
    if (!self) return false;
    *result = 0;
    if (self->state == VRAM_STOWED) {
        end_block(self);
        return true;
    }
    if (!self->event) *result = driver.cuEventCreate(&self->event, NO_TIMING);
    if (!*result) *result = driver.cuEventRecord(self->event, stream);
    give_back(self, *result ? VRAM_LIVE : VRAM_FREEING);
    return true;
}

bool stow_cuda_find(uint64_t address, struct stow_cuda_found *out) {
    take_lock();
    const struct vram_block *found = find(address);
    if (found) *out = (struct stow_cuda_found){found->at, found->state, found->in_stream};
    let_go();
    return found != NULL;
}

void stow_cuda_refuse(uint64_t address) {
    take_lock();
    struct vram_block *found = find(address);
    if (found) found->refused = true;
    let_go();
}

struct stow_cuda_sums stow_cuda_sums(uint32_t owner, uint32_t device) {
    struct stow_cuda_sums sums = {0};
    take_lock();
    sums.backup = backup_bytes;
    for (const struct vram_block *block = blocks; block; block = block->next) {
        if ((owner && block->owner != owner) || (device != UINT32_MAX && block->device != device)) continue;
        if (block->state == VRAM_LIVE) sums.live += block->size;
        if (block->state == VRAM_STOWED) sums.stowed += block->size;
        sums.blocks += block->state == VRAM_LIVE || block->state == VRAM_STOWED;
        sums.wrecks += block->state == VRAM_WRECK;
    }
    let_go();
    return sums;
}

uint64_t stow_cuda_in_streams(void) {
    uint64_t sum = 0;
    take_lock();
    for (const struct vram_block *block = blocks; block; block = block->next)
        if (block->in_stream && (block->state == VRAM_LIVE || block->state == VRAM_STOWED)) sum += block->asked;
    let_go();
    return sum;
}

void stow_cuda_change_owner(uint32_t from, uint32_t to) {
    take_lock();
    for (struct vram_block *block = blocks; block; block = block->next)
        if (block->owner == from) block->owner = to;
    let_go();
}

int stow_cuda_wait(void) { return driver.cuCtxSynchronize(); }

/* --- moving --- */

struct move {
    const struct stow_cuda_options *options;
    enum stow_cuda_refusal refusal;
    int error;
    uint64_t moved;
};

static void refuse(struct move *self, enum stow_cuda_refusal why, int error) {
    if (self->refusal) return;
    self->refusal = why;
    self->error = error;
}

const char *stow_cuda_refusal_text(uint32_t refusal) {
    static const char *const texts[STOW_CUDA_REFUSALS] = {
        [STOW_CUDA_DONE] = "done",
        [STOW_CUDA_EMPTY] = "it has no device memory that can move",
        [STOW_CUDA_CAPTURE] = "a stream is being captured",
        [STOW_CUDA_BUSY] = "a kernel did not end in time",
        [STOW_CUDA_NOT_IDLE] = "the owner is not declared idle",
        [STOW_CUDA_KNOWN] = "another process or device knows where the memory is",
        [STOW_CUDA_DRIVER] = "the driver answered with an error",
        [STOW_CUDA_NO_ROOM] = "no host memory to move it to",
        [STOW_CUDA_NO_VRAM] = "no device memory to bring it back to",
        [STOW_CUDA_CHANGED] = "it was written to while it was copied",
    };
    return refusal < STOW_CUDA_REFUSALS ? texts[refusal] : "unknown";
}

static struct vram_ring *ring_of(cuda_handle context) {
    struct vram_ring *free_one = NULL;
    for (uint32_t i = 0; i < RINGS; i++) {
        if (rings[i].context == context) return &rings[i];
        if (!rings[i].context && !free_one) free_one = &rings[i];
    }
    if (free_one) free_one->context = context;
    return free_one;
}

static int ring_ready(struct vram_ring *ring) { return ring ? vram_ring_begin(&driver, ring) : OUT_OF_MEMORY; }

static bool make_backup(const struct move *self, struct vram_block *block) {
    uint64_t most = self->options->most;
    take_lock();
    bool fits = !most || backup_bytes + block->size <= most;
    if (fits) backup_bytes += block->size;
    let_go();
    if (!fits) return false;
    if ((block->backup = os_map(block->size))) return true;
    take_lock();
    backup_bytes -= block->size;
    let_go();
    return false;
}

/* In its context. Its content is on the device until the last step but one, and in the backup from then on. */
static enum stow_cuda_refusal take_out(struct move *self, struct vram_block *block) {
    struct vram_ring *ring = ring_of(block->context);
    bool same = true;
    if ((self->error = ring_ready(ring))) return STOW_CUDA_DRIVER;
    if (!make_backup(self, block)) return STOW_CUDA_NO_ROOM;
    os_call(SYS_madvise, block->backup, block->size, MADV_HUGEPAGE);
    self->error = vram_ring_out(&driver, ring, block->backup, block->at, block->size);
    if (!self->error && self->options->verify)
        self->error = vram_ring_compare(&driver, ring, block->backup, block->at, block->size, &same);
    if (self->error) return STOW_CUDA_DRIVER;
    if (!same) return STOW_CUDA_CHANGED;
    vram_block_strip(&driver, block); /* what of it is not released yet, is at the next attempt, or used again */
    return block->mapped ? STOW_CUDA_DRIVER : STOW_CUDA_DONE;
}

static enum stow_cuda_refusal bring_in(struct move *self, struct vram_block *block) {
    struct vram_ring *ring = ring_of(block->context);
    if ((self->error = ring_ready(ring))) return STOW_CUDA_DRIVER;
    self->error = vram_block_fill(&driver, block);
    if (self->error) return self->error == OUT_OF_MEMORY ? STOW_CUDA_NO_VRAM : STOW_CUDA_DRIVER;
    self->error = vram_ring_in(&driver, ring, block->at, block->backup, block->size);
    if (!self->error) return STOW_CUDA_DONE;
    if (!ring->unsettled) vram_block_strip(&driver, block);
    return STOW_CUDA_DRIVER;
}

typedef enum stow_cuda_refusal step(struct move *self, struct vram_block *block);

/* The block is the mover's. */
static void move_one(struct move *self, struct vram_block *block, step *move) {
    struct vram_visit visit;
    enum vram_state before = block->state, after = before == VRAM_LIVE ? VRAM_STOWED : VRAM_LIVE;
    int error = vram_driver_enter(&driver, block->context, &visit);
    enum stow_cuda_refusal why = error ? STOW_CUDA_DRIVER : move(self, block);
    if (!error) vram_driver_leave(&driver, &visit);
    if (why)
        refuse(self, why, error ? error : self->error);
    else
        self->moved += block->size;
    if ((why ? before : after) == VRAM_LIVE) drop_backup(block);
    give_back(block, why ? before : after);
}

/* A block in this state that this move has not looked at yet, the caller's from now on. */
static struct vram_block *next_block(struct move *self, enum vram_state state) {
    for (struct vram_block *block = blocks; block; block = block->next) {
        if (block->state != state || block->moving || block->tried == moves) continue;
        if (self->options->owner && block->owner != self->options->owner) continue;
        block->tried = moves;
        if (!block->refused || state == VRAM_STOWED) {
            block->moving = true;
            return block;
        }
        refuse(self, STOW_CUDA_KNOWN, 0);
    }
    return NULL;
}

static void move_all(struct move *self, enum vram_state state, step *move) {
    bool any = false;
    for (;;) {
        take_lock();
        struct vram_block *block = next_block(self, state);
        let_go();
        if (!block) break;
        any = true;
        move_one(self, block, move);
    }
    if (!any) refuse(self, STOW_CUDA_EMPTY, 0);
}

/* One move at a time; who comes second waits. */
static void begin_move(void) {
    take_lock();
    while (mover) wait_turn();
    mover = true;
    moves++;
    let_go();
}

static void end_move(void) {
    take_lock();
    mover = false;
    next_turn();
    let_go();
}

/* Nothing may be running that uses what moves, in any context: a block says nothing about who does. */
static bool is_quiet(struct move *self) {
    cuda_handle all[VRAM_CONTEXTS];
    take_lock();
    uint32_t count = context_count;
    memcpy(all, contexts, sizeof all);
    let_go();
    int error = vram_quiet(&driver, all, count, self->options->milliseconds);
    if (error) refuse(self, error == VRAM_NOT_QUIET ? STOW_CUDA_BUSY : STOW_CUDA_DRIVER, error);
    return !error;
}

static bool has_any(uint32_t owner, enum vram_state state) {
    struct stow_cuda_sums sums = stow_cuda_sums(owner, UINT32_MAX);
    return state == VRAM_LIVE ? sums.live : sums.stowed;
}

static uint64_t move_state(const struct stow_cuda_options *options, enum vram_state state, step *move,
                           enum stow_cuda_refusal *refusal, int *error) {
    struct move self = {.options = options};
    if (!on || !has_any(options->owner, state)) {
        refuse(&self, STOW_CUDA_EMPTY, 0);
    } else if (options->capturing) {
        refuse(&self, STOW_CUDA_CAPTURE, 0);
    } else {
        begin_move();
        reap();
        if (state == VRAM_STOWED || is_quiet(&self)) move_all(&self, state, move);
        end_move();
    }
    *refusal = self.refusal;
    *error = self.refusal == STOW_CUDA_DONE ? 0 : self.error;
    return self.moved;
}

uint64_t stow_cuda_out(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error) {
    return move_state(options, VRAM_LIVE, take_out, refusal, error);
}

uint64_t stow_cuda_in(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error) {
    return move_state(options, VRAM_STOWED, bring_in, refusal, error);
}
