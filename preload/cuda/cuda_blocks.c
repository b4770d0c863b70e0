/* cuda_blocks.c — see cuda_blocks.h. A key is the number that identifies a block, and the kind of this number (enum
 * cuda_space), in one word. The table has levels of slots, each four times as large as the level before. A key may be
 * in one of only a few slots of each level. If none of these is free, an insertion makes the next level. While a thread
 * works on a record, bit 0 of the record's key is set: the record is claimed. Another thread that looks for this key
 * waits a short time. */
#include "preload/cuda/cuda_blocks.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/forked.h"

enum { LEVELS = 8, FIRST_SLOTS = 512, REACH = 16, SPACE_BITS = 3, CLAIMED = 1 };

static struct level {
    uint64_t *keys;
    uint64_t mask;
    struct snap_cuda_block *records;
} levels[LEVELS];
static uint32_t level_count;
static struct lock making_level;

/* A number is an address or a handle. A handle may have any value, so a number with more than NUMBER_BITS bits is
 * hashed. */
static uint64_t key_of(enum cuda_space space, uint64_t number) {
    enum { NUMBER_BITS = 64 - SPACE_BITS - 1 };
    uint64_t rest = number >> NUMBER_BITS, fitting = (number ^ rest * 0x9E3779B97F4A7C15u) << (SPACE_BITS + 1);
    return fitting | (uint64_t)space << 1;
}

static enum cuda_space space_of(uint64_t key) { return (enum cuda_space)(key >> 1 & ((1 << SPACE_BITS) - 1)); }

static uint64_t cuda_blocks_hash(uint64_t key) { return (key >> 1) * 0x9E3779B97F4A7C15u >> 20; }

static uint64_t slots_in(uint32_t k) { return (uint64_t)FIRST_SLOTS << (2 * k); }

/* --- levels of the table --- */

/* Makes the records of a level. If the ledger cannot grow, they are in private memory, and no reader of the ledger sees
 * them. Returns NULL if there is no memory. */
static struct snap_cuda_block *make_records(uint32_t k) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < k; i++) first += slots_in(i);
    struct snap_cuda_block *records =
        ledger_section(SNAP_CUDA_BLOCK, sizeof(struct snap_cuda_block), slots_in(k), first);
    if (records) return records;
    ledger_lost(SNAP_LOST_CUDA);
    return arena_take(slots_in(k) * sizeof *records);
}

static bool make_level(uint32_t k) {
    struct level *level = &levels[k];
    uint64_t *keys = arena_take(slots_in(k) * sizeof *keys);
    level->records = keys ? make_records(k) : NULL;
    level->mask = slots_in(k) - 1;
    level->keys = keys;
    if (!level->records) return false;
    ledger_note_own_memory();
    __atomic_store_n(&level_count, k + 1, __ATOMIC_RELEASE);
    return true;
}

static uint32_t count_levels(void) { return __atomic_load_n(&level_count, __ATOMIC_ACQUIRE); }

/* Makes a level, unless there are more than `known` levels already. Returns false if it cannot make one, because there
 * are LEVELS levels or there is no memory. */
static bool add_level(uint32_t known) {
    if (known >= LEVELS || !lock_wait(&making_level)) return false;
    bool done = count_levels() > known || make_level(known);
    lock_let_go(&making_level);
    return done;
}

/* --- slots, and the records in them --- */

struct slot {
    uint64_t *key;
    struct snap_cuda_block *record;
};

static struct slot slot_at(const struct level *level, uint64_t index) {
    index &= level->mask;
    return (struct slot){&level->keys[index], &level->records[index]};
}

/* A walk through the table may copy a record while another thread writes it. So each word of a record is written and
 * read as a whole. */
typedef uint64_t __attribute__((may_alias)) record_word;
enum { RECORD_WORDS = sizeof(struct snap_cuda_block) / sizeof(record_word) };

static void write_record(struct snap_cuda_block *record, const struct snap_cuda_block *block) {
    struct snap_cuda_block written = *block;
    record_word *to = (record_word *)record;
    const record_word *from = (const record_word *)&written;
    written.state = SNAP_CUDA_WRITING;
    for (int i = 0; i < RECORD_WORDS; i++) __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
    __atomic_store_n(&record->state, SNAP_CUDA_LIVE, __ATOMIC_RELEASE);
}

static struct snap_cuda_block copy_of(const struct snap_cuda_block *record) {
    struct snap_cuda_block copy;
    record_word *to = (record_word *)&copy;
    const record_word *from = (const record_word *)record;
    for (int i = 0; i < RECORD_WORDS; i++) to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    return copy;
}

