/* cuda_counts.c — see cuda_counts.h. A record is found without a lock. Its key in the table (words.h) is one word, made
 * of its site, tag, kind and device. A block or part keeps the id of its record. The record counts these blocks and
 * parts in `users`. A record is dead when its run (of the program's work) has ended and all its blocks are freed. When
 * there are many records, dead records are closed, and used again for other sites. Their sums go to the record with the
 * same tag, kind and device, and without a site. If a thread finds a record that another thread is closing, it notices
 * this, and looks again. */
#include "preload/cuda/cuda_counts.h"

#include "preload/base/arena.h"
#include "preload/ledger/history.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/count/tags.h"
#include "preload/base/words.h"
#include "preload/base/forked.h"

enum { SITES_MOST = 1 << 20, SWEEP_FROM = 1 << 12, NO_RECORD = UINT32_MAX };

static struct series records = {
    .type = SNAP_CUDA_SITE, .record_size = sizeof(struct snap_cuda_site), .first_bits = 7, .limit = SITES_MOST};
static struct series devices = {.type = SNAP_CUDA_DEVICE,
                                .record_size = sizeof(struct snap_cuda_device),
                                .first_bits = 3,
                                .limit = SNAP_CUDA_DEVICES};
static struct words known;
static struct lock making;
static struct snap_cuda *head, unseen; /* unseen: stands in for the section if the ledger cannot grow */
/* Stands in for a record that could not be made. No reader sees it. */
static struct snap_cuda_site nowhere = {.kind = SNAP_CUDA_DEVICE_MEMORY};
static uint32_t sweep_at = SWEEP_FROM;             /* so many records must exist before the next sweep */
static uint32_t free_list[SWEEP_FROM], free_count; /* closed records, ready to be used again */

/* --- the sections for the process and for devices --- */

static void make_head(void) {
    if (head) return;
    struct snap_cuda *made = ledger_section(SNAP_CUDA, sizeof *made, 1, 0);
    series_take(&records); /* id 0 is no record */
    __atomic_store_n(&head, made ? made : &unseen, __ATOMIC_RELEASE);
}

bool cuda_counts_begun(void) { return __atomic_load_n(&head, __ATOMIC_ACQUIRE) != NULL; }

struct snap_cuda *cuda_counts_head(void) {
    struct snap_cuda *seen = __atomic_load_n(&head, __ATOMIC_ACQUIRE);
    if (likely(seen)) return seen;
    if (!lock_wait(&making)) return &unseen;
    make_head();
    lock_let_go(&making);
    return head;
}

static void make_device(uint32_t device) {
    while (os_load(&devices.next) <= device && series_take(&devices) != SERIES_NONE)
        ;
}

struct snap_cuda_device *cuda_counts_device(uint32_t device) {
    if (device >= SNAP_CUDA_DEVICES) return NULL;
    if (unlikely(os_load(&devices.next) <= device) && lock_wait(&making)) {
        make_device(device);
        lock_let_go(&making);
    }
    struct snap_cuda_device *record = device < os_load(&devices.next) ? series_at(&devices, device) : NULL;
    if (record && !os_load32(&record->used)) __atomic_store_n(&record->used, 1, __ATOMIC_RELEASE);
    return record;
}

/* --- records by site, tag, kind and device --- */

static struct snap_cuda_site *record_at(uint32_t id) {
    struct snap_cuda_site *record = id ? series_at(&records, id) : NULL;
    return record ? record : &nowhere;
}

/* The site, tag, kind and device of a record as one word. It is an even number above 0, because words.h reserves the
 * words 0 and 1. */
static uint64_t word_of(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device) {
    enum { SITE_BITS = 21, KIND_BITS = 4 };
    uint64_t above = (uint64_t)kind | (uint64_t)(device & 0xFF) << KIND_BITS;
    return ((above << SNAP_SITE_TAG_BITS | tag) << SITE_BITS | site) << 1;
}

static bool cuda_counts_use(struct snap_cuda_site *record) {
    if (likely(!(__atomic_fetch_add(&record->users, 1, __ATOMIC_ACQUIRE) & SNAP_CUDA_SITE_CLOSED))) return true;
    __atomic_fetch_sub(&record->users, 1, __ATOMIC_RELEASE);
    return false;
}

