/* stow_cuda.c — see stow_cuda.h. A block on which the driver works belongs to one caller alone; others wait for it. One
 * move at a time. */
#include "preload/vram/stow_cuda.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_reach.h"
#include "preload/vram/vram_ring.h"
#include "preload/vram/vram_table.h"
#include "preload/base/forked.h"

enum { WAIT_FREED_MS = 5000 };

static struct vram_driver driver;
static bool on;
static bool mover;
static uint64_t streams_most[VRAM_DEVICES], streams_taken_most[VRAM_DEVICES];
static uint64_t reaches; /* how often access has changed */
static uint64_t left;    /* blocks that have left so far */
static uint32_t moves;   /* the number of the present move, or of the last one */
static cuda_handle contexts[VRAM_CONTEXTS];
static uint64_t contexts_seen[VRAM_CONTEXTS]; /* the last number of the table when the context was last reported */
static uint32_t context_count;
static bool context_missing;          /* there were more than VRAM_CONTEXTS */
static const char *noted[VRAM_SLOTS]; /* the ring's buffers that the ledger knows */
static struct vram_ring ring = {.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};

/* --- beginning --- */

bool stow_cuda_begin(void *(*find_function)(const char *name)) { return on = vram_driver_find(&driver, find_function); }

bool stow_cuda_is_on(void) { return on; }

static void forget_buffers(void) {
    for (int i = 0; i < VRAM_SLOTS; i++)
        if (noted[i]) vram_backup_forget_buffer(noted[i]);
    memset(noted, 0, sizeof noted);
}

