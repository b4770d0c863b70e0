/* vram_end.c — see vram_end.h. */
#include "preload/vram/vram_end.h"

#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/shared/os.h"
#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_spare.h"
#include "preload/vram/vram_table.h"
#include "preload/base/forked.h"

enum { NO_TIMING = 2, UNRIPE_MOST = 8 };

static uint64_t searches; /* the number of searches for freed blocks so far */
/* The address of this variable identifies the thread's own default stream. The stream's handle cannot, because the own
 * default streams of all threads have the same handle. */
static __thread char own_stream __attribute__((tls_model("initial-exec")));

/* --- ending blocks, now or when their work is done --- */

void vram_end_give_back(struct vram_block *self, enum vram_state state) {
    vram_table_lock();
    vram_table_set_state(self, state);
    self->moving = false;
    vram_table_changed();
    vram_table_let_go();
}

static int drop_event(const struct vram_driver *driver, struct vram_block *self) {
    int error = self->event ? driver->cuEventDestroy_v2(self->event) : 0;
    if (!error) self->event = NULL;
    return error;
}

static bool let_go(const struct vram_driver *driver, struct vram_block *self) {
    struct vram_visit visit;
    if (vram_driver_enter(driver, self->event ? self->event_context : NULL, &visit)) return false;
    bool gone = vram_block_end(driver, self) && !drop_event(driver, self);
    vram_driver_leave(driver, &visit);
    return gone;
}

bool vram_end_now(const struct vram_driver *driver, struct vram_block *self) {
    vram_table_lock();
    vram_table_set_state(self, VRAM_WRECK); /* from now on nobody finds the block */
    vram_table_let_go();
    vram_backup_drop(self);
    bool gone = let_go(driver, self);
    vram_table_lock();
    self->moving = false;
    if (gone) vram_table_drop(self);
    vram_table_changed();
    vram_table_let_go();
    return gone;
}

static bool drop_its_event(const struct vram_driver *driver, struct vram_block *self) {
    struct vram_visit visit;
    if (!self->event) return true;
    if (vram_driver_enter(driver, self->event_context, &visit)) return false;
    bool dropped = !drop_event(driver, self);
    vram_driver_leave(driver, &visit);
    return dropped;
}

bool vram_end_freed(const struct vram_driver *driver, struct vram_block *self) {
    struct vram_block *oldest;
    if (!vram_spare_wants(self) || !drop_its_event(driver, self)) return vram_end_now(driver, self);
    while ((oldest = vram_spare_before(self->size))) vram_end_now(driver, oldest);
    vram_backup_drop(self); /* the content of a freed block is of no use */
    vram_end_give_back(self, VRAM_SPARE);
    return true;
}

uint32_t vram_end_spares(const struct vram_driver *driver, uint32_t owner) {
    uint32_t ended = 0;
    for (struct vram_block *block; (block = vram_spare_of(owner));) ended += vram_end_now(driver, block);
    return ended;
}

const void *vram_end_stream(cuda_handle stream) {
    return (uintptr_t)stream == CUDA_STREAM_PER_THREAD ? &own_stream : stream;
}

/* Streams with the same handle are not always the same stream: the driver may have destroyed the event's stream and
 * given its handle to this one. So the stream waits for the block's event even if the handles are the same. During a
 * capture it does not wait, and the result is false, because a wait for an event from outside the capture breaks the
 * capture. */
bool vram_end_order(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream) {
    struct vram_visit visit;
    if (!self->event) return true;
    if (!cuda_captures_hold_off()) return false;
    bool entered = !vram_driver_enter(driver, NULL, &visit);
    bool waits = entered && !driver->cuStreamWaitEvent(stream, self->event, 0);
    if (entered) vram_driver_leave(driver, &visit);
    cuda_captures_go_on();
    return waits && drop_its_event(driver, self);
}

/* Records the block's event on a stream. The event belongs to the stream's context, which may differ from the block's
 * context and from the thread's current context. */
static int vram_end_record(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream) {
    struct vram_visit visit;
    cuda_handle context = NULL;
    if ((uintptr_t)stream > CUDA_STREAM_PER_THREAD && driver->cuStreamGetCtx(stream, &context)) context = NULL;
    int error = vram_driver_enter(driver, context, &visit);
    if (error) return error;
    self->event_context = context ? context : visit.before;
    self->event_stream = vram_end_stream(stream);
    self->event_number = vram_table_number();
    error = driver->cuEventCreate(&self->event, NO_TIMING);
    if (!error) error = driver->cuEventRecord(self->event, stream);
    if (error) drop_event(driver, self);
    vram_driver_leave(driver, &visit);
    return error;
}

int vram_end_in(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream) {
    int error = drop_event(driver, self); /* destroys an event that could not be destroyed before */
    if (!error) error = vram_end_record(driver, self, stream);
    vram_end_give_back(self, error ? self->state : VRAM_FREEING);
    return error;
}

void vram_end_later(struct vram_block *self) { vram_end_give_back(self, VRAM_FREEING); }

/* --- work that any passing thread does --- */

static bool event_has_come(const struct vram_driver *driver, const struct vram_block *self) {
    struct vram_visit visit;
    if (vram_driver_enter(driver, self->event_context, &visit)) return false;
    bool has_come = !driver->cuEventQuery(self->event);
    vram_driver_leave(driver, &visit);
    return has_come;
}

