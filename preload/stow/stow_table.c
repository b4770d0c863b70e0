/* stow_table.c — see stow_table.h. */
#include "preload/stow/stow_table.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/seal.h"

enum { FIRST_SIZE = 1024 };

/* --- the lock of the table --- */

static struct {
    uint32_t word; /* 0: free; 1: held; 2: held, and threads wait */
    uint32_t depth;
    uint64_t owner;
    bool blocked;
    uint64_t signals;
} lock;

static struct {
    uint64_t start, end;
    uint32_t serial; /* changes when a chunk ends; waiting threads look at it */
} moving;

static void wait_at(uint32_t *word, uint32_t value) {
    const struct timespec most = {.tv_sec = 1};
    os_call(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most);
}

static void wake_all(uint32_t *word) { os_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX); }

static void stow_table_acquire(void) {
    uint32_t was = 0;
    if (__atomic_compare_exchange_n(&lock.word, &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&lock.word, 2, __ATOMIC_ACQUIRE)) wait_at(&lock.word, 2);
}

static void stow_table_release(void) {
    if (__atomic_exchange_n(&lock.word, 0, __ATOMIC_RELEASE) == 2) wake_all(&lock.word);
}

/* The calling thread's id. In a sandbox the kernel is not asked, and the id is the thread pointer, which is larger than
 * any thread id. */
static uint64_t self_id(void) { return seal_is_set() ? (uint64_t)__builtin_thread_pointer() : os_tid(); }

void stow_table_lock(void) {
    uint64_t self = self_id();
    uint64_t signals = 0;
    if (__atomic_load_n(&lock.owner, __ATOMIC_RELAXED) == self) {
        lock.depth++;
        return;
    }
    bool blocked = lock_out_signals(&signals);
    stow_table_acquire();
    lock.blocked = blocked;
    lock.signals = signals;
    __atomic_store_n(&lock.owner, self, __ATOMIC_RELAXED);
}

void stow_table_unlock(void) {
    if (lock.depth) {
        lock.depth--;
        return;
    }
    bool blocked = lock.blocked;
    uint64_t signals = lock.signals;
    __atomic_store_n(&lock.owner, 0, __ATOMIC_RELAXED);
    stow_table_release();
    if (blocked) lock_let_signals(signals);
}

/* Waits for the end of a chunk, and lets go of the lock meanwhile. Signals stay blocked, so that no handler of this
 * thread runs between the wait and what the thread then does under the lock. */
static void wait_for_chunk(void) {
    uint32_t serial = __atomic_load_n(&moving.serial, __ATOMIC_ACQUIRE), depth = lock.depth;
    uint64_t self = lock.owner;
    bool blocked = lock.blocked;
    uint64_t signals = lock.signals;
    lock.depth = 0;
    __atomic_store_n(&lock.owner, 0, __ATOMIC_RELAXED);
    stow_table_release();
    wait_at(&moving.serial, serial);
    stow_table_acquire();
    __atomic_store_n(&lock.owner, self, __ATOMIC_RELAXED);
    lock.depth = depth, lock.blocked = blocked, lock.signals = signals;
}

static bool in_flight(uint64_t start, uint64_t end) { return moving.start < end && start < moving.end; }

void stow_table_wait(uint64_t start, uint64_t end) {
    while (in_flight(start, end)) wait_for_chunk();
}

void stow_table_begin(uint64_t start, uint64_t end) {
    stow_table_wait(0, UINT64_MAX);
    moving.start = start, moving.end = end;
}

void stow_table_end(void) {
    moving.start = moving.end = 0;
    __atomic_fetch_add(&moving.serial, 1, __ATOMIC_RELEASE);
    wake_all(&moving.serial);
}

void stow_table_leave_in_child(void) {
    bool blocked = lock.blocked;
    uint64_t signals = lock.signals;
    stow_table_abandon();
    if (blocked) lock_let_signals(signals);
}

void stow_table_abandon(void) {
    memset(&lock, 0, sizeof lock);
    moving.start = moving.end = 0;
}

/* --- regions, sorted, none overlapping --- */

static struct stow_region *regions;
static uint32_t count, capacity;

bool stow_table_reserve(uint32_t more) {
    if (count + more <= capacity) return true;
    uint32_t wanted = capacity ? capacity : FIRST_SIZE;
    while (wanted < count + more) wanted *= 2;
    struct stow_region *larger = os_map(wanted * sizeof *larger);
    if (!larger) return false;
    if (regions) {
        memcpy(larger, regions, count * sizeof *regions);
        os_unmap(regions, capacity * sizeof *regions);
    }
    regions = larger, capacity = wanted;
    return true;
}

/* The index of the first region that ends after `address`. */
static uint32_t stow_table_position(uint64_t address) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (regions[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void stow_table_insert(uint32_t at, struct stow_region region) {
    memmove(regions + at + 1, regions + at, (count - at) * sizeof *regions);
    regions[at] = region;
    count++;
}

static void stow_table_erase(uint32_t from, uint32_t to) {
    memmove(regions + from, regions + to, (count - to) * sizeof *regions);
    count -= to - from;
}

/* Takes a range out of the regions. If the range cuts a region in two, one more entry is needed. If there is no
 * memory for this entry, the tail of the region is forgotten: the tail stays in its file, and is not brought back. */
void stow_table_take(uint64_t start, uint64_t end) {
    uint32_t first = stow_table_position(start), last;
    if (first < count && regions[first].start < start && regions[first].end > end) {
        struct stow_region tail = regions[first];
        tail.start = end;
        regions[first].end = start;
        if (stow_table_reserve(1)) stow_table_insert(first + 1, tail);
        return;
    }
    if (first < count && regions[first].start < start && regions[first].end > start) regions[first++].end = start;
    for (last = first; last < count && regions[last].end <= end; last++) continue;
    if (last < count && regions[last].start < end) regions[last].start = end;
    stow_table_erase(first, last);
}

bool stow_table_put(uint64_t start, uint64_t end, uint32_t owner) {
    if (!stow_table_reserve(2)) return false;
    stow_table_take(start, end);
    uint32_t at = stow_table_position(start);
    if (at && regions[at - 1].end == start && regions[at - 1].owner == owner)
        regions[at - 1].end = end;
    else
        stow_table_insert(at, (struct stow_region){.start = start, .end = end, .owner = owner});
    return true;
}

bool stow_table_first(uint64_t start, uint64_t end, struct stow_region *out) {
    uint32_t at = stow_table_position(start);
    if (start >= end || at == count || regions[at].start >= end) return false;
    *out = regions[at];
    if (out->start < start) out->start = start;
    if (out->end > end) out->end = end;
    return true;
}

uint32_t stow_table_count(void) { return count; }

struct stow_region *stow_table_regions(void) {
    return regions;
}
