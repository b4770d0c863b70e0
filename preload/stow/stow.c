/* stow.c — see stow.h. */
#include "preload/stow/stow.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/heapsort.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/stow/stow_area.h"
#include "preload/stow/stow_host.h"
#include "preload/stow/stow_table.h"
#include "preload/stow/stow_carry.h"
#include "preload/stow/stow_plan.h"
#include "preload/stow/stow_work.h"
#include "preload/base/seal.h"

enum { PATIENCE = 20000 }; /* pauses of 0.1 ms: two seconds */

/* Waits for hooks that began before they could know the pieces of this move. Such a hook ends soon, except when it was
 * left by longjmp. False: one of these hooks has not ended in time. */
static bool wait_for_hooks(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    uint32_t before = __atomic_fetch_add(&stow_epoch, 1, __ATOMIC_SEQ_CST) & 1;
    for (int i = 0; __atomic_load_n(&stow_passing[before], __ATOMIC_SEQ_CST); i++) {
        if (i == PATIENCE) return false;
        os_call(SYS_nanosleep, &pause, 0);
    }
    return true;
}

static uint64_t start_of(const struct work *work) { return work->piece.start; }

HEAPSORT(struct work, sort_by_start, start_of)

static int stow_begin(struct stow_session *self, const struct stow_piece *pieces, uint32_t count,
                      const struct stow_options *options) {
    uint32_t idle = 0;
    *self = (struct stow_session){.count = count, .work_length = count * sizeof(struct work) + OS_PAGE};
    if (options) self->options = *options;
    if (seal_is_set()) return -EPERM;
    self->work = os_map(self->work_length);
    self->text = os_map(STOW_AREA_TEXT);
    if (!self->work || !self->text) return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = os_round_up(pieces[i].start, OS_PAGE);
        uint64_t end = (pieces[i].start + pieces[i].length) & ~(uint64_t)(OS_PAGE - 1);
        self->work[i].index = i;
        self->work[i].piece =
            (struct stow_piece){.start = start, .length = end > start ? end - start : 0, .owner = pieces[i].owner};
    }
    sort_by_start(self->work, count);
    if (!lock_out_signals(&self->signals)) return -EPERM;
    if (!__atomic_compare_exchange_n(&stow_work_current.held, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        lock_let_signals(self->signals);
        return -EBUSY;
    }
    stow_work_current.end = self->options.end;
    stow_work_current.tell = self->options.tell;
    stow_work_current.context = self->options.context;
    stow_work_note_progress(0, 0);
    stow_table_lock();
    stow_work_current.work = self->work, stow_work_current.count = count;
    stow_work_update_watch();
    stow_table_unlock();
    return 0;
}

/* Ends the session, and writes the results to the caller's `pieces`. This is safe even if `pieces` is in memory that
 * was to move, because nothing moves any more. */
static int64_t stow_end(struct stow_session *self, struct stow_piece *pieces) {
    int64_t moved = 0;
    stow_table_lock();
    stow_work_current.work = NULL, stow_work_current.count = 0;
    stow_work_current.tell = NULL;
    stow_work_current.end.word = NULL;
    __atomic_store_n(&stow_work_current.held, 0, __ATOMIC_RELEASE);
    stow_work_update_watch();
    stow_table_unlock();
    lock_let_signals(self->signals);
    for (uint32_t i = 0; i < self->count; i++) {
        moved += (int64_t)self->work[i].piece.moved;
        pieces[self->work[i].index].refusal = self->work[i].piece.refusal;
        pieces[self->work[i].index].moved = self->work[i].piece.moved;
    }
    return moved;
}

static void stow_let_go(struct stow_session *self) {
    if (self->work) os_unmap(self->work, self->work_length);
    if (self->text) os_unmap(self->text, STOW_AREA_TEXT);
}

static void refuse_all(struct stow_session *self, uint32_t refusal) {
    for (uint32_t i = 0; i < self->count; i++) stow_work_refuse(&self->work[i], refusal);
}

/* The result of stow_out or stow_in: the bytes that moved. If none moved: the first error of a piece (stow_work_error),
 * or 0. -ENOTSUP explains least, so any other error is preferred. */
static int64_t stow_outcome(const struct stow_session *self, int64_t moved) {
    int error = 0;
    for (uint32_t i = 0; i < self->count && !moved; i++) {
        int each = stow_work_error(self->work[i].piece.refusal);
        if (!error || (error == -ENOTSUP && each)) error = each;
    }
    return moved ? moved : error;
}

static void look_whether_there(struct stow_session *self) {
    for (uint32_t i = 0; i < self->count; i++) {
        struct work *work = &self->work[i];
        if (!self->options.is_there || self->options.is_there(&work->piece, self->options.context)) continue;
        stow_table_lock();
        work->gone = true;
        stow_table_unlock();
        stow_work_refuse(work, STOW_GONE);
    }
}

