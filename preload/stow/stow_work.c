/* stow_work.c — see stow_work.h. */
#include "preload/stow/stow_work.h"

#include <errno.h>

#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/capacity.h"
#include "preload/stow/stow_table.h"
#include "preload/stow/stow_thread.h"

uint32_t stow_watch, stow_epoch, stow_passing[2];
struct stow_current stow_work_current;

static const char *const TEXTS[STOW_REFUSALS] = {
    [STOW_DONE] = "it moved",
    [STOW_EMPTY] = "no whole page of it is in memory",
    [STOW_GONE] = "it was freed, unmapped or changed meanwhile",
    [STOW_CANCELLED] = "the move was cancelled",
    [STOW_NOT_PRIVATE] = "it is shared with other processes",
    [STOW_NO_ACCESS] = "it is not readable and writable, or it is code",
    [STOW_LOCKED] = "it is locked in memory (mlock)",
    [STOW_LOCKS_FUTURE] = "the process locks all new mappings in memory (mlockall)",
    [STOW_PINNED] = "a device or a system call in flight holds its pages",
    [STOW_REGISTERED] = "a device knows its address",
    [STOW_HELD_UNSEEN] = "a device may know its address from comfy-aimdo, and the kernel cannot tell",
    [STOW_DEVICE_READS] = "a device can use it where it is (HMM, ATS), and is busy, or the owner is not idle",
    [STOW_MEMORY_POLICY] = "it has a NUMA memory policy",
    [STOW_KEY] = "it has a protection key",
    [STOW_SEALED] = "it is sealed (mseal)",
    [STOW_FORK_ADVICE] = "it is kept from forked processes (MADV_DONTFORK, MADV_WIPEONFORK)",
    [STOW_NO_DUMP] = "it is kept out of core dumps (MADV_DONTDUMP)",
    [STOW_FAULTS_TAKEN] = "the program handles its page faults itself (userfaultfd)",
    [STOW_SPECIAL] = "it is device memory, huge pages (hugetlb) or a shadow stack",
    [STOW_NAMELESS_FILE] = "its file was removed, and may be in memory itself",
    [STOW_STACK] = "it is a stack",
    [STOW_NOT_IDLE] = "the kernel cannot move it in one step, and its owner is not idle",
    [STOW_IN_USE] = "its owner was declared idle, but it was written to",
    [STOW_MAPPINGS] = "the process is near vm.max_map_count",
    [STOW_ADDRESS_SPACE] = "there is no address space or memory to move it through",
    [STOW_NO_DIRECTORY] = "there is no stow directory that can be written to",
    [STOW_MEMORY_TARGET] = "the stow directory is in memory (tmpfs)",
    [STOW_UNSAFE_TARGET] = "the stow directory is on FUSE, a network or an unknown file system",
    [STOW_FILE_LIMIT] = "its file would be larger than RLIMIT_FSIZE allows",
    [STOW_DISK_FULL] = "the disk is full",
    [STOW_DISK_ERROR] = "the disk answered with an error",
    [STOW_NO_DESCRIPTOR] = "no descriptor is left, or it was closed (RLIMIT_NOFILE)",
    [STOW_SANDBOX] = "the process is in a sandbox",
    [STOW_NO_KERNEL_HELP] = "the kernel lacks or forbids a call that the move needs",
};

const char *stow_refusal_text(uint32_t refusal) { return refusal < STOW_REFUSALS ? TEXTS[refusal] : "?"; }

/* An unsorted list of the ranges whose pages a device knows. A range may be in the list twice if it is
 * registered again before its removal is complete. */
struct range {
    uint64_t start, end;
};
static struct {
    struct range *ranges;
    uint32_t capacity, count;
} registered;

void stow_work_update_watch(void) {
    __atomic_store_n(&stow_watch, stow_table_count() + __atomic_load_n(&stow_work_current.held, __ATOMIC_RELAXED),
                     __ATOMIC_SEQ_CST);
}

void stow_work_note_progress(uint64_t moved, uint64_t wanted) {
    os_store(&stow_work_current.moved, moved);
    os_store(&stow_work_current.wanted, wanted);
    if (stow_work_current.tell) stow_work_current.tell(moved, wanted, stow_work_current.context);
}

struct stow_progress stow_progress(void) {
    return (struct stow_progress){os_load(&stow_work_current.moved), os_load(&stow_work_current.wanted),
                                  __atomic_load_n(&stow_work_current.held, __ATOMIC_RELAXED) != 0};
}

void stow_work_refuse(struct work *work, uint32_t refusal) {
    if (!work->piece.refusal) work->piece.refusal = refusal;
}