/* Whether the record still counts for this site, tag, kind and device. If not, the record was closed and used again
 * after the look-up. Call is_of after cuda_counts_use, because a record in use does not change. */
static bool is_of(const struct snap_cuda_site *record, uint32_t site, uint32_t tag, enum snap_cuda_kind kind,
                  uint32_t device) {
    return record->site == site && record->tag == tag && record->kind == kind && record->device == device;
}

static void add_to(uint64_t *word, uint64_t n) { __atomic_fetch_add(word, n, __ATOMIC_RELAXED); }

static uint32_t make_record(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device) {
    uint32_t id = free_count ? free_list[--free_count] : series_take(&records);
    struct snap_cuda_site *record = id == SERIES_NONE ? NULL : series_at(&records, id);
    if (!record) return NO_RECORD;
    record->site = site;
    record->tag = tag;
    record->device = (uint16_t)device;
    record->counter = (struct snap_counter){0};
    __atomic_store_n(&record->kind, (uint8_t)kind, __ATOMIC_RELEASE);
    __atomic_fetch_and(&record->users, ~SNAP_CUDA_SITE_CLOSED, __ATOMIC_RELEASE);
    if (!words_put(&known, word_of(site, tag, kind, device), id)) return NO_RECORD;
    return id;
}

static uint32_t find_or_make(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device) {
    uint32_t id = words_find(&known, word_of(site, tag, kind, device));
    return id == WORDS_NONE ? make_record(site, tag, kind, device) : id;
}

/* Whether the record is dead for good: its run has ended and none of its blocks lives. A record without a site is never
 * dead: it holds the sums of closed records. */
static bool is_over(const struct snap_cuda_site *record) {
    uint32_t run = tags_at(record->tag).run;
    return record->kind && record->site && run && run != tags_run() && !os_load32(&record->users);
}

static bool close_record(uint32_t id, struct snap_cuda_site *record) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&record->users, &none, SNAP_CUDA_SITE_CLOSED, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    uint32_t rest = find_or_make(0, record->tag, record->kind, record->device);
    if (rest == NO_RECORD) {
        __atomic_fetch_and(&record->users, ~SNAP_CUDA_SITE_CLOSED, __ATOMIC_RELEASE);
        return false;
    }
    struct snap_counter *to = &record_at(rest)->counter, sum = record->counter;
    add_to(&to->alloc_bytes, sum.alloc_bytes);
    add_to(&to->alloc_blocks, sum.alloc_blocks);
    add_to(&to->free_bytes, sum.free_bytes);
    add_to(&to->free_blocks, sum.free_blocks);
    words_take_out(&known, word_of(record->site, record->tag, record->kind, record->device));
    __atomic_store_n(&record->kind, 0, __ATOMIC_RELEASE);
    free_list[free_count++] = id;
    ledger_lost(SNAP_LOST_FOLDED);
    return true;
}

/* Closes dead records when there are `sweep_at` records and no closed record is left. If this sweep closes only a few
 * records, the next sweep waits until there are twice as many records as now. */
static void cuda_counts_sweep(void) {
    uint32_t all = (uint32_t)os_load(&records.next);
    if (free_count || all < sweep_at) return;
    for (uint32_t id = 1; id < all && free_count < SWEEP_FROM; id++) {
        struct snap_cuda_site *record = series_at(&records, id);
        if (record && is_over(record)) close_record(id, record);
    }
    if (free_count < SWEEP_FROM / 4) sweep_at = 2 * all;
}

static uint32_t new_record(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device) {
    uint32_t id = NO_RECORD;
    if (lock_wait(&making)) {
        make_head();
        cuda_counts_sweep();
        id = find_or_make(site, tag, kind, device);
        lock_let_go(&making);
    }
    return id;
}

