/* account.c — see account.h. */
#include "preload/count/account.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/arena.h"
#include "preload/count/counters.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/count/peak.h"
#include "preload/count/pin.h"
#include "preload/count/sample.h"
#include "preload/stacks/stack.h"
#include "preload/base/symbol.h"
#include "preload/count/tags.h"
#include "preload/base/seal.h"

enum { SLABS = 16, FIRST_SLAB = 4, SCAN_FROM = 64 };

#define NOWHERE (UINT64_MAX / 2)

struct thread account_nobody = {.nowhere = NOWHERE, .pinned = UINTPTR_MAX};
uint32_t account_here;
__thread struct thread *account_self __attribute__((tls_model("initial-exec"))) = &account_nobody;

/* FRESH threads get a slot at their first event; MAKING guards against a signal handler that allocates meanwhile;
 * ENDED ones count in the shared slot. */
enum thread_stage { FRESH, MAKING, RUNNING, ENDED };
static __thread uint8_t stage __attribute__((tls_model("initial-exec")));

static struct thread shared, mapped; /* SNAP_THREAD_SHARED, SNAP_THREAD_MAPPINGS */
static struct thread *slabs[SLABS];  /* slab k holds FIRST_SLAB << k threads */
static struct lock making_slab;
static uint32_t slots = SNAP_THREAD_FIRST;
static uint8_t slot_free[ACCOUNT_THREADS]; /* its thread ended; a slot that nobody had yet is not free */

enum { QUANTUM_MOST = 16384 };
static uint64_t quantum = QUANTUM_MOST; /* for threads from now on, and for others from their next flush on */
static int64_t live_host, live_mapped;
static uint64_t inherited_freed;
static uint64_t while_peak; /* memstow_peak: of the program's own while */

static struct series records = {
    .type = SNAP_THREAD, .record_size = sizeof(struct snap_thread), .first_bits = 5, .limit = ACCOUNT_THREADS};

static pthread_key_t end_key;
static bool end_key_made;
enum { KEYS_AT_HAND = 32 }; /* for others glibc allocates when a thread sets one */

/* --- slots --- */

uint32_t account_slots(void) { return __atomic_load_n(&slots, __ATOMIC_ACQUIRE); }

bool account_has_ended(uint32_t slot) { return __atomic_load_n(&slot_free[slot], __ATOMIC_ACQUIRE); }

struct snap_thread *account_record(uint32_t slot) {
    return series_at(&records, slot);
}

struct thread *account_at(uint32_t slot) {
    if (slot < SNAP_THREAD_FIRST) return slot == SNAP_THREAD_SHARED ? &shared : &mapped;
    uint32_t n = slot - SNAP_THREAD_FIRST, k = 31u - (uint32_t)__builtin_clz(n / FIRST_SLAB + 1);
    struct thread *slab = __atomic_load_n(&slabs[k], __ATOMIC_ACQUIRE);
    return slab ? slab + (n - ((FIRST_SLAB << k) - FIRST_SLAB)) : NULL;
}

/* One thread at a time: slabs have megabytes of address space each, which a hundred threads that begin at once would
 * all take (RLIMIT_AS). */
static bool make_slab(uint32_t slot) {
    uint32_t n = slot - SNAP_THREAD_FIRST, k = 31u - (uint32_t)__builtin_clz(n / FIRST_SLAB + 1);
    if (k >= SLABS || !lock_wait(&making_slab)) return false;
    if (!slabs[k]) {
        __atomic_store_n(&slabs[k], arena_take(((size_t)FIRST_SLAB << k) * sizeof *slabs[k]), __ATOMIC_RELEASE);
        ledger_note_own_memory();
    }
    lock_let_go(&making_slab);
    return slabs[k] != NULL;
}