static bool add_to(const struct level *level, uint64_t key, const struct snap_cuda_block *block) {
    uint64_t home = cuda_blocks_hash(key);
    for (uint64_t step = 0; step < REACH; step++) {
        struct slot at = slot_at(level, home + step);
        uint64_t empty = 0;
        if (os_load(at.key) ||
            !__atomic_compare_exchange_n(at.key, &empty, key | CLAIMED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        write_record(at.record, block);
        __atomic_store_n(at.key, key, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

bool cuda_blocks_add(enum cuda_space space, const struct snap_cuda_block *block) {
    uint64_t key = key_of(space, block->address);
    for (uint32_t count = count_levels();; count = count_levels()) {
        for (uint32_t k = count; k-- > 0;) /* the newest level has the most free slots */
            if (add_to(&levels[k], key, block)) return true;
        if (!add_level(count)) break;
    }
    ledger_lost(SNAP_LOST_CUDA);
    return false;
}

/* Finds the slot of the key. Returns false if there is none. Sets *claimed to whether the record is claimed. */
static bool find_once(uint64_t key, struct slot *at, bool *claimed) {
    uint64_t home = cuda_blocks_hash(key);
    for (uint32_t k = count_levels(); k-- > 0;)
        for (uint64_t step = 0; step < REACH; step++) {
            *at = slot_at(&levels[k], home + step);
            uint64_t seen = __atomic_load_n(at->key, __ATOMIC_ACQUIRE);
            *claimed = seen == (key | CLAIMED);
            if (seen == key || *claimed) return true;
        }
    return false;
}

/* Finds the slot of the key, and waits while another operation claims the record, which usually takes only a moment.
 * Returns false if there is no such slot. Also returns false if the record stays claimed, for example because this is a
 * signal handler that has interrupted the other operation. Then the caller's operation is given up, and counted as
 * lost. */
static bool find_slot(uint64_t key, struct slot *at) {
    bool claimed;
    int turn = 0;
    do
        if (likely(!find_once(key, at, &claimed))) return false;
    while (unlikely(claimed) && lock_pause(turn++));
    if (unlikely(claimed)) ledger_lost(SNAP_LOST_CUDA);
    return !claimed;
}

/* Claims the record for the caller. Returns false in the same cases as find_slot. */
static bool cuda_blocks_claim(uint64_t key, struct slot *at) {
    while (find_slot(key, at)) {
        uint64_t seen = key;
        if (likely(
                __atomic_compare_exchange_n(at->key, &seen, key | CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)))
            return true;
    }
    return false;
}

bool cuda_blocks_take_if(enum cuda_space space, uint64_t number, cuda_blocks_test *is, const void *context,
                         struct snap_cuda_block *out) {
    struct slot at;
    uint64_t key = key_of(space, number);
    if (!cuda_blocks_claim(key, &at)) return false;
    if (is && !is(at.record, context)) {
        __atomic_store_n(at.key, key, __ATOMIC_RELEASE);
        return false;
    }
    *out = *at.record;
    __atomic_store_n(&at.record->state, SNAP_CUDA_EMPTY, __ATOMIC_RELEASE);
    __atomic_store_n(at.key, 0, __ATOMIC_RELEASE);
    return true;
}

bool cuda_blocks_take(enum cuda_space space, uint64_t number, struct snap_cuda_block *out) {
    return cuda_blocks_take_if(space, number, NULL, NULL, out);
}

struct snap_cuda_block *cuda_blocks_hold(enum cuda_space space, uint64_t number, struct cuda_hold *hold) {
    struct slot at;
    if (!cuda_blocks_claim(key_of(space, number), &at)) return NULL;
    *hold = (struct cuda_hold){at.key, at.record};
    return at.record;
}

void cuda_blocks_let_go(const struct cuda_hold *hold) {
    __atomic_fetch_and(hold->key, ~(uint64_t)CLAIMED, __ATOMIC_RELEASE);
}

bool cuda_blocks_find(enum cuda_space space, uint64_t number, struct snap_cuda_block *out) {
    struct cuda_hold hold;
    const struct snap_cuda_block *record = cuda_blocks_hold(space, number, &hold);
    if (!record) return false;
    *out = *record;
    cuda_blocks_let_go(&hold);
    return true;
}

/* Copies a slot's record, also if another thread has claimed it. Returns false if the slot's key is not `key` any more,
 * or if the record is being written. */
static bool copy_if_there(const struct slot *at, uint64_t key, struct snap_cuda_block *out) {
    if (!key) return false;
    *out = copy_of(at->record);
    uint64_t now = __atomic_load_n(at->key, __ATOMIC_ACQUIRE);
    return out->state == SNAP_CUDA_LIVE && (now | CLAIMED) == (key | CLAIMED);
}

void cuda_blocks_all(cuda_blocks_visit *visit, void *context) {
    for (uint32_t k = 0; k < count_levels(); k++)
        for (uint64_t i = 0; i <= levels[k].mask; i++) {
            struct slot at = slot_at(&levels[k], i);
            struct snap_cuda_block block;
            uint64_t key = __atomic_load_n(at.key, __ATOMIC_ACQUIRE);
            if (copy_if_there(&at, key, &block)) visit(space_of(key), &block, context);
        }
}

static void cuda_blocks_abandon(void) {
    memset(levels, 0, sizeof levels); /* the memory of the levels is a copy of the parent's, and is not freed */
    level_count = 0;
    making_level = (struct lock){0};
}
FORKED(cuda_blocks_abandon);