/* stow_begin has failed with `error`, so nothing moves. */
static int64_t refuse_to_begin(struct stow_session *session, struct stow_piece *pieces, uint32_t count, int error) {
    for (uint32_t i = 0; i < count; i++) {
        pieces[i].refusal = error == -EPERM ? STOW_SANDBOX : STOW_DONE;
        pieces[i].moved = 0;
    }
    stow_let_go(session);
    return error;
}

static int64_t move_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options, bool own_files) {
    struct stow_session session;
    struct stow_plan plan = {.pagemap = -1};
    int error = stow_begin(&session, pieces, count, options);
    session.own_files = own_files;
    if (error) return refuse_to_begin(&session, pieces, count, error);
    if (wait_for_hooks()) {
        look_whether_there(&session);
        uint32_t refusal = stow_plan_make(&plan, &session);
        if (refusal)
            refuse_all(&session, refusal);
        else if ((refusal = stow_carry_out(&plan)))
            stow_plan_refuse_memory(&plan, refusal);
        for (uint32_t i = 0; i < count; i++)
            if (!session.work[i].piece.moved) stow_work_refuse(&session.work[i], STOW_EMPTY);
    } else {
        refuse_all(&session, STOW_GONE);
    }
    stow_plan_end(&plan);
    int64_t moved = stow_end(&session, pieces), result = stow_outcome(&session, moved);
    stow_let_go(&session);
    return result;
}

/* --- bringing pieces back --- */

static void all_in(struct stow_session *self) {
    struct stow_back back;
    uint32_t refusal = stow_back_begin(&back, self->options.idle, self->own_files);
    back.held_unseen = self->options.held_unseen;
    for (uint32_t i = 0; i < self->count && !refusal; i++) {
        const struct stow_piece *piece = &self->work[i].piece;
        uint32_t each = stow_work_bring_back(&self->work[i], &back, piece->start, piece->start + piece->length, true);
        if (each) stow_work_refuse(&self->work[i], each);
    }
    if (refusal)
        refuse_all(self, refusal);
    else
        stow_back_end(&back);
}

static int64_t move_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options, bool own_files) {
    struct stow_session session;
    uint64_t wanted = 0;
    int error = stow_begin(&session, pieces, count, options);
    session.own_files = own_files;
    if (error) return refuse_to_begin(&session, pieces, count, error);
    for (uint32_t i = 0; i < count; i++) {
        const struct stow_piece *piece = &session.work[i].piece;
        uint64_t stowed = stow_work_stowed_in(piece->start, piece->start + piece->length);
        if (!stowed) stow_work_refuse(&session.work[i], STOW_EMPTY);
        wanted += stowed;
    }
    stow_work_note_progress(0, wanted);
    if (wanted && wait_for_hooks())
        all_in(&session);
    else if (wanted)
        refuse_all(&session, STOW_GONE);
    int64_t moved = stow_end(&session, pieces), result = stow_outcome(&session, moved);
    stow_let_go(&session);
    return result;
}

/* --- running a move on a thread of its own --- */

struct call {
    int64_t (*move)(struct stow_piece *pieces, uint32_t count, const struct stow_options *options, bool own_files);
    struct stow_piece *pieces;
    uint32_t count;
    const struct stow_options *options;
    bool own_files;
    int64_t result;
};

static void stow_answer(void *context) {
    struct call *self = context;
    self->result = self->move(self->pieces, self->count, self->options, self->own_files);
}

int64_t stow_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    struct call call = {.move = move_out, .pieces = pieces, .count = count, .options = options};
    stow_work_apart(stow_answer, &call, &call.own_files);
    return call.result;
}

int64_t stow_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    struct call call = {.move = move_in, .pieces = pieces, .count = count, .options = options};
    stow_work_apart(stow_answer, &call, &call.own_files);
    return call.result;
}

/* --- questions about stowed memory --- */

uint64_t stow_bytes(uint32_t owner) {
    uint64_t sum = 0;
    stow_table_lock();
    for (uint32_t i = 0; i < stow_table_count(); i++) {
        const struct stow_region *region = stow_table_regions() + i;
        if (!owner || region->owner == owner) sum += region->end - region->start;
    }
    stow_table_unlock();
    return sum;
}

uint64_t stow_bytes_within(uint64_t start, uint64_t length) {
    uint64_t sum = 0, end = start + length;
    struct stow_region region;
    stow_table_lock();
    for (; start < end && stow_table_first(start, end, &region); start = region.end) sum += region.end - region.start;
    stow_table_unlock();
    return sum;
}

void stow_change_owner(uint32_t from, uint32_t to) {
    stow_table_lock();
    for (uint32_t i = 0; i < stow_table_count(); i++)
        if (stow_table_regions()[i].owner == from) stow_table_regions()[i].owner = to;
    for (uint32_t i = 0; i < stow_work_current.count; i++)
        if (stow_work_current.work[i].piece.owner == from) stow_work_current.work[i].piece.owner = to;
    stow_table_unlock();
}
