/* account.c — see account.h. */
#include "preload/count/account.h"

#include "preload/count/account_fast.h"
#include "preload/count/counters.h"
#include "preload/count/owner.h"
#include "preload/count/peak.h"
#include "preload/count/tags.h"
#include "preload/base/forked.h"
#include "preload/ledger/history.h"
#include "preload/ledger/ledger.h"

/* The running totals in bytes. live_host lacks the bytes that threads have not added yet (thread_inside.h). */
static int64_t live_host, live_mapped;
static uint64_t inherited_freed; /* freed bytes of blocks that a parent process made */
static uint64_t while_peak;      /* the peak in bytes since the latest memstow_peak with `anew` */

/* The bytes that a thread has not added to live_host yet; negative if it freed more than it allocated. */
static int64_t moved_by(const struct thread *self) { return (int64_t)(self->drift - self->quantum); }

/* --- running totals, and their peaks --- */

/* live_host is read before the threads' own bytes. If a thread adds its bytes to live_host in between, these bytes are
 * left out of the sum. In the other order, they could be counted twice. */
void account_raise_peak(void) {
    int64_t maps = __atomic_load_n(&live_mapped, __ATOMIC_RELAXED),
            host = __atomic_load_n(&live_host, __ATOMIC_ACQUIRE);
    for (uint32_t slot = SNAP_THREAD_FIRST, end = thread_slots(); slot < end; slot++)
        if (thread_at(slot)) host += moved_by(thread_at(slot));
    if (host > 0) os_raise(&ledger_head->host_peak, (uint64_t)host);
    if (host + maps <= 0 || (uint64_t)(host + maps) <= os_load(&ledger_head->total_peak)) return;
    os_raise(&ledger_head->total_peak, (uint64_t)(host + maps));
    ledger_head->total_peak_ns = os_now();
}

/* The innermost node whose scope is open on this thread; 0: none. */
static uint32_t present_node(void) {
    const struct scopes *scopes = &tags_scopes;
    for (uint32_t i = scopes->count < MEMSTOW_SCOPES ? scopes->count : MEMSTOW_SCOPES; i-- > 0;)
        if (owner_kind(scopes->owners[i]) == MEMSTOW_NODE) return scopes->owners[i];
    return 0;
}

static void add_to_history(int64_t host_before, int64_t maps_before, int64_t host, int64_t maps) {
    bool owned = __atomic_load_n(&tags_used, __ATOMIC_RELAXED);
    history_add((struct history_totals){os_not_negative(host_before), os_not_negative(maps_before)},
                (struct history_totals){os_not_negative(host), os_not_negative(maps)}, owned ? tags_run() : 0,
                owned ? present_node() : 0);
}

/* Called when the running totals have changed. Updates the ledger's copy, the history, the peaks, and the picture of
 * the highest peak. */
static void note_totals(void) {
    struct snap_header *head = ledger_head;
    int64_t host = __atomic_load_n(&live_host, __ATOMIC_RELAXED);
    int64_t maps = __atomic_load_n(&live_mapped, __ATOMIC_RELAXED);
    int64_t host_before = __atomic_load_n(&head->host_live, __ATOMIC_RELAXED);
    int64_t maps_before = __atomic_load_n(&head->mapped_live, __ATOMIC_RELAXED);
    uint64_t total = os_not_negative(host + maps);
    __atomic_store_n(&head->host_live, host, __ATOMIC_RELAXED);
    __atomic_store_n(&head->mapped_live, maps, __ATOMIC_RELAXED);
    if (host > 0) os_raise(&head->host_peak, (uint64_t)host);
    if (maps > 0) os_raise(&head->mapped_peak, (uint64_t)maps);
    os_raise(&while_peak, total);
    if (unlikely(history_wants(&history_memory, &history_total, total, total)))
        add_to_history(host_before, maps_before, host, maps);
    if (total > os_load(&head->total_peak)) {
        os_raise(&head->total_peak, total);
        os_store(&head->total_peak_ns, os_now());
    } else {
        peak_watch(total);
    }
}

void account_flush(struct thread *self) {
    int64_t moved = moved_by(self);
    thread_begin_quantum(self);
    __atomic_fetch_add(&live_host, moved, __ATOMIC_RELAXED);
    note_totals();
}

void account_thread_end(void) {
    struct thread *self = thread_leave();
    if (!self) return;
    account_flush(self);
    thread_give_up(self);
}

uint64_t account_peak(bool anew) {
    if (thread_self != &thread_nobody) account_flush(thread_self);
    uint64_t peak = os_load(&while_peak);
    int64_t live = __atomic_load_n(&live_host, __ATOMIC_RELAXED) + __atomic_load_n(&live_mapped, __ATOMIC_RELAXED);
    if (anew) __atomic_store_n(&while_peak, live > 0 ? (uint64_t)live : 0, __ATOMIC_RELAXED);
    return peak;
}