/* Finds or makes a record, and counts one more user in it. Returns the record's id, or 0 if that failed. */
static uint32_t record_for(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device) {
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        uint32_t id = words_find(&known, word_of(site, tag, kind, device));
        if (id == WORDS_NONE) id = new_record(site, tag, kind, device);
        if (id == NO_RECORD) break;
        if (unlikely(!cuda_counts_use(record_at(id)))) continue;
        if (likely(is_of(record_at(id), site, tag, kind, device))) return id;
        cuda_counts_let_go(id);
    }
    ledger_lost(SNAP_LOST_CUDA);
    return 0;
}

/* --- live bytes of the process and of devices --- */

static void note_device(uint32_t device, const int64_t *live, uint64_t before, uint64_t now, int64_t total) {
    __atomic_store_n(&history_live[device], live, __ATOMIC_RELAXED);
    if (unlikely(history_wants(&history_on_devices, &history_devices[device], now, os_not_negative(total))))
        history_add_device(device, before);
}

static void move_totals(enum snap_cuda_kind kind, uint32_t device, int64_t bytes) {
    struct snap_cuda *all = cuda_counts_head();
    struct snap_cuda_device *one = cuda_counts_device(device);
    if (!snap_cuda_on_device(kind)) return;
    int64_t total = __atomic_add_fetch(&all->live, bytes, __ATOMIC_RELAXED);
    if (total > 0 && (uint64_t)total > os_load(&all->peak)) {
        os_raise(&all->peak, (uint64_t)total);
        os_store(&all->peak_ns, os_now());
    }
    if (!one) return;
    int64_t live = __atomic_add_fetch(&one->live, bytes, __ATOMIC_RELAXED);
    if (live > 0) os_raise(&one->peak, (uint64_t)live);
    if (device < SNAP_POINT_DEVICES)
        note_device(device, &one->live, os_not_negative(live - bytes), os_not_negative(live), total);
}

uint32_t cuda_counts_add(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device, uint64_t bytes) {
    uint32_t id = record_for(site, tag, kind, device);
    struct snap_cuda_site *record = record_at(id);
    add_to(&record->counter.alloc_bytes, bytes);
    add_to(&record->counter.alloc_blocks, 1);
    move_totals(kind, device, (int64_t)bytes);
    return id;
}

void cuda_counts_let_go(uint32_t id) {
    if (id) __atomic_fetch_sub(&record_at(id)->users, 1, __ATOMIC_RELEASE);
}

void cuda_counts_remove(uint32_t id, uint64_t bytes, uint32_t blocks) {
    struct snap_cuda_site *record = record_at(id);
    add_to(&record->counter.free_bytes, bytes);
    add_to(&record->counter.free_blocks, blocks);
    move_totals(record->kind, record->device, -(int64_t)bytes);
    cuda_counts_let_go(id);
}

uint32_t cuda_counts_shift(uint32_t id, uint32_t model, uint64_t bytes, uint32_t blocks) {
    struct snap_cuda_site *from = record_at(id);
    struct snap_tag tag = tags_at(from->tag);
    if (!id) return 0;
    tag.model = model;
    uint32_t to = record_for(from->site, tags_number(tag), from->kind, from->device);
    if (!to) return 0;
    add_to(&record_at(to)->counter.alloc_bytes, bytes);
    add_to(&record_at(to)->counter.alloc_blocks, blocks);
    add_to(&from->counter.alloc_bytes, -bytes);
    add_to(&from->counter.alloc_blocks, -(uint64_t)blocks);
    return to;
}

uint32_t cuda_counts_model(uint32_t id) { return tags_at(record_at(id)->tag).model; }

struct cuda_made cuda_counts_at(uint32_t id) {
    const struct snap_cuda_site *record = record_at(id);
    return (struct cuda_made){os_load32(&record->site), os_load32(&record->tag)};
}

void cuda_counts_visit(void (*visit)(const struct snap_cuda_site *site, void *context), void *context) {
    for (uint32_t id = 1, n = (uint32_t)os_load(&records.next); id < n; id++) {
        const struct snap_cuda_site *record = series_at(&records, id);
        if (record && record->kind) visit(record, context);
    }
}

static void cuda_counts_abandon(void) {
    series_reset(&records);
    series_reset(&devices);
    words_clear(&known);
    making = (struct lock){0};
    head = NULL;
    free_count = 0;
    sweep_at = SWEEP_FROM;
}
FORKED(cuda_counts_abandon);