static void forget_ring(void) {
    forget_buffers();
    ring = (struct vram_ring){.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
}

static void stow_cuda_abandon(void) {
    context_count = 0;
    memset(streams_most, 0, sizeof streams_most);
    memset(streams_taken_most, 0, sizeof streams_taken_most);
    mover = context_missing = on = false;
    memset(noted, 0, sizeof noted); /* the table is empty */
    forget_ring();
}
FORKED(stow_cuda_abandon);

/* --- contexts --- */

void stow_cuda_context(cuda_handle context) {
    uint32_t i = 0;
    vram_table_lock();
    while (i < context_count && contexts[i] != context) i++;
    if (i == VRAM_CONTEXTS) context_missing = true;
    if (i == context_count && i < VRAM_CONTEXTS && context) contexts[context_count++] = context;
    if (i < context_count) contexts_seen[i] = vram_table_last_number();
    vram_table_let_go();
}

uint32_t stow_cuda_contexts(cuda_handle to[VRAM_CONTEXTS], bool *missing) {
    vram_table_lock();
    uint32_t count = context_count;
    memcpy(to, contexts, sizeof contexts);
    *missing = context_missing;
    vram_table_let_go();
    return count;
}

static void forget_context(cuda_handle context, uint64_t end) {
    for (uint32_t i = 0; i < context_count; i++)
        if (contexts[i] == context && contexts_seen[i] < end) {
            contexts[i] = contexts[--context_count];
            contexts_seen[i] = contexts_seen[context_count];
        }
    if (ring.context == context) forget_ring();
    vram_end_context(context, end);
}

bool stow_cuda_device_of(cuda_handle context, uint32_t *device) {
    vram_table_lock();
    struct vram_block *block = vram_table_first();
    while (block && block->context != context) block = block->next;
    if (block) *device = block->device;
    vram_table_let_go();
    return block != NULL;
}

static bool ends_with(const struct vram_block *block, cuda_handle context, cuda_handle heir, uint64_t end) {
    return block->context == context && block->number < end && block->state != VRAM_WRECK &&
           !(heir && block->in_stream);
}

static struct vram_block *of_context(cuda_handle context, cuda_handle heir, uint64_t end) {
    struct vram_block *block = vram_table_first();
    while (block && !ends_with(block, context, heir, end)) block = block->next;
    return block;
}

static void inherit(cuda_handle context, cuda_handle heir, uint64_t end) {
    for (struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->context == context && block->number < end && block->in_stream && heir) block->context = heir;
}

uint64_t stow_cuda_end_begins(void) { return vram_table_number(); }

/* To the driver, memory of this kind belongs to no context. So it is given back here. */
void stow_cuda_context_ended(cuda_handle context, cuda_handle heir, uint64_t end) {
    struct vram_block *block;
    vram_table_lock();
    forget_context(context, end);
    while ((block = of_context(context, heir, end))) {
        if (block->moving) {
            vram_table_wait();
            continue;
        }
        block->moving = true;
        vram_table_let_go();
        vram_end_now(&driver, block);
        vram_table_lock();
    }
    inherit(context, heir, end);
    vram_table_let_go();
}

/* --- serving --- */

/* Our ids are above the driver's, which count up from the bottom. */
static uint64_t new_id(void) { return (uint64_t)1 << 62 | vram_table_number(); }

static struct vram_block *block_for(const struct stow_cuda_request *request) {
    vram_table_lock();
    struct vram_block *self = vram_table_new();
    vram_table_let_go();
    if (!self) return NULL;
    vram_block_plan(self, request->bytes);
    self->device = request->device;
    self->owner = request->owner;
    self->context = request->context;
    self->in_stream = request->in_stream;
    self->id = new_id();
    self->number = vram_table_number();
    self->devices = vram_reach_of(request->device, request->in_stream);
    self->moving = true;
    return self;
}

static int fill_new(struct vram_block *self) {
    struct vram_visit visit;
    int error = vram_driver_enter(&driver, NULL, &visit);
    if (error) return error;
    error = vram_block_reserve(&driver, self);
    if (!error) error = vram_block_fill(&driver, self);
    vram_driver_leave(&driver, &visit);
    return error;
}

static void note_most(uint32_t device) {
    struct stow_cuda_sums sums = stow_cuda_sums(0, device);
    os_raise(&streams_most[device], sums.in_streams);
    os_raise(&streams_taken_most[device], sums.streams_taken);
}

void stow_cuda_forget_most(uint32_t device, bool taken) {
    if (device >= VRAM_DEVICES) return;
    os_store(taken ? &streams_taken_most[device] : &streams_most[device], 0);
    note_most(device);
}

/* The caller has the block. */
static int reach(struct vram_block *block) {
    struct vram_visit visit;
    uint64_t devices = vram_reach_of(block->device, block->in_stream);
    if (likely(devices == block->devices)) return 0;
    int error = vram_driver_enter(&driver, NULL, &visit);
    if (error) return error;
    error = vram_block_open(&driver, block, devices);
    vram_driver_leave(&driver, &visit);
    return error;
}

/* Takes a block whose access must change, and that this search has not tried yet. */
static struct vram_block *next_to_reach(uint64_t search) {
    struct vram_block *block = vram_table_first();
    while (block) {
        bool is = block->state <= VRAM_STOWED && block->reached != search &&
                  block->devices != vram_reach_of(block->device, block->in_stream);
        if (is && !block->moving) break;
        if (is) vram_table_wait();
        block = is ? vram_table_first() : block->next;
    }
    if (block) block->reached = search, block->moving = true;
    return block;
}

int stow_cuda_reach(void) {
    int first = 0;
    if (!on || !vram_table_count()) return 0;
    uint64_t search = __atomic_add_fetch(&reaches, 1, __ATOMIC_RELAXED);
    for (;;) {
        vram_table_lock();
        struct vram_block *block = next_to_reach(search);
        vram_table_let_go();
        if (!block) return first;
        int error = reach(block);
        if (!first) first = error;
        vram_end_give_back(block, block->state);
    }
}

int stow_cuda_serve(const struct stow_cuda_request *request, uint64_t *at) {
    if (!on || !request->bytes || request->device >= VRAM_DEVICES) return CUDA_OUT_OF_MEMORY;
    stow_cuda_reap();
    stow_cuda_context(request->context);
    struct vram_block *self = block_for(request);
    if (!self) return CUDA_OUT_OF_MEMORY;
    int error = fill_new(self);
    vram_table_lock();
    vram_table_add(self);
    vram_table_let_go();
    if (!error) error = reach(self); /* a change of access before the block was in the table has not reached it */
    if (error) {
        vram_end_now(&driver, self);
        return error;
    }
    *at = self->at;
    vram_end_give_back(self, VRAM_LIVE);
    if (request->in_stream) note_most(request->device);
    return 0;
}

static struct vram_block *take(uint64_t at) {
    if (!vram_table_count()) return NULL;
    vram_table_lock();
    struct vram_block *self = vram_table_take(at);
    vram_table_let_go();
    return self;
}

static int wait_for_context(const struct vram_block *self) {
    struct vram_visit visit;
    int error = vram_driver_enter(&driver, self->context, &visit);
    if (error) return error;
    error = driver.cuCtxSynchronize();
    vram_driver_leave(&driver, &visit);
    return error;
}

/* A wait would break a capture. So none may be in progress, and none begins meanwhile. */
bool stow_cuda_free(uint64_t at, int *result) {
    struct vram_block *self = take(at);
    if (!self) return false;
    bool waits = !self->in_stream && self->state == VRAM_LIVE;
    *result = 0;
    if (waits && !cuda_captures_hold_off()) {
        vram_end_later(self);
        return true;
    }
    if (waits) {
        *result = wait_for_context(self);
        cuda_captures_go_on();
    }
    if (*result)
        vram_end_give_back(self, VRAM_LIVE);
    else
        vram_end_now(&driver, self);
    return true;
}

/* Nobody uses a stowed block. Any other block ends after the work on the stream. */
bool stow_cuda_free_in(uint64_t at, cuda_handle stream, int *result) {
    stow_cuda_reap();
    struct vram_block *self = take(at);
    if (!self) return false;
    *result = 0;
    if (self->state == VRAM_STOWED)
        vram_end_now(&driver, self);
    else
        *result = vram_end_in(&driver, self, stream);
    return true;
}

void stow_cuda_reap(void) { vram_end_ripe(&driver); }

bool stow_cuda_wait_freed(void) { return on && !cuda_captures_any() && vram_end_wait(&driver, WAIT_FREED_MS); }

/* --- questions --- */

static bool found(const struct vram_block *block, struct stow_cuda_found *out) {
    if (!block) return false;
    *out = (struct stow_cuda_found){.at = block->at,
                                    .asked = block->asked,
                                    .size = block->size,
                                    .id = block->id,
                                    .devices = block->devices,
                                    .context = block->context,
                                    .state = block->state,
                                    .device = block->device,
                                    .in_stream = block->in_stream,
                                    .rdma = block->rdma};
    return true;
}

bool stow_cuda_find(uint64_t at, struct stow_cuda_found *out) {
    if (!vram_table_count()) return false;
    vram_table_lock();
    bool is = found(vram_table_starting(at), out);
    vram_table_let_go();
    return is;
}

bool stow_cuda_around(uint64_t address, struct stow_cuda_found *out) {
    if (!vram_table_count()) return false;
    vram_table_lock();
    bool is = found(vram_table_around(address), out);
    vram_table_let_go();
    return is;
}

void stow_cuda_refuse(uint64_t address, enum stow_cuda_refusal why) {
    if (!vram_table_count()) return;
    vram_table_lock();
    struct vram_block *block = vram_table_around(address);
    if (block && !block->refused) block->refused = (uint8_t)why;
    vram_table_let_go();
}

static void add_to(struct stow_cuda_sums *sums, const struct vram_block *block) {
    if (block->state == VRAM_LIVE) sums->live += block->size;
    if (block->state == VRAM_STOWED) sums->stowed += block->size, sums->stowed_asked += block->asked;
    if (block->state <= VRAM_STOWED) sums->asked += block->asked;
    if (block->in_stream && block->state <= VRAM_STOWED) {
        sums->in_streams += block->asked;
        sums->streams_taken += block->size;
    }
    sums->blocks += block->state <= VRAM_STOWED;
    sums->wrecks += block->state == VRAM_WRECK;
}

struct stow_cuda_sums stow_cuda_sums(uint32_t owner, uint32_t device) {
    struct stow_cuda_sums sums = {.backup = vram_backup_bytes(VRAM_KEPT_KINDS),
                                  .in_streams_most = device < VRAM_DEVICES ? os_load(&streams_most[device]) : 0,
                                  .streams_taken_most =
                                      device < VRAM_DEVICES ? os_load(&streams_taken_most[device]) : 0};
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next)
        if ((!owner || block->owner == owner) && (device == UINT32_MAX || block->device == device))
            add_to(&sums, block);
    vram_table_let_go();
    return sums;
}

