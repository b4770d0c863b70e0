/* blocks.c — see blocks.h.
 *
 * The table has levels of buckets. Each level is four times as large as the level before. A thread makes the next level
 * when its insertion finds no free slot nearby. A bucket is eight addresses (one cache line) and their data. An entry
 * that does not fit into its home bucket goes into one of the next few buckets. The home counts such entries in `away`,
 * so a look-up rarely leaves the first cache line. No address is in the table twice: the hook adds an address after the
 * allocator returned it, and takes it out before the allocator gets it back. */
#include "preload/blocks/blocks.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

enum { WIDTH = 8, REACH = 4, LEVELS = 10, FIRST_BUCKETS = 32, PAUSES = 200, PAUSE_NS = 100000 };

struct bucket {
    uint64_t addresses[WIDTH]; /* 0: the slot is free; bit 0 set: a thread is filling or clearing the slot */
    struct block blocks[WIDTH];
    uint32_t away; /* how many entries have their home in this bucket, and lie in one of the next buckets */
    uint32_t pad[15];
};

struct level {
    struct bucket *buckets;
    uint64_t mask;
    struct snap_large *records; /* slot i of bucket b is record b * WIDTH + i; NULL: the ledger is full */
};

static struct level levels[LEVELS];
static uint32_t level_count;
static struct lock making_level;

static uint64_t blocks_hash(uintptr_t address) { return (address >> 4) * 0x9E3779B97F4A7C15u >> 20; }

static uint64_t buckets_in(uint32_t k) { return (uint64_t)FIRST_BUCKETS << (2 * k); }

static void open_level(uint32_t k) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < k; i++) first += buckets_in(i) * WIDTH;
    __atomic_store_n(&levels[k].records,
                     ledger_section(SNAP_LARGE, sizeof(struct snap_large), buckets_in(k) * WIDTH, first),
                     __ATOMIC_RELEASE);
}

static bool has_level(uint32_t k) { return __atomic_load_n(&levels[k].buckets, __ATOMIC_ACQUIRE) != NULL; }