static bool take_slot(uint32_t slot) {
    uint8_t free = 1;
    return __atomic_compare_exchange_n(&slot_free[slot], &free, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

typedef uint64_t __attribute__((may_alias)) word_of_two;
_Static_assert(offsetof(struct snap_thread, state) == offsetof(struct snap_thread, tid) + 4, "tid, state: one word");

/* Threads that ended without their destructor (killed by raw exit, or started by raw clone). */
static void free_slots_of_the_dead(void) {
    if (seal_is_set()) return;
    long pid = (long)os_pid();
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots; slot++) {
        struct snap_thread *record = series_at(&records, slot);
        if (!record || record->state != SNAP_THREAD_LIVE) continue;
        uint32_t tid = __atomic_load_n(&record->tid, __ATOMIC_RELAXED);
        /* tid and state, which share a word */
        uint64_t seen = tid | (uint64_t)SNAP_THREAD_LIVE << 32, over = tid | (uint64_t)SNAP_THREAD_ENDED << 32;
        /* Whoever else looks for the dead may have given the slot to a thread that lives: then the word differs. */
        if (os_call(SYS_tgkill, pid, tid, 0) < 0 &&
            __atomic_compare_exchange_n((word_of_two *)&record->tid, &seen, over, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            record->end_ns = os_now();
            __atomic_store_n(&slot_free[slot], 1, __ATOMIC_RELEASE);
        }
    }
}

static uint32_t take_used_slot(void) {
    uint32_t count = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < count; slot++)
        if (__atomic_load_n(&slot_free[slot], __ATOMIC_RELAXED) && take_slot(slot)) return slot;
    return SNAP_THREAD_SHARED;
}

/* What threads may hold back shrinks so fast that all of them together stay below 1 MiB, those that fell asleep
 * under a larger quantum included: 16 x 16 KiB + 16 x 8 + 32 x 4 + 64 x 1 + 128 x .5 + ... < 832 KiB. */
static void set_quantum(uint32_t threads) {
    static const struct {
        uint32_t threads, quantum;
    } steps[] = {{16, 16384}, {32, 8192}, {64, 4096}, {128, 1024}, {256, 512}, {512, 256}, {1024, 128}, {2048, 64}};
    uint64_t chosen = 4;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        if (threads <= steps[i].threads) chosen = steps[i].quantum;
    uint64_t now = os_load(&quantum);
    while (now > chosen &&
           !__atomic_compare_exchange_n(&quantum, &now, chosen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ; /* a thread that came before may come late */
    do os_store(&ledger_head->quantum, now = os_load(&quantum));
    while (now != os_load(&quantum));
}

/* The slot after the last; SNAP_THREAD_SHARED when there is no room for one more. */
static uint32_t take_next_slot(void) {
    uint32_t slot = __atomic_load_n(&slots, __ATOMIC_RELAXED);
    do
        if (slot >= ACCOUNT_THREADS || !series_reserve(&records, slot) || (!account_at(slot) && !make_slab(slot)))
            return SNAP_THREAD_SHARED;
    while (!__atomic_compare_exchange_n(&slots, &slot, slot + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    account_at(slot)->slot = slot;
    while (os_load(&records.next) <= slot && series_take(&records) != SERIES_NONE)
        ;
    return slot;
}

static uint32_t take_new_slot(void) {
    uint32_t slot = __atomic_load_n(&slots, __ATOMIC_RELAXED);
    if (slot >= SCAN_FROM && (slot & (slot - 1)) == 0) {
        free_slots_of_the_dead();
        uint32_t used = take_used_slot();
        if (used != SNAP_THREAD_SHARED) return used;
    }
    slot = take_next_slot();
    if (slot != SNAP_THREAD_SHARED) set_quantum(slot - SNAP_THREAD_FIRST + 1);
    return slot;
}

/* What the slot's earlier threads counted, so that the present one's share can be told. Should counters be moved to
 * other sites meanwhile (fold.c), it is summed again. Slots with very many sites are not summed: their figures cover
 * all threads that had the slot. */
static void note_earlier_threads(struct snap_thread *record, const struct thread *self) {
    enum { SUM_AT_MOST = 64 };
    const uint32_t *sequence = &ledger_head->fold_sequence;
    record->before = (struct snap_counter){0};
    for (int turn = 0; self->chunk_limit <= SUM_AT_MOST; turn++) {
        uint32_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
        struct snap_counter sum = counters_of_thread(self, record->total);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool moved = before & 1 || __atomic_load_n(sequence, __ATOMIC_RELAXED) != before;
        if (!moved) record->before = sum;
        if (!moved || !lock_pause(turn)) return;
    }
}

static void note_name(struct snap_thread *record) {
    if (!seal_is_set()) os_call(SYS_prctl, PR_GET_NAME, record->name);
}

static void begin_record(uint32_t slot) {
    struct snap_thread *record = series_at(&records, slot);
    note_earlier_threads(record, account_at(slot));
    record->tid = seal_is_set() ? 0 : os_tid();
    record->birth_ns = os_now();
    record->end_ns = 0;
    /* Somewhere in the stack: readers take the region around it. Asking libc for the bounds would take a lock. */
    record->stack_end = (uintptr_t)__builtin_frame_address(0);
    record->uses++;
    note_name(record);
    __atomic_store_n(&record->state, SNAP_THREAD_LIVE, __ATOMIC_RELEASE);
}

static int64_t moved_by(const struct thread *self) { return (int64_t)(self->room - self->quantum); }

static void begin_quantum(struct thread *self) {
    self->quantum = self->room = os_load(&quantum);
    self->limit = 2 * self->quantum;
}

static void begin_here(struct thread *self) {
    self->here = account_here ? counters_wide(self, account_here) : NULL;
    self->nowhere = self->here ? 0 : NOWHERE;
    sample_begin(self);
}

static struct thread *begin_thread(void) {
    uint32_t slot = take_used_slot();
    if (slot == SNAP_THREAD_SHARED) slot = take_new_slot();
    if (slot == SNAP_THREAD_SHARED) return NULL;
    struct thread *self = account_at(slot);
    begin_record(slot);
    begin_quantum(self);
    begin_here(self);
    self->pinned = 0; /* an earlier thread may have ended in the middle of a hook */
    return self;
}

/* No signal handler may leave this in the middle; in a sandbox one may run. */
static struct thread *acquire(void) {
    uint64_t signals = 0;
    if (stage != FRESH) return account_self;
    bool blocked = lock_out_signals(&signals);
    if (stage == FRESH) { /* a handler was not faster */
        stage = MAKING;
        struct thread *self = begin_thread();
        if (self) {
            stack_use(&self->stack);
            account_self = self;
        } else {
            ledger_lost(SNAP_LOST_THREADS);
        }
        stage = self ? RUNNING : ENDED;
    }
    if (stage == RUNNING && end_key_made) LIBC(pthread_setspecific)(end_key, account_self);
    if (blocked) lock_let_signals(signals);
    return account_self;
}

void account_thread_end(void) {
    struct thread *self = account_self;
    if (self == &account_nobody) return;
    struct snap_thread *record = series_at(&records, self->slot);
    stage = ENDED;
    account_self = &account_nobody;
    stack_use(NULL);
    account_flush(self);
    note_name(record);
    record->end_ns = os_now();
    __atomic_store_n(&record->state, SNAP_THREAD_ENDED, __ATOMIC_RELEASE);
    __atomic_store_n(&slot_free[self->slot], 1, __ATOMIC_RELEASE);
}

static void thread_end(void *self) {
    (void)self;
    tags_end_thread();
    account_thread_end();
}

uint32_t account_thread_slot(void) {
    if (unlikely(account_self == &account_nobody)) acquire();
    return account_self == &account_nobody ? SNAP_THREAD_SHARED : account_self->slot;
}

/* --- running totals --- */

/* Another thread that flushes meanwhile is missed rather than counted twice. */
void account_raise_peak(void) {
    int64_t maps = __atomic_load_n(&live_mapped, __ATOMIC_RELAXED),
            host = __atomic_load_n(&live_host, __ATOMIC_ACQUIRE);
    for (uint32_t slot = SNAP_THREAD_FIRST, end = account_slots(); slot < end; slot++)
        if (account_at(slot)) host += moved_by(account_at(slot));
    if (host > 0) os_raise(&ledger_head->host_peak, (uint64_t)host);
    if (host + maps <= 0 || (uint64_t)(host + maps) <= os_load(&ledger_head->total_peak)) return;
    os_raise(&ledger_head->total_peak, (uint64_t)(host + maps));
    ledger_head->total_peak_ns = os_now();
}

/* The running totals have moved: the ledger's copy of them, peaks, and the picture of the highest one. */
static void note_totals(void) {
    struct snap_header *head = ledger_head;
    int64_t host = __atomic_load_n(&live_host, __ATOMIC_RELAXED);
    int64_t maps = __atomic_load_n(&live_mapped, __ATOMIC_RELAXED);
    uint64_t total = host + maps > 0 ? (uint64_t)(host + maps) : 0;
    __atomic_store_n(&head->host_live, host, __ATOMIC_RELAXED);
    __atomic_store_n(&head->mapped_live, maps, __ATOMIC_RELAXED);
    if (host > 0) os_raise(&head->host_peak, (uint64_t)host);
    if (maps > 0) os_raise(&head->mapped_peak, (uint64_t)maps);
    os_raise(&while_peak, total);
    if (total > os_load(&head->total_peak)) {
        os_raise(&head->total_peak, total);
        head->total_peak_ns = os_now();
    } else {
        peak_watch(total);
    }
}

void account_flush(struct thread *self) {
    int64_t moved = moved_by(self);
    begin_quantum(self);
    __atomic_fetch_add(&live_host, moved, __ATOMIC_RELAXED);
    note_totals();
}

uint64_t account_peak(bool anew) {
    if (account_self != &account_nobody) account_flush(account_self);
    uint64_t peak = os_load(&while_peak);
    int64_t live = __atomic_load_n(&live_host, __ATOMIC_RELAXED) + __atomic_load_n(&live_mapped, __ATOMIC_RELAXED);
    if (anew) __atomic_store_n(&while_peak, live > 0 ? (uint64_t)live : 0, __ATOMIC_RELAXED);
    return peak;
}

static void move_host(struct thread *self, uint64_t bytes) {
    if (self == &account_nobody) {
        __atomic_fetch_add(&live_host, (int64_t)bytes, __ATOMIC_RELAXED);
        note_totals();
        return;
    }
    if (account_move(self, bytes)) account_flush(self);
}

uint32_t account_alloc(uint32_t site, uint64_t bytes) {
    struct thread *self = account_self == &account_nobody ? acquire() : account_self;
    site = counters_add(self, site, bytes, false);
    if (unlikely(bytes >= PEAK_FALL_LEAST)) peak_note_alloc(site, bytes);
    move_host(self, bytes);
    return site;
}

void account_free(uint32_t site, uint64_t bytes) {
    struct thread *self = account_self == &account_nobody ? acquire() : account_self;
    counters_add(self, site, bytes, true);
    move_host(self, -bytes);
}

static void shift(struct snap_counter *counter, uint64_t bytes, uint64_t blocks, bool freed) {
    __atomic_fetch_add(freed ? &counter->free_bytes : &counter->alloc_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(freed ? &counter->free_blocks : &counter->alloc_blocks, blocks, __ATOMIC_RELAXED);
}

/* For the shared slot there is memory when for others there is none. */
static struct snap_counter *counter_to_shift(struct thread *self, uint32_t site) {
    struct snap_counter *counter = counters_wide(self, site);
    return counter ? counter : counters_wide(&shared, site);
}

/* What one slot counted may become less than nothing: the sum over all of them does not. */
static bool shift_in(struct thread *self, uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed) {
    struct snap_counter *less = counter_to_shift(self, from), *more = counter_to_shift(self, to);
    if (!less || !more) return false;
    shift(more, bytes, blocks, freed);
    shift(less, -bytes, -blocks, freed);
    return true;
}

bool account_shift(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed) {
    struct thread *self = account_self == &account_nobody ? acquire() : account_self;
    return shift_in(self == &account_nobody ? &shared : self, from, to, bytes, blocks, freed);
}

bool account_shift_room(uint32_t site) {
    struct thread *self = account_self == &account_nobody ? acquire() : account_self;
    return counter_to_shift(self == &account_nobody ? &shared : self, site) != NULL;
}

bool account_shift_mapped(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks) {
    return shift_in(&mapped, from, to, bytes, blocks, false);
}

void account_free_inherited(uint64_t bytes) {
    counters_add(account_self == &account_nobody ? acquire() : account_self, SNAP_SITE_INHERITED, bytes, true);
    __atomic_fetch_add(&inherited_freed, bytes, __ATOMIC_RELAXED);
}

static struct snap_counter *mapped_counter(uint32_t site) {
    struct snap_counter *counter = counters_wide(&mapped, site);
    return counter ? counter : account_counter(&mapped, SNAP_SITE_UNKNOWN);
}

void account_map(uint32_t site, uint64_t bytes, uint64_t blocks) {
    struct snap_counter *counter = mapped_counter(site);
    if (counter) {
        os_add(&counter->alloc_bytes, bytes);
        os_add(&counter->alloc_blocks, blocks);
    }
    __atomic_fetch_add(&live_mapped, (int64_t)bytes, __ATOMIC_RELAXED);
    note_totals();
}

void account_unmap(uint32_t site, uint64_t bytes, uint64_t blocks) {
    struct snap_counter *counter = mapped_counter(site);
    if (counter) {
        os_add(&counter->free_bytes, bytes);
        os_add(&counter->free_blocks, blocks);
    }
    __atomic_fetch_sub(&live_mapped, (int64_t)bytes, __ATOMIC_RELAXED);
    note_totals();
}

/* What allocates for a key may be the program's own malloc, in the middle of which we are called: then no key is used,
 * and threads that have ended are found later. */
static void make_end_key(void) {
    if (end_key_made || LIBC(pthread_key_create)(&end_key, thread_end) != 0) return;
    end_key_made = end_key < KEYS_AT_HAND || !symbol_before("calloc");
    if (!end_key_made) LIBC(pthread_key_delete)(end_key);
}

void account_begin(void) {
    make_end_key();
    shared.slot = SNAP_THREAD_SHARED;
    mapped.slot = SNAP_THREAD_MAPPINGS;
    for (uint32_t slot = 0; slot < SNAP_THREAD_FIRST; slot++) series_take(&records);
    counters_begin();
    os_store(&quantum, QUANTUM_MOST); /* after a fork, too */
    set_quantum(1);
}

uint64_t account_abandon(void) {
    int64_t bytes = live_host + (int64_t)ledger_head->inherited_bytes - (int64_t)inherited_freed;
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots; slot++)
        if (account_at(slot)) bytes += moved_by(account_at(slot));
    counters_forget(&shared);
    counters_forget(&mapped);
    memset(slabs, 0, sizeof slabs); /* private copies of the parent's: left behind untouched */
    making_slab = (struct lock){0};
    memset(slot_free, 0, slots);
    slots = SNAP_THREAD_FIRST;
    live_host = live_mapped = 0;
    inherited_freed = while_peak = 0;
    pin_abandon();
    series_reset(&records);
    counters_abandon();
    account_self = &account_nobody;
    stack_use(NULL);
    stage = FRESH;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void read_name(struct snap_thread *record) {
    char path[64] = "/proc/self/task/";
    strcpy(os_decimal(path + strlen(path), record->tid), "/comm");
    int fd = os_open(path, O_RDONLY, 0);
    if (fd < 0) return;
    long got = os_read(fd, record->name, sizeof record->name - 1);
    os_close(fd);
    record->name[got > 0 ? got - 1 : 0] = 0; /* without the newline */
}

void account_finish(void) {
    enum { NAMES_AT_MOST = 1024 };
    if (account_self != &account_nobody) account_flush(account_self);
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots && slot < NAMES_AT_MOST && !seal_is_set(); slot++) {
        struct snap_thread *record = series_at(&records, slot);
        if (record && record->state == SNAP_THREAD_LIVE) read_name(record);
    }
}