void stow_cuda_visit(stow_cuda_visitor *visit, void *context) {
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->state <= VRAM_STOWED) visit(block->owner, block->size, block->state == VRAM_STOWED, context);
    vram_table_let_go();
}

static enum stow_cuda_refusal why_kept(const struct vram_block *block) {
    if (block->refused) return (enum stow_cuda_refusal)block->refused;
    return block->mixed ? STOW_CUDA_MIXED : STOW_CUDA_DONE;
}

void stow_cuda_visit_kept(uint32_t owner, stow_cuda_kept_visitor *visit, void *context) {
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->owner == owner && block->state == VRAM_LIVE && why_kept(block))
            visit(why_kept(block), block->at, block->size, context);
    vram_table_let_go();
}

void stow_cuda_change_owner(uint32_t from, uint32_t to) {
    vram_table_lock();
    for (struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->owner == from) block->owner = to;
    vram_table_let_go();
}

bool stow_cuda_hold(uint64_t at, struct vram_block **held) {
    struct vram_block *block = *held = take(at);
    if (!block || block->state == VRAM_LIVE) return true;
    vram_end_give_back(block, block->state);
    return false;
}

void stow_cuda_assign(struct vram_block *held, uint32_t owner, bool mixed) {
    vram_table_lock();
    held->owner = owner;
    held->mixed = mixed;
    vram_table_let_go();
}