static void move_host(struct thread *self, uint64_t bytes) {
    if (self == &thread_nobody) {
        __atomic_fetch_add(&live_host, (int64_t)bytes, __ATOMIC_RELAXED);
        note_totals();
        return;
    }
    if (account_move(self, bytes)) account_flush(self);
}

uint32_t account_alloc(uint32_t site, uint64_t bytes) {
    struct thread *self = thread_self == &thread_nobody ? thread_acquire() : thread_self;
    site = counters_add(self, site, bytes, false);
    if (unlikely(bytes >= PEAK_FALL_LEAST)) peak_note_alloc(site, bytes);
    move_host(self, bytes);
    return site;
}

void account_free(uint32_t site, uint64_t bytes) {
    struct thread *self = thread_self == &thread_nobody ? thread_acquire() : thread_self;
    counters_add(self, site, bytes, true);
    move_host(self, -bytes);
}

static void account_shift_counter(struct counters_place at, uint64_t bytes, uint64_t blocks, bool freed) {
    struct snap_counter *counter = at.counter;
    __atomic_fetch_add(freed ? &counter->free_bytes : &counter->alloc_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(freed ? &counter->free_blocks : &counter->alloc_blocks, blocks, __ATOMIC_RELAXED);
    __atomic_fetch_add(at.mark, 1, __ATOMIC_RELEASE);
}

/* When there is no memory for the thread's own counter, the shared slot's counter is used. */
static struct counters_place counter_to_shift(struct thread *self, uint32_t site) {
    struct counters_place own = counters_wide(self, site);
    return own.counter ? own : counters_wide(&thread_shared, site);
}

/* Moves counts within one slot. The slot's count may become negative, but the sum over all slots does not. */
static bool shift_in(struct thread *self, uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed) {
    struct counters_place less = counter_to_shift(self, from), more = counter_to_shift(self, to);
    if (!less.counter || !more.counter) return false;
    account_shift_counter(more, bytes, blocks, freed);
    account_shift_counter(less, -bytes, -blocks, freed);
    return true;
}

bool account_shift(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed) {
    struct thread *self = thread_self == &thread_nobody ? thread_acquire() : thread_self;
    return shift_in(self == &thread_nobody ? &thread_shared : self, from, to, bytes, blocks, freed);
}

bool account_shift_reserve(uint32_t site) {
    struct thread *self = thread_self == &thread_nobody ? thread_acquire() : thread_self;
    return counter_to_shift(self == &thread_nobody ? &thread_shared : self, site).counter != NULL;
}

bool account_shift_mapped(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks) {
    return shift_in(&thread_mapped, from, to, bytes, blocks, false);
}

void account_free_inherited(uint64_t bytes) {
    counters_add(thread_self == &thread_nobody ? thread_acquire() : thread_self, SNAP_SITE_INHERITED, bytes, true);
    __atomic_fetch_add(&inherited_freed, bytes, __ATOMIC_RELAXED);
}

/* account_shift_mapped may run on another thread meanwhile, so the mark is changed atomically. */
static void count_mapped(uint32_t site, uint64_t bytes, uint64_t blocks, bool unmapped) {
    struct counters_place at = counters_wide(&thread_mapped, site);
    if (!at.counter) at = account_place(&thread_mapped, SNAP_SITE_UNKNOWN);
    if (!at.counter) return;
    os_add(unmapped ? &at.counter->free_bytes : &at.counter->alloc_bytes, bytes);
    os_add(unmapped ? &at.counter->free_blocks : &at.counter->alloc_blocks, blocks);
    __atomic_fetch_add(at.mark, 1, __ATOMIC_RELEASE);
}

void account_map(uint32_t site, uint64_t bytes, uint64_t blocks) {
    count_mapped(site, bytes, blocks, false);
    __atomic_fetch_add(&live_mapped, (int64_t)bytes, __ATOMIC_RELAXED);
    note_totals();
}

void account_unmap(uint32_t site, uint64_t bytes, uint64_t blocks) {
    count_mapped(site, bytes, blocks, true);
    __atomic_fetch_sub(&live_mapped, (int64_t)bytes, __ATOMIC_RELAXED);
    note_totals();
}

static void thread_ends(void *self) {
    (void)self;
    tags_end_thread();
    account_thread_end();
}

void account_begin(void) { thread_begin(thread_ends); }

uint64_t account_inherited(void) {
    int64_t bytes = live_host + (int64_t)ledger_head->inherited_bytes - (int64_t)inherited_freed;
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < thread_slots(); slot++)
        if (thread_at(slot)) bytes += moved_by(thread_at(slot));
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void account_abandon(void) {
    live_host = live_mapped = 0;
    inherited_freed = while_peak = 0;
}
FORKED(account_abandon);

void account_finish(void) {
    if (thread_self != &thread_nobody) account_flush(thread_self);
    thread_note_names();
}