/* Waits until nothing runs in the block's context. False: an error, or a stream is in capture. During a capture it does
 * not wait, because a wait for a whole context breaks the capture. */
static bool context_has_ended_work(const struct vram_driver *driver, const struct vram_block *self) {
    struct vram_visit visit;
    if (!cuda_captures_hold_off()) return false;
    bool entered = !vram_driver_enter(driver, self->context, &visit);
    bool has_ended = entered && !driver->cuCtxSynchronize();
    cuda_captures_go_on();
    if (entered) vram_driver_leave(driver, &visit);
    return has_ended;
}

/* What a search for freed blocks remembers: for each of at most STREAMS_MOST streams, an event that was not complete
 * when the search asked the driver. Events that were recorded later in the same stream are not complete either, so the
 * search does not ask the driver about them. */
enum { STREAMS_MOST = 8 };
struct stalled {
    const struct vram_driver *driver;
    uint32_t unripe, unripe_most, count;
    struct {
        cuda_handle context;
        const void *stream;
        uint64_t number;
    } of[STREAMS_MOST];
};

static uint32_t stalled_at(const struct stalled *self, const struct vram_block *block) {
    uint32_t i = 0;
    while (i < self->count &&
           (self->of[i].stream != block->event_stream || self->of[i].context != block->event_context))
        i++;
    return i;
}

static bool is_stalled(const struct stalled *self, const struct vram_block *block) {
    uint32_t i = block->event ? stalled_at(self, block) : self->count;
    return i < self->count && block->event_number >= self->of[i].number;
}

static void note_stalled(struct stalled *self, const struct vram_block *block) {
    uint32_t i = stalled_at(self, block);
    if (i == STREAMS_MOST) return;
    if (i == self->count) self->count++;
    self->of[i].context = block->event_context;
    self->of[i].stream = block->event_stream;
    self->of[i].number = block->event_number;
}

static bool is_executed(struct stalled *self, const struct vram_block *block) {
    if (block->state == VRAM_WRECK || block->no_context) return true;
    if (block->event && !event_has_come(self->driver, block)) {
        note_stalled(self, block);
        return false;
    }
    return (block->event && !block->copied) || context_has_ended_work(self->driver, block);
}

/* The next block of a search: the first freed block that no thread has taken. The block goes to the end of the queue,
 * so the search comes to it again only after all others that are in the queue now. NULL: there is no such block, or the
 * search is over. A search is over when it comes to a block that it, or a later search, has looked at already. */
static struct vram_block *look_at_next(uint64_t search) {
    struct vram_block *block = vram_table_first_freed();
    while (block && block->moving) block = block->freed_next;
    if (!block || block->searched >= search) return NULL;
    block->searched = search;
    vram_table_requeue(block);
    return block;
}

/* Takes the next freed block whose work may be done. NULL: there is none, or the search has met enough blocks whose
 * work is not done. */
static struct vram_block *next_freed(struct stalled *self, uint64_t search) {
    struct vram_block *block = NULL;
    if (!vram_table_enter()) return NULL;
    while (self->unripe < self->unripe_most && (block = look_at_next(search)) && is_stalled(self, block)) {
        self->unripe++;
        block = NULL;
    }
    if (block) block->moving = true;
    vram_table_let_go();
    return block;
}

/* Ends the block, or keeps it as a spare, if the work that uses it is done. False: the work is not done, or the block
 * became a wreck. */
static bool try_to_end(struct stalled *self, struct vram_block *block) {
    if (is_executed(self, block)) return vram_end_freed(self->driver, block);
    vram_end_give_back(block, block->state);
    return false;
}

static uint32_t end_ripe(const struct vram_driver *driver, uint32_t unripe_most) {
    uint32_t ended = 0;
    if (!vram_table_pending()) return 0;
    struct stalled stalled; /* its list is not initialized, to save time: each allocation calls this function */
    stalled.driver = driver;
    stalled.unripe = stalled.count = 0;
    stalled.unripe_most = unripe_most;
    uint64_t search = __atomic_add_fetch(&searches, 1, __ATOMIC_RELAXED);
    for (struct vram_block *block; (block = next_freed(&stalled, search));) {
        bool gone = try_to_end(&stalled, block);
        ended += gone;
        stalled.unripe += !gone;
    }
    return ended;
}

uint32_t vram_end_ripe(const struct vram_driver *driver) { return end_ripe(driver, UINT32_MAX); }

void vram_end_some(const struct vram_driver *driver) { end_ripe(driver, UNRIPE_MOST); }

bool vram_end_wait(const struct vram_driver *driver, uint32_t milliseconds) {
    const struct timespec while_ = {.tv_nsec = 1000000};
    uint64_t end = os_now() + milliseconds * (uint64_t)1000000;
    bool ended;
    while (!(ended = (vram_end_ripe(driver) | vram_end_spares(driver, 0)) != 0) && vram_table_freed() && os_now() < end)
        os_call(SYS_nanosleep, &while_, NULL);
    return ended;
}

void vram_end_context(cuda_handle context, uint64_t number) {
    struct vram_block *block = vram_table_first();
    while (block) {
        bool its = block->event && block->event_context == context && block->event_number < number;
        if (its && block->moving) {
            vram_table_wait();
            block = vram_table_first();
            continue;
        }
        if (its) {
            block->event = NULL;
            block->no_context = true; /* the work in front of the event ended with the context, too */
        }
        block = block->next;
    }
}

static void vram_end_abandon(void) { searches = 0; }
FORKED(vram_end_abandon);