void stow_cuda_let_go(struct vram_block *held) { vram_end_give_back(held, VRAM_LIVE); }

/* --- moving --- */

struct move {
    const struct stow_cuda_options *options;
    enum stow_cuda_refusal refusal;
    int error;
    uint64_t moved;
};

bool stow_cuda_is_of_blocks(uint32_t refusal) { return refusal >= STOW_CUDA_HANDLE && refusal <= STOW_CUDA_MIXED; }

/* Blocks that never move must not hide the reason why another block stayed. */
static void refuse(struct move *self, enum stow_cuda_refusal why, int error) {
    bool says_more = stow_cuda_is_of_blocks(self->refusal) && !stow_cuda_is_of_blocks(why) && why != STOW_CUDA_EMPTY;
    if (self->refusal && !says_more) return;
    self->refusal = why;
    self->error = error;
}

const char *stow_cuda_refusal_text(uint32_t refusal) {
    static const char *const texts[STOW_CUDA_REFUSALS] = {
        [STOW_CUDA_DONE] = "done",
        [STOW_CUDA_EMPTY] = "it has no device memory that can move",
        [STOW_CUDA_CAPTURE] = "a stream is being captured",
        [STOW_CUDA_BUSY] = "a kernel did not end in time",
        [STOW_CUDA_AT_WORK] = "another move is on",
        [STOW_CUDA_NOT_IDLE] = "the owner is not declared idle",
        [STOW_CUDA_HANDLE] = "its handle was handed out (cuMemRetainAllocationHandle): others may map or export it",
        [STOW_CUDA_MULTICAST] = "it is bound to a multicast object",
        [STOW_CUDA_EXPORTED] = "it was exported to another process or device",
        [STOW_CUDA_RDMA] = "it was set up for other devices' direct access (GPUDirect RDMA)",
        [STOW_CUDA_MIXED] = "parts of a block are other owners'",
        [STOW_CUDA_DRIVER] = "the driver answered with an error",
        [STOW_CUDA_CONTEXTS] = "there are more contexts than can be waited for",
        [STOW_CUDA_CANCELLED] = "it was told to end",
        [STOW_CUDA_NO_ROOM] = "no host memory to move it to",
        [STOW_CUDA_DISK_FULL] = "the disk has no room for it",
        [STOW_CUDA_DISK_ERROR] = "the disk answered with an error",
        [STOW_CUDA_DISK] = "there is no directory that will do to move it to",
        [STOW_CUDA_NO_VRAM] = "no device memory to bring it back to",
        [STOW_CUDA_CHANGED] = "it was written to while it was copied",
        [STOW_CUDA_AIMDO] = "comfy-aimdo is loaded, which manages device memory itself",
        [STOW_CUDA_DEVICES] = "there is a device that could not copy from it",
        [STOW_CUDA_OLD] = "the driver lacks a function that it takes",
        [STOW_CUDA_OFF] = "MEMSTOW_CUDA_MOVES is not set",
        [STOW_CUDA_SMALL] = "below MEMSTOW_CUDA_MOVES, of an explicit pool, or part of another owner's block",
        [STOW_CUDA_KIND] = "managed, arrays, graphs, or mapped by the program",
    };
    return refusal < STOW_CUDA_REFUSALS ? texts[refusal] : "unknown";
}