int stow_work_error(uint32_t refusal) {
    switch (refusal) {
    case STOW_DONE:
    case STOW_EMPTY:
        return 0;
    case STOW_CANCELLED:
        return -ECANCELED;
    case STOW_DISK_FULL:
    case STOW_FILE_LIMIT:
        return -ENOSPC;
    case STOW_DISK_ERROR:
        return -EIO;
    case STOW_MAPPINGS:
    case STOW_ADDRESS_SPACE:
    case STOW_NO_DESCRIPTOR:
        return -ENOMEM;
    case STOW_SANDBOX:
        return -EPERM;
    default:
        return -ENOTSUP;
    }
}

bool stow_work_is_registered(uint64_t start, uint64_t end) {
    for (uint32_t i = 0; i < registered.count; i++)
        if (start < registered.ranges[i].end && registered.ranges[i].start < end) return true;
    return false;
}

bool stow_work_register(uint64_t start, uint64_t end) {
    if (!CAPACITY_FOR(&registered, ranges, capacity, registered.count + 1)) return false;
    registered.ranges[registered.count++] = (struct range){start, end};
    return true;
}

void stow_work_unregister(uint64_t start, uint64_t end) {
    for (uint32_t i = 0; i < registered.count; i++)
        if (registered.ranges[i].start == start && registered.ranges[i].end == end) {
            registered.ranges[i] = registered.ranges[--registered.count];
            return;
        }
}

/* --- beginning and ending chunks --- */

/* Why this chunk of a piece must not move, or STOW_DONE. The caller holds the table's lock. */
static uint32_t why_not(const struct work *work, uint64_t start, uint64_t end) {
    if (work->asked_by_hook) return STOW_DONE;
    if (stow_work_is_registered(start, end)) return STOW_REGISTERED;
    return work->gone ? STOW_GONE : STOW_DONE;
}

bool stow_work_begin(struct work *work, uint64_t start, uint64_t end) {
    if (!work->asked_by_hook && move_is_ended(stow_work_current.end)) {
        stow_work_refuse(work, STOW_CANCELLED);
        return false;
    }
    stow_table_lock();
    stow_table_begin(start, end);
    uint32_t refusal = why_not(work, start, end);
    if (refusal) stow_table_end();
    stow_table_unlock();
    if (refusal) stow_work_refuse(work, refusal);
    return !refusal;
}

void stow_work_end(struct work *work, uint64_t bytes) {
    stow_table_end();
    stow_work_update_watch();
    stow_table_unlock();
    work->piece.moved += bytes;
    if (!work->asked_by_hook) stow_work_note_progress(stow_work_current.moved + bytes, stow_work_current.wanted);
}

uint64_t stow_work_chunk_end(uint64_t start, uint64_t stop, uint64_t most) {
    if (stop - start <= most) return stop;
    uint64_t end = (start + most) & ~(uint64_t)(OS_HUGE_PAGE - 1);
    return end > start ? end : start + most;
}

/* --- bringing memory back --- */

uint32_t stow_work_bring_back(struct work *work, struct stow_back *back, uint64_t start, uint64_t stop, bool counts) {
    struct stow_region region;
    stow_back_expect(back, stop);
    for (;;) {
        stow_table_lock();
        bool any = stow_table_first(start, stop, &region);
        stow_table_unlock();
        if (!any) return STOW_DONE;
        uint64_t end = stow_work_chunk_end(region.start, region.end, BACK_CHUNK), done;
        if (!stow_work_begin(work, region.start, end)) return work->piece.refusal;
        uint32_t refusal = stow_back_in(back, region.start, end - region.start, &done);
        stow_table_lock();
        if (done) stow_table_take(region.start, region.start + done);
        stow_work_end(work, counts ? done : 0);
        if (refusal) return refusal;
        start = region.start + done;
    }
}

uint64_t stow_work_stowed_in(uint64_t start, uint64_t end) {
    struct stow_region region = {.end = start};
    uint64_t sum = 0;
    stow_table_lock();
    while (stow_table_first(region.end, end, &region)) sum += region.end - region.start;
    stow_table_unlock();
    return sum;
}

/* --- running work on a thread of its own --- */

/* If no thread can be started, the caller's thread does the work. */
void stow_work_apart(void (*work)(void *context), void *context, bool *own_files) {
    uint64_t signals = 0;
    *own_files = false;
    bool blocked = lock_out_signals(&signals);
    struct stow_thread *thread = blocked ? stow_thread_start(work, context, own_files) : NULL;
    if (thread)
        stow_thread_join(thread);
    else
        work(context);
    if (blocked) lock_let_signals(signals);
}

void stow_work_abandon(void) {
    stow_work_current.held = 0;
    stow_work_current.work = NULL, stow_work_current.count = 0;
    stow_work_current.tell = NULL;
    stow_passing[0] = stow_passing[1] = 0;
    registered.count = 0;
    stow_work_update_watch();
}