static void publish_level(uint32_t k) {
    uint32_t count = k;
    __atomic_compare_exchange_n(&level_count, &count, k + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Makes level k if there is none yet. False: there is no memory, or the lock stayed taken. Without the lock, two
 * threads could reserve memory for the same level. */
static bool make_level(uint32_t k) {
    if (!lock_wait(&making_level)) return has_level(k);
    struct bucket *made = has_level(k) ? NULL : arena_take(buckets_in(k) * sizeof *made);
    if (made) {
        levels[k].mask = buckets_in(k) - 1;
        __atomic_store_n(&levels[k].buckets, made, __ATOMIC_RELEASE);
    }
    lock_let_go(&making_level);
    if (made) {
        open_level(k);
        ledger_note_own_memory();
        publish_level(k);
    }
    return has_level(k);
}

/* Adds level k, unless another thread added it. False: make_level failed, or k is too large.
 *
 * If another thread is making the level, and waits for the disk, this call waits for that thread, for a limited time.
 * After that time it uses the level, although the level has no records yet: blocks that are put there are counted as
 * lost records. The time is limited because the other thread may never finish, for one of these reasons:
 * - It is a thread of the parent process, which forked this process meanwhile.
 * - This call comes from a signal handler, and the handler has interrupted that thread. */
static bool add_level(uint32_t k) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (k >= LEVELS || (!has_level(k) && !make_level(k))) return false;
    for (int i = 0; i < PAUSES && __atomic_load_n(&level_count, __ATOMIC_ACQUIRE) <= k && !seal_is_set(); i++)
        os_call(SYS_nanosleep, &pause, 0);
    publish_level(k);
    return true;
}

static void blocks_write_record(struct level *level, uint64_t slot, uintptr_t address, const struct block *block,
                                uint32_t thread) {
    struct snap_large *records = __atomic_load_n(&level->records, __ATOMIC_ACQUIRE);
    if (!records) {
        ledger_lost(SNAP_LOST_LARGE);
        return;
    }
    struct snap_large *record = records + slot;
    record->size = block->size;
    record->birth_ns = os_now();
    record->resident = 0;
    record->site = block->site;
    record->thread = thread;
    __atomic_store_n(&record->address, address, __ATOMIC_RELEASE);
}

static bool claim_in(struct bucket *bucket, uintptr_t address, int *slot) {
    for (int i = 0; i < WIDTH; i++) {
        uint64_t empty = 0;
        if (os_load(&bucket->addresses[i]) == 0 &&
            __atomic_compare_exchange_n(&bucket->addresses[i], &empty, address | 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            *slot = i;
            return true;
        }
    }
    return false;
}

static bool add_to_level(struct level *level, uintptr_t address, const struct block *block, uint32_t thread) {
    uint64_t home = blocks_hash(address);
    for (uint64_t step = 0; step < REACH; step++) {
        uint64_t index = (home + step) & level->mask;
        struct bucket *bucket = level->buckets + index;
        int slot;
        if (!claim_in(bucket, address, &slot)) continue;
        bucket->blocks[slot] = *block;
        blocks_write_record(level, index * WIDTH + (uint64_t)slot, address, block, thread);
        if (step) __atomic_fetch_add(&level->buckets[home & level->mask].away, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&bucket->addresses[slot], address, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

bool blocks_add(uintptr_t address, const struct block *block, uint32_t thread) {
    for (int attempt = 0; attempt < 64; attempt++) {
        uint32_t count = __atomic_load_n(&level_count, __ATOMIC_ACQUIRE);
        /* The newest level first: it has the most free slots. */
        for (uint32_t k = count; k-- > 0;)
            if (add_to_level(&levels[k], address, block, thread)) return true;
        if (!add_level(count)) break;
    }
    ledger_lost(SNAP_LOST_LARGE);
    return false;
}

struct slot {
    struct level *level;
    struct bucket *bucket, *home;
    int slot;
};

static bool find_in_level(struct level *level, uintptr_t address, struct slot *at) {
    uint64_t home = blocks_hash(address);
    at->level = level;
    at->home = level->buckets + (home & level->mask);
    for (uint64_t step = 0; step < REACH; step++) {
        at->bucket = level->buckets + ((home + step) & level->mask);
        for (at->slot = 0; at->slot < WIDTH; at->slot++)
            if (__atomic_load_n(&at->bucket->addresses[at->slot], __ATOMIC_ACQUIRE) == address) return true;
        if (!__atomic_load_n(&at->home->away, __ATOMIC_ACQUIRE)) return false;
    }
    return false;
}

static bool blocks_find_slot(uintptr_t address, struct slot *at) {
    uint32_t count = __atomic_load_n(&level_count, __ATOMIC_ACQUIRE);
    for (uint32_t k = count; k-- > 0;)
        if (find_in_level(&levels[k], address, at)) return true;
    return false;
}

bool blocks_find(uintptr_t address, struct block *out) {
    struct slot at;
    if (!blocks_find_slot(address, &at)) return false;
    *out = at.bucket->blocks[at.slot];
    return true;
}

bool blocks_change(uintptr_t address, const struct block *block) {
    struct slot at;
    if (!blocks_find_slot(address, &at)) return false;
    at.bucket->blocks[at.slot] = *block;
    struct snap_large *records = __atomic_load_n(&at.level->records, __ATOMIC_ACQUIRE);
    if (records) records[(at.bucket - at.level->buckets) * WIDTH + at.slot].site = block->site;
    return true;
}

uintptr_t blocks_around(uintptr_t address, struct block *out) {
    uint32_t count = __atomic_load_n(&level_count, __ATOMIC_ACQUIRE);
    for (uint32_t k = 0; k < count; k++)
        for (uint64_t i = 0; i < buckets_in(k) * WIDTH; i++) {
            const struct bucket *bucket = &levels[k].buckets[i / WIDTH];
            uintptr_t start = os_load(&bucket->addresses[i % WIDTH]);
            *out = bucket->blocks[i % WIDTH];
            if (start > 1 && !(start & 1) && address >= start && address - start < out->size) return start;
        }
    return 0;
}

bool blocks_take(uintptr_t address, struct block *out) {
    struct slot at;
    if (!blocks_find_slot(address, &at)) return false;
    uint64_t expected = address;
    *out = at.bucket->blocks[at.slot];
    /* The slot stays claimed until its record is cleared. Otherwise we could clear the record of the slot's next
     * block. */
    if (!__atomic_compare_exchange_n(&at.bucket->addresses[at.slot], &expected, address | 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    struct snap_large *records = __atomic_load_n(&at.level->records, __ATOMIC_ACQUIRE);
    if (records)
        __atomic_store_n(&records[(at.bucket - at.level->buckets) * WIDTH + at.slot].address, 0, __ATOMIC_RELEASE);
    if (at.bucket != at.home) __atomic_fetch_sub(&at.home->away, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&at.bucket->addresses[at.slot], 0, __ATOMIC_RELEASE);
    return true;
}

void blocks_open_ledger(void) {
    if (!level_count)
        add_level(0);
    else
        for (uint32_t k = 0; k < LEVELS && has_level(k); k++) open_level(k);
}

void blocks_close_ledger(void) {
    for (uint32_t k = 0; k < LEVELS; k++) levels[k].records = NULL;
    making_level = (struct lock){0}; /* a thread of the parent may have held it */
}
FORKED(blocks_close_ledger);

void blocks_visit_records(void (*visit)(struct snap_large *record, void *context), void *context) {
    for (uint32_t k = 0; k < level_count; k++)
        for (uint64_t i = 0; levels[k].records && i < buckets_in(k) * WIDTH; i++)
            if (os_load(&levels[k].records[i].address) > 1) visit(&levels[k].records[i], context);
}