/* There is one ring for all contexts: pinned memory stays pinned, so it must be small. */
static int ring_ready(cuda_handle context, uint32_t device) {
    if (ring.context && ring.context != context) {
        struct vram_visit visit;
        int error = vram_driver_enter(&driver, ring.context, &visit);
        if (error) return error;
        error = vram_ring_end(&driver, &ring);
        vram_driver_leave(&driver, &visit);
        if (error) return error;
        forget_buffers();
    }
    ring.context = context;
    int error = vram_ring_begin(&driver, &ring);
    for (int i = 0; i < VRAM_SLOTS && !error; i++) {
        if (!noted[i]) vram_backup_note_buffer(ring.slot[i], ring.slot_bytes, device);
        noted[i] = ring.slot[i];
    }
    return error;
}

static enum stow_cuda_refusal disk_refuses(uint32_t refusal) {
    switch (refusal) {
    case STOW_DONE:
        return STOW_CUDA_DONE;
    case STOW_EMPTY:
        return STOW_CUDA_NO_ROOM;
    case STOW_DISK_FULL:
    case STOW_FILE_LIMIT:
        return STOW_CUDA_DISK_FULL;
    case STOW_DISK_ERROR:
        return STOW_CUDA_DISK_ERROR;
    default:
        return STOW_CUDA_DISK;
    }
}

/* Exceeding the file size limit also raises a signal, which must find no handler on this thread. */
static enum stow_cuda_refusal write_out(struct move *self, struct vram_block *block) {
    struct stow_file file;
    uint64_t signals;
    if (!lock_out_signals(&signals)) return STOW_CUDA_NO_ROOM;
    uint32_t refusal = vram_backup_make_file(block, &self->options->limits, &file);
    if (!refusal) {
        self->error = vram_ring_out_to_file(&driver, &ring, &file, block->at, block->size, &refusal);
        stow_file_close(&file);
    }
    lock_let_signals(signals);
    return self->error ? STOW_CUDA_DRIVER : disk_refuses(refusal);
}

/* If memory has no room for it, it goes to a disk, if that is allowed. */
static enum stow_cuda_refusal copy_out(struct move *self, struct vram_block *block) {
    if (!vram_backup_make(&driver, block, &self->options->limits)) return write_out(self, block);
    self->error = (block->kept == VRAM_PINNED ? vram_ring_out_pinned : vram_ring_out)(&driver, &ring, block->backup,
                                                                                      block->at, block->size);
    return self->error ? STOW_CUDA_DRIVER : STOW_CUDA_DONE;
}

/* Runs in the block's context. Up to the last step but one the content is on the device; after it, in the backup. */
static enum stow_cuda_refusal take_out(struct move *self, struct vram_block *block) {
    bool same = true;
    if ((self->error = ring_ready(block->context, block->device))) return STOW_CUDA_DRIVER;
    enum stow_cuda_refusal why = copy_out(self, block);
    if (why) return why;
    if (self->options->verify)
        self->error = vram_ring_compare(&driver, &ring, block->backup, block->at, block->size,
                                        block->kept == VRAM_IN_FILE, &same);
    if (self->error) return STOW_CUDA_DRIVER;
    if (!same) return STOW_CUDA_CHANGED;
    /* What the driver does not release now is released at the next attempt, or used again. */
    vram_block_strip(&driver, block);
    return block->mapped ? STOW_CUDA_DRIVER : STOW_CUDA_DONE;
}

static enum stow_cuda_refusal copy_in(struct move *self, struct vram_block *block) {
    typedef int copies(const struct vram_driver *, struct vram_ring *, uint64_t, const char *, uint64_t);
    /* The index is enum vram_kept. */
    static copies *const by[] = {vram_ring_in, vram_ring_in_pinned, vram_ring_in_from_file};
    if ((self->error = ring_ready(block->context, block->device))) return STOW_CUDA_DRIVER;
    self->error = by[block->kept](&driver, &ring, block->at, block->backup, block->size);
    if (self->error == VRAM_UNREADABLE) return STOW_CUDA_DISK_ERROR;
    return self->error ? STOW_CUDA_DRIVER : STOW_CUDA_DONE;
}

