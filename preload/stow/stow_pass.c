/* stow_pass.c — the functions of stow.h that hooks call when the program changes memory, which may be stowed or
 * moving. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/stow/stow_area.h"
#include "preload/stow/stow_table.h"
#include "preload/stow/stow_work.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

static uint64_t whole_end(uint64_t start, uint64_t length) { return os_round_up(start + length, OS_PAGE); }

/* Waits until no chunk in the range is moving. Then marks the pieces that overlap the range as gone, so that the
 * mover leaves these pieces alone from now on. The caller holds the lock. */
static void stow_pass_settle(uint64_t start, uint64_t end) {
    stow_table_wait(start, end);
    for (uint32_t i = 0; i < stow_work_current.count; i++) {
        struct work *work = &stow_work_current.work[i];
        if (start < work->piece.start + work->piece.length && work->piece.start < end) work->gone = true;
    }
}

void stow_note_change(uint64_t start, uint64_t length) {
    stow_table_lock();
    stow_pass_settle(start, whole_end(start, length));
    stow_table_unlock();
}

void stow_note_unmap(uint64_t start, uint64_t length) {
    stow_table_lock();
    stow_pass_settle(start, whole_end(start, length));
    stow_table_take(start, whole_end(start, length));
    stow_work_update_watch();
    stow_table_unlock();
}

/* At most STOW_UNMAPPED_MOST regions fit into `unmapped`; the others are forgotten. If the kernel refuses to unmap the
 * range, a forgotten region stays a mapping of its file: its content is right, but no restore moves it into memory. */
void stow_note_unmapping(uint64_t start, uint64_t length, struct stow_unmapped *unmapped) {
    struct stow_region region = {.end = start};
    uint64_t end = whole_end(start, length);
    unmapped->count = 0;
    stow_table_lock();
    stow_pass_settle(start, end);
    while (unmapped->count < STOW_UNMAPPED_MOST && stow_table_first(region.end, end, &region))
        unmapped->ranges[unmapped->count++] = (struct stow_unmapped_range){region.start, region.end, region.owner};
    stow_table_take(start, end);
    stow_work_update_watch();
    stow_table_unlock();
}

void stow_put_back(const struct stow_unmapped *unmapped) {
    stow_table_lock();
    for (uint32_t i = 0; i < unmapped->count; i++)
        stow_table_put(unmapped->ranges[i].start, unmapped->ranges[i].end, unmapped->ranges[i].owner);
    stow_work_update_watch();
    stow_table_unlock();
}

/* Puts fresh memory in the place of a range. False: the kernel refused, for example because the process has too many
 * mappings. */
static bool put_fresh(uint64_t start, uint64_t end, int protection) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    return os_call(SYS_mmap, start, end - start, protection, flags, -1, 0) == (long)start;
}

/* Puts fresh memory in the place of a freed block's stowed parts. The allocator does not know that a file backs them,
 * and uses the block again. Without fresh memory, pages would have the file's bytes where some allocators expect
 * zeros. */
void stow_note_free(uint64_t start, uint64_t length) {
    struct stow_region region = {.end = start};
    uint64_t end = start + length;
    stow_table_lock();
    stow_pass_settle(start, end);
    while (stow_table_first(region.end, end, &region)) put_fresh(region.start, region.end, PROT_READ | PROT_WRITE);
    stow_table_take(start, end);
    stow_work_update_watch();
    stow_table_unlock();
}

struct discarding {
    uint64_t start, end;
    char *text;
    bool listed; /* the mappings were read from /proc */
    bool failed; /* the kernel refused to put fresh memory into a stowed region */
};

/* Puts fresh memory into the stowed regions of one mapping. The table is locked only here, for each mapping by itself,
 * because reading the list of mappings takes milliseconds. */
static bool discard_area(void *context, const struct stow_area *area) {
    struct discarding *self = context;
    struct stow_region region = {.end = self->start > area->start ? self->start : area->start};
    uint64_t end = self->end < area->end ? self->end : area->end;
    int protection = (area->read ? PROT_READ : 0) | (area->write ? PROT_WRITE : 0) | (area->execute ? PROT_EXEC : 0);
    if (region.end >= end) return area->start < self->end;
    stow_table_lock();
    stow_pass_settle(region.end, end);
    while (region.end < end && stow_table_first(region.end, end, &region))
        if (put_fresh(region.start, region.end, protection))
            stow_table_take(region.start, region.end);
        else
            self->failed = true;
    stow_work_update_watch();
    stow_table_unlock();
    return true;
}

static void discard_areas(void *context) {
    struct discarding *self = context;
    self->listed = stow_areas(false, self->text, discard_area, self) >= 0;
}