/* The driver's default pool keeps what the program has freed. It is trimmed before a request fails for lack of
 * memory. */
static void trim_pool(uint32_t device) {
    cuda_handle pool;
    if (!driver.cuDeviceGetDefaultMemPool(&pool, (int)device)) driver.cuMemPoolTrimTo(pool, 0);
}

static enum stow_cuda_refusal fill(struct move *self, struct vram_block *block) {
    self->error = vram_block_fill(&driver, block);
    if (self->error == CUDA_OUT_OF_MEMORY) {
        trim_pool(block->device);
        stow_cuda_wait_freed();
        self->error = vram_block_fill(&driver, block);
    }
    if (!self->error) return STOW_CUDA_DONE;
    return self->error == CUDA_OUT_OF_MEMORY ? STOW_CUDA_NO_VRAM : STOW_CUDA_DRIVER;
}

typedef enum stow_cuda_refusal step(struct move *self, struct vram_block *block);

/* The mover has the block. False: it was refused. */
static bool in_its_context(struct move *self, struct vram_block *block, step *does) {
    struct vram_visit visit;
    int error = vram_driver_enter(&driver, block->context, &visit);
    enum stow_cuda_refusal why = error ? STOW_CUDA_DRIVER : does(self, block);
    if (!error) vram_driver_leave(&driver, &visit);
    if (why) refuse(self, why, error ? error : self->error);
    return !why;
}

static bool is_next(const struct move *self, const struct vram_block *block, enum vram_state state) {
    if (block->state != state || block->moving || block->tried == moves) return false;
    return !self->options->owner || block->owner == self->options->owner;
}

/* Blocks of the ring's context come first: each other context means to pin the ring again. */
static struct vram_block *choose(const struct move *self, enum vram_state state) {
    struct vram_block *first = NULL;
    for (struct vram_block *block = vram_table_first(); block; block = block->next) {
        if (!is_next(self, block, state)) continue;
        if (block->context == ring.context) return block;
        if (!first) first = block;
    }
    return first;
}

/* Takes a block in this state that this move has not tried yet. */
static struct vram_block *next_block(struct move *self, enum vram_state state) {
    for (struct vram_block *block; (block = choose(self, state));) {
        block->tried = moves;
        if (!why_kept(block) || state == VRAM_STOWED) {
            block->moving = true;
            return block;
        }
        refuse(self, why_kept(block), 0);
    }
    return NULL;
}

/* The device may still be writing to pinned memory. */
static void drop_backup(struct vram_block *block) {
    if (block->kept == VRAM_PINNED && ring.unsettled) vram_backup_leave(block);
    vram_backup_drop(&driver, block);
}

/* Frees the backups of earlier moves. No copy is in progress any more. */
static void collect_backups(void) {
    if (!ring.unsettled) vram_backup_collect(&driver);
}

/* Blocks move one by one, so a thread that frees another block does not wait. */
static void move_out(struct move *self) {
    for (bool any = false;; any = true) {
        vram_table_lock();
        struct vram_block *block = move_is_ended(self->options->end) ? NULL : next_block(self, VRAM_LIVE);
        vram_table_let_go();
        if (!block && !any) refuse(self, move_is_ended(self->options->end) ? STOW_CUDA_CANCELLED : STOW_CUDA_EMPTY, 0);
        if (!block) return;
        bool moved = in_its_context(self, block, take_out);
        if (moved) self->moved += block->size;
        if (!moved) drop_backup(block);
        vram_end_give_back(block, moved ? VRAM_STOWED : VRAM_LIVE);
        if (moved) __atomic_fetch_add(&left, 1, __ATOMIC_RELEASE);
    }
}

static void strip(struct vram_block *block) {
    struct vram_visit visit;
    if (vram_driver_enter(&driver, NULL, &visit)) return; /* it stays filled until the next attempt */
    vram_block_strip(&driver, block);
    vram_driver_leave(&driver, &visit);
}