/* If the program has no descriptor left for /proc, a thread with descriptors of its own reads it. */
static void discard_range(struct discarding *range) {
    bool own_files;
    range->text = os_map(STOW_AREA_TEXT);
    if (!range->text) return;
    discard_areas(range);
    if (!range->listed) stow_work_apart(discard_areas, range, &own_files);
    os_unmap(range->text, STOW_AREA_TEXT);
}

/* In a sandbox the protection of the mappings cannot be read, so nothing is discarded. */
int stow_note_discard(uint64_t start, uint64_t length) {
    struct discarding range = {.start = start, .end = whole_end(start, length)};
    struct stow_region region;
    stow_table_lock();
    stow_pass_settle(range.start, range.end);
    bool any = stow_table_first(range.start, range.end, &region);
    stow_table_unlock();
    if (!any) return 0;
    if (seal_settles()) discard_range(&range);
    return range.listed && !range.failed ? 0 : -ENOMEM;
}

struct whole {
    uint64_t start, end;
    bool mine, own_files;
    uint32_t refusal;
};

static void make_whole(void *context) {
    struct whole *self = context;
    struct work work = {.asked_by_hook = true};
    struct stow_back back;
    self->refusal = stow_back_begin(&back, self->mine, self->own_files);
    /* without userfaultfd, only memory of idle owners was stowed, and nobody writes to such memory */
    if (self->refusal == STOW_NOT_IDLE) self->refusal = stow_back_begin(&back, true, self->own_files);
    if (self->refusal) return;
    self->refusal = stow_work_bring_back(&work, &back, self->start, self->end, false);
    stow_back_end(&back);
}

int stow_note_whole(uint64_t start, uint64_t length, bool mine) {
    struct whole whole = {.start = start & ~(uint64_t)(OS_PAGE - 1), .end = whole_end(start, length)};
    stow_note_change(start, length);
    if (!stow_work_stowed_in(whole.start, whole.end)) return 0;
    if (!seal_settles()) return seal_is_for_good() ? -EPERM : -EAGAIN;
    whole.mine = mine || os_single_threaded();
    stow_work_apart(make_whole, &whole, &whole.own_files);
    return stow_work_error(whole.refusal);
}

int stow_lock_range(uint64_t start, uint64_t length) {
    stow_table_lock();
    stow_pass_settle(start, whole_end(start, length));
    bool listed = stow_work_register(start, start + length);
    stow_table_unlock();
    int result = listed ? stow_note_whole(start, length, false) : -ENOMEM;
    if (listed && result) stow_unlock_range(start, length);
    return result;
}

void stow_unlock_range(uint64_t start, uint64_t length) {
    stow_table_lock();
    stow_work_unregister(start, start + length);
    stow_table_unlock();
}

/* --- forks of the process --- */

static bool forked_beside_threads;

bool stow_forked_beside_threads(void) { return forked_beside_threads; }

/* Makes the engine of a forked child forget the parent's move and locks. It runs before any other function of the
 * engine. The first call in a child does this, and later calls do nothing. In a sandbox the kernel is not asked for the
 * pid, so later calls do it again. That does no harm, because nothing moves in a sandbox. */
static void stow_abandon(void) {
    static uint32_t home;
    uint32_t pid = seal_is_set() ? 0 : os_pid();
    if (pid && home == pid) return; /* this was done before; by now the child may move memory itself */
    home = pid;
    stow_table_abandon();
    stow_work_abandon();
}
FORKED(stow_abandon);

struct stow_forking stow_fork_begin(void) {
    struct stow_forking self = {.pass = stow_pass_begin()};
    self.beside_threads = seal_is_set() || !os_single_threaded();
    self.held = stow_pass_watched(self.pass);
    if (!self.held) return self;
    stow_table_lock();
    stow_table_wait(0, UINT64_MAX);
    return self;
}

void stow_fork_end(struct stow_forking self, bool in_child) {
    if (in_child) {
        forked_beside_threads |= self.beside_threads;
        if (self.held) stow_table_leave_in_child();
        if (self.held || !seal_is_set()) stow_abandon();
        return;
    }
    if (self.held) stow_table_unlock();
    stow_pass_end(self.pass);
}

static __thread struct stow_forking forking __attribute__((tls_model("initial-exec")));

static void fork_begins(void) { forking = stow_fork_begin(); }
static void fork_ended(void) { stow_fork_end(forking, false); }
static void child_begins(void) { stow_fork_end(forking, true); }

void stow_watch_forks(void) { pthread_atfork(fork_begins, fork_ended, child_begins); }