/* Keeps blocks of one context together. */
static void add_to_move(struct vram_block **all, struct vram_block *block) {
    while (*all && (*all)->context != block->context) all = &(*all)->in_move;
    block->in_move = *all;
    *all = block;
}

/* Moves back all blocks or none: a model with a missing part cannot be used. Memory for all blocks comes first. */
static void move_in(struct move *self) {
    struct vram_block *all = NULL, *block, *next;
    vram_table_lock();
    while ((block = next_block(self, VRAM_STOWED))) add_to_move(&all, block);
    vram_table_let_go();
    if (!all) refuse(self, STOW_CUDA_EMPTY, 0);
    for (block = all; block && !self->refusal; block = block->in_move) in_its_context(self, block, fill);
    for (block = all; block && !self->refusal; block = block->in_move) in_its_context(self, block, copy_in);
    for (block = all; block; block = next) {
        next = block->in_move;
        if (self->refusal && !ring.unsettled) strip(block);
        if (!self->refusal) vram_backup_drop(&driver, block);
        /* The memory gets a new id: a client that had registered it must register it again. */
        if (!self->refusal) self->moved += block->size, block->id = new_id();
        vram_end_give_back(block, self->refusal ? VRAM_STOWED : VRAM_LIVE);
    }
}

/* One move at a time. A second one waits, or fails. */
static bool begin_move(struct move *self) {
    vram_table_lock();
    while (mover && !self->options->at_once) vram_table_wait();
    if (mover) refuse(self, STOW_CUDA_AT_WORK, 0);
    if (!self->refusal) mover = true, moves++;
    vram_table_let_go();
    return !self->refusal;
}

static void end_move(void) {
    vram_table_lock();
    mover = false;
    vram_table_changed();
    vram_table_let_go();
}

static bool is_at_work(void) {
    vram_table_lock();
    bool is = mover;
    vram_table_let_go();
    return is;
}

uint64_t stow_cuda_left(void) { return __atomic_load_n(&left, __ATOMIC_ACQUIRE); }

bool stow_cuda_wait_move(uint32_t milliseconds) {
    const struct timespec while_ = {.tv_nsec = 1000000};
    uint64_t end = os_now() + milliseconds * (uint64_t)1000000;
    if (!on || !is_at_work()) return false;
    while (is_at_work() && os_now() < end) os_call(SYS_nanosleep, &while_, NULL);
    return !is_at_work();
}

/* Nothing that uses the memory may run, in any context: a block does not know which contexts use it. */
static bool is_quiet(struct move *self) {
    cuda_handle all[VRAM_CONTEXTS];
    bool missing;
    uint32_t count = stow_cuda_contexts(all, &missing);
    if (missing) refuse(self, STOW_CUDA_CONTEXTS, 0);
    int error = missing ? 0 : vram_quiet(&driver, all, count, self->options->milliseconds);
    if (error == VRAM_CAPTURE) refuse(self, STOW_CUDA_CAPTURE, 0);
    if (error) refuse(self, error == VRAM_NOT_QUIET ? STOW_CUDA_BUSY : STOW_CUDA_DRIVER, error);
    return !self->refusal;
}

static bool has_any(uint32_t owner, bool out) {
    struct stow_cuda_sums sums = stow_cuda_sums(owner, UINT32_MAX);
    return out ? sums.live : sums.stowed;
}

static uint64_t move(const struct stow_cuda_options *options, bool out, enum stow_cuda_refusal *refusal, int *error) {
    struct move self = {.options = options};
    if (!on || !has_any(options->owner, out)) {
        refuse(&self, STOW_CUDA_EMPTY, 0);
    } else if (cuda_captures_any()) {
        refuse(&self, STOW_CUDA_CAPTURE, 0);
    } else if (begin_move(&self)) {
        stow_cuda_reap();
        if (!out)
            move_in(&self);
        else if (is_quiet(&self))
            move_out(&self);
        collect_backups();
        end_move();
    }
    *refusal = self.refusal;
    *error = self.refusal == STOW_CUDA_DONE ? 0 : self.error;
    return self.moved;
}

uint64_t stow_cuda_out(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error) {
    return move(options, true, refusal, error);
}

uint64_t stow_cuda_in(const struct stow_cuda_options *options, enum stow_cuda_refusal *refusal, int *error) {
    return move(options, false, refusal, error);
}
