/* account.c — see account.h. */
#include "account.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena.h"
#include "ids.h"
#include "ledger.h"
#include "lock.h"
#include "peak.h"
#include "sample.h"
#include "site.h"
#include "stack.h"

enum { SLABS = 16, FIRST_SLAB = 4, SCAN_FROM = 64 };
enum { NARROW_EVENTS = 15 }; /* a site where more happens is worth a wide counter, which is faster to count at */

#define NO_WORD UINT64_MAX /* of no header: its low half is no mark */

struct thread account_nobody = {.here_word = NO_WORD, .pinned = UINTPTR_MAX};
uint32_t account_here;
__thread struct thread *account_self __attribute__((tls_model("initial-exec"))) = &account_nobody;

/* FRESH threads get a slot at their first event; MAKING guards against a signal handler that allocates meanwhile;
 * ENDED ones count in the shared slot. */
enum thread_stage { FRESH, MAKING, RUNNING, ENDED };
static __thread uint8_t stage __attribute__((tls_model("initial-exec")));

static struct thread shared, mapped; /* SNAP_THREAD_SHARED, SNAP_THREAD_MAPPINGS */
static struct thread *slabs[SLABS];  /* slab k holds FIRST_SLAB << k threads */
static uint32_t slots = SNAP_THREAD_FIRST;
static uint8_t slot_free[ACCOUNT_THREADS]; /* its thread ended; a slot that nobody had yet is not free */

static uint64_t quantum = 16384; /* for threads from now on, and for others from their next flush on */
static int64_t live_host, live_mapped;
static uint64_t inherited_freed;

static struct series records = {
    .type = SNAP_THREAD, .record_size = sizeof(struct snap_thread), .first_bits = 5, .limit = ACCOUNT_THREADS};
static struct series wide = {
    .type = SNAP_WIDE, .record_size = sizeof(struct snap_counter), .first_bits = 7, .limit = IDS_LIMIT};
static struct ids *free_wide; /* NULL: there never were any */
static struct series chunks = {
    .type = SNAP_COUNTERS, .record_size = sizeof(struct snap_chunk), .first_bits = 3, .limit = 1u << 30};

static pthread_key_t end_key;
static bool end_key_made;

/* --- slots --- */

static struct thread *thread_at(uint32_t slot) {
    if (slot < SNAP_THREAD_FIRST) return slot == SNAP_THREAD_SHARED ? &shared : &mapped;
    uint32_t n = slot - SNAP_THREAD_FIRST, k = 31u - (uint32_t)__builtin_clz(n / FIRST_SLAB + 1);
    struct thread *slab = __atomic_load_n(&slabs[k], __ATOMIC_ACQUIRE);
    return slab ? slab + (n - ((FIRST_SLAB << k) - FIRST_SLAB)) : NULL;
}

static bool make_slab(uint32_t slot) {
    uint32_t n = slot - SNAP_THREAD_FIRST, k = 31u - (uint32_t)__builtin_clz(n / FIRST_SLAB + 1);
    struct thread *none = NULL;
    if (k >= SLABS) return false;
    struct thread *slab = arena_take(((size_t)FIRST_SLAB << k) * sizeof *slab);
    if (slab) __atomic_compare_exchange_n(&slabs[k], &none, slab, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    ledger_note_own_memory();
    return slab != NULL;
}

static bool take_slot(uint32_t slot) {
    uint8_t free = 1;
    return __atomic_compare_exchange_n(&slot_free[slot], &free, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

typedef uint64_t __attribute__((may_alias)) word_of_two;
_Static_assert(offsetof(struct snap_thread, state) == offsetof(struct snap_thread, tid) + 4, "tid, state: one word");

/* Threads that ended without their destructor (killed by raw exit, or started by raw clone). */
static void free_slots_of_the_dead(void) {
    if (ledger_is_sealed()) return;
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
    ledger_head->quantum = quantum = chosen;
}

/* The slot after the last; SNAP_THREAD_SHARED when there is no room for one more. */
static uint32_t take_next_slot(void) {
    uint32_t slot = __atomic_load_n(&slots, __ATOMIC_RELAXED);
    do
        if (slot >= ACCOUNT_THREADS || !series_reserve(&records, slot) || (!thread_at(slot) && !make_slab(slot)))
            return SNAP_THREAD_SHARED;
    while (!__atomic_compare_exchange_n(&slots, &slot, slot + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    thread_at(slot)->slot = slot;
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

static struct snap_counter *wide_of(uint64_t word) { return (struct snap_counter *)(word ^ SNAP_WIDE_BIT); }

static struct snap_counter counted(uint64_t word) {
    if (!(word & SNAP_WIDE_BIT)) return snap_narrow_counter(word);
    const struct snap_counter *counter = wide_of(word);
    return (struct snap_counter){os_load(&counter->alloc_bytes), os_load(&counter->alloc_blocks),
                                 os_load(&counter->free_bytes), os_load(&counter->free_blocks)};
}

static void sum_up(struct snap_counter *sum, const struct snap_counter *more) {
    sum->alloc_bytes += more->alloc_bytes;
    sum->alloc_blocks += more->alloc_blocks;
    sum->free_bytes += more->free_bytes;
    sum->free_blocks += more->free_blocks;
}

static struct snap_counter sum_of_slot(const struct thread *self, struct snap_counter sum) {
    for (uint32_t i = 0; i < self->chunk_limit; i++)
        for (int j = 0; self->chunks[i] && j < SNAP_CHUNK_SITES; j++) {
            struct snap_counter counter = counted(os_load(&self->chunks[i][j]));
            sum_up(&sum, &counter);
        }
    return sum;
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
        struct snap_counter sum = sum_of_slot(self, record->total);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool moved = before & 1 || __atomic_load_n(sequence, __ATOMIC_RELAXED) != before;
        if (!moved) record->before = sum;
        if (!moved || !ledger_wait(turn)) return;
    }
}

static void note_name(struct snap_thread *record) {
    if (!ledger_is_sealed()) os_call(SYS_prctl, PR_GET_NAME, record->name);
}

static void begin_record(uint32_t slot) {
    struct snap_thread *record = series_at(&records, slot);
    note_earlier_threads(record, thread_at(slot));
    record->tid = ledger_is_sealed() ? 0 : os_tid();
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
    self->quantum = self->room = quantum;
    self->limit = 2 * quantum;
}

static struct snap_counter *wide_counter(struct thread *self, uint32_t site);

static void begin_here(struct thread *self) {
    self->here = account_here ? wide_counter(self, account_here) : NULL;
    self->here_word = self->here ? (uint64_t)account_here << 32 : NO_WORD;
    sample_begin(self);
}

static struct thread *begin_thread(void) {
    uint32_t slot = take_used_slot();
    if (slot == SNAP_THREAD_SHARED) slot = take_new_slot();
    if (slot == SNAP_THREAD_SHARED) return NULL;
    struct thread *self = thread_at(slot);
    begin_record(slot);
    begin_quantum(self);
    begin_here(self);
    self->pinned = 0; /* an earlier thread may have ended in the middle of a hook */
    if (self->stack) stack_inherit(self->stack);
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
        if (self)
            account_self = self;
        else
            ledger_lost(SNAP_LOST_THREADS);
        stage = self ? RUNNING : ENDED;
    }
    if (blocked) lock_let_signals(signals);
    if (stage == RUNNING && end_key_made) pthread_setspecific(end_key, account_self); /* may allocate: by now it can */
    return account_self;
}

void account_thread_end(void) {
    struct thread *self = account_self;
    if (self == &account_nobody) return;
    struct snap_thread *record = series_at(&records, self->slot);
    stage = ENDED;
    account_self = &account_nobody;
    account_flush(self);
    note_name(record);
    record->end_ns = os_now();
    __atomic_store_n(&record->state, SNAP_THREAD_ENDED, __ATOMIC_RELEASE);
    __atomic_store_n(&slot_free[self->slot], 1, __ATOMIC_RELEASE);
}

static void thread_end(void *self) {
    (void)self;
    account_thread_end();
}

uint32_t account_thread_slot(void) {
    if (unlikely(account_self == &account_nobody)) acquire();
    return account_self == &account_nobody ? SNAP_THREAD_SHARED : account_self->slot;
}

/* --- counters --- */

static uint64_t *make_chunk(struct thread *self, uint32_t index) {
    struct snap_chunk *chunk = series_at(&chunks, series_take(&chunks));
    uint64_t *none = NULL;
    if (!chunk) return NULL;
    chunk->index = index;
    /* Before the chunk is there, so that a child that is forked just now forgets all of them. */
    uint32_t limit = __atomic_load_n(&self->chunk_limit, __ATOMIC_RELAXED);
    while (limit <= index && !__atomic_compare_exchange_n(&self->chunk_limit, &limit, index + 1, true, __ATOMIC_SEQ_CST,
                                                          __ATOMIC_RELAXED))
        ;
    if (!__atomic_compare_exchange_n(&self->chunks[index], &none, chunk->words, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return none; /* shared slot: another thread's; a signal handler's */
    __atomic_store_n(&chunk->thread, self->slot + 1, __ATOMIC_RELEASE);
    return chunk->words;
}

/* Memory is for counters of the shared slot when there is little: of those there is at most one a site. */
static bool may_grow(const struct thread *self) {
    return self->slot < SNAP_THREAD_FIRST || likely(!site_memory_full(SITE_STACKS));
}

/* The thread's word for a site; NULL: there is no room. */
static uint64_t *word_of(struct thread *self, uint32_t site) {
    uint32_t index = site / SNAP_CHUNK_SITES;
    if (index >= ACCOUNT_CHUNKS) return NULL;
    uint64_t *words = self->chunks[index];
    if (unlikely(!words)) words = may_grow(self) ? make_chunk(self, index) : NULL;
    return words ? words + site % SNAP_CHUNK_SITES : NULL;
}

/* A new one, unless it is the first of its section, which tells readers where the section is. */
static struct snap_counter *new_wide(void) {
    for (;;) {
        uint32_t id = series_take(&wide);
        struct snap_counter *counter = series_at(&wide, id);
        if (!counter || series_place(&wide, id).record != 0) return counter;
        counter->alloc_bytes = (uintptr_t)counter;
    }
}

static struct snap_counter *take_wide(void) {
    struct ids *free = ids_known(&free_wide);
    uint32_t id = free && ledger_is_ours() ? ids_take(free, 0) : IDS_NONE;
    return id == IDS_NONE ? new_wide() : series_at(&wide, id);
}

static void put_wide(const struct snap_counter *counter) {
    struct ids *free = ids_made(&free_wide);
    if (free) ids_add(free, series_id(&wide, counter));
}

/* Makes the word wide, unless somebody else changes it just now. *seen: what it is. False: there is no room. */
static bool widen(uint64_t *word, uint64_t *seen) {
    struct snap_counter *counter = take_wide();
    if (!counter) return false;
    *counter = snap_narrow_counter(*seen);
    uint64_t now = SNAP_WIDE_BIT | (uintptr_t)counter;
    if (__atomic_compare_exchange_n(word, seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        *seen = now;
    else
        put_wide(counter);
    return true;
}

static struct snap_counter *wide_counter(struct thread *self, uint32_t site) {
    uint64_t *word = word_of(self, site), seen = word ? os_load(word) : 0;
    while (word && !(seen & SNAP_WIDE_BIT))
        if (!widen(word, &seen)) return NULL;
    return word ? wide_of(seen) : NULL;
}

/* What the word says with one more event; or SNAP_WIDE_BIT, when it is not for a word to say. */
static uint64_t one_more(uint64_t word, uint64_t bytes, bool freed) {
    uint32_t events = (uint32_t)(word >> 32 & 0xFFFF) + (uint32_t)(word >> 48);
    if (bytes > UINT32_MAX || events >= NARROW_EVENTS || (word && (uint32_t)word != bytes)) return SNAP_WIDE_BIT;
    return (word | bytes) + snap_narrow(0, !freed, freed);
}

static void atomic_add(uint64_t *word, uint64_t n) { __atomic_fetch_add(word, n, __ATOMIC_RELAXED); }

static void count_wide(struct snap_counter *counter, uint64_t bytes, bool freed) {
    atomic_add(freed ? &counter->free_bytes : &counter->alloc_bytes, bytes);
    atomic_add(freed ? &counter->free_blocks : &counter->alloc_blocks, 1);
}

/* False: there is no room to count it in this slot. */
static bool count_in(struct thread *self, uint32_t site, uint64_t bytes, bool freed) {
    uint64_t *word = word_of(self, site), seen = word ? os_load(word) : 0;
    if (!word) return false;
    while (!(seen & SNAP_WIDE_BIT)) {
        uint64_t sum = one_more(seen, bytes, freed);
        if (sum == SNAP_WIDE_BIT) {
            if (!widen(word, &seen)) return false;
        } else if (__atomic_compare_exchange_n(word, &seen, sum, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
            return true;
        }
    }
    count_wide(wide_of(seen), bytes, freed);
    return true;
}

/* At SNAP_SITE_UNKNOWN there is always room in the shared slot. Returns the site that it was counted at. */
static uint32_t count_unknown(uint64_t bytes, bool freed) {
    ledger_lost(SNAP_LOST_SITES);
    struct snap_counter *counter = account_counter(&shared, SNAP_SITE_UNKNOWN);
    if (counter) count_wide(counter, bytes, freed);
    return SNAP_SITE_UNKNOWN;
}

/* A thread for whose counters there is no memory counts in the shared slot. */
static uint32_t count(struct thread *self, uint32_t site, uint64_t bytes, bool freed) {
    if (likely(self != &account_nobody && count_in(self, site, bytes, freed))) return site;
    return count_in(&shared, site, bytes, freed) ? site : count_unknown(bytes, freed);
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
    site = count(self, site, bytes, false);
    move_host(self, bytes);
    return site;
}

void account_free(uint32_t site, uint64_t bytes) {
    struct thread *self = account_self == &account_nobody ? acquire() : account_self;
    count(self, site, bytes, true);
    move_host(self, -bytes);
}

void account_free_inherited(uint64_t bytes) {
    count(account_self == &account_nobody ? acquire() : account_self, SNAP_SITE_INHERITED, bytes, true);
    atomic_add(&inherited_freed, bytes);
}

static struct snap_counter *mapped_counter(uint32_t site) {
    struct snap_counter *counter = wide_counter(&mapped, site);
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

/* --- over all slots --- */

uint64_t account_bytes(void) {
    return os_load(&chunks.next) * sizeof(struct snap_chunk) + os_load(&wide.next) * sizeof(struct snap_counter);
}

uint32_t account_slots(void) { return __atomic_load_n(&slots, __ATOMIC_ACQUIRE); }

static struct snap_counter sum_of_site(uint32_t site) {
    struct snap_counter sum = {0};
    for (uint32_t slot = 0; slot < account_slots(); slot++) {
        const struct thread *thread = thread_at(slot);
        const uint64_t *words = thread ? thread->chunks[site / SNAP_CHUNK_SITES] : NULL;
        if (!words) continue;
        struct snap_counter counter = counted(os_load(&words[site % SNAP_CHUNK_SITES]));
        sum_up(&sum, &counter);
    }
    return sum;
}

/* Frees, allocations, frees again until both agree: summing all frees first and all allocations later would show
 * blocks that never lived at the same time. */
struct account_live account_site_live(uint32_t site) {
    enum { TRIES = 3 };
    struct snap_counter freed, made, again;
    for (int i = 0; i < TRIES; i++) {
        freed = sum_of_site(site);
        made = sum_of_site(site);
        again = sum_of_site(site);
        if (freed.free_bytes == again.free_bytes && freed.free_blocks == again.free_blocks) break;
    }
    if (made.alloc_bytes < again.free_bytes || made.alloc_blocks < again.free_blocks) return (struct account_live){0};
    return (struct account_live){made.alloc_bytes - again.free_bytes, made.alloc_blocks - again.free_blocks};
}

/* --- sites that become free --- */

static uint32_t epoch;

/* Threads without a slot that are pinned now: few, and most of them late in their death. Those that find no room here
 * are counted. */
enum { STRAYS = 32 };
static struct stray {
    uint32_t tid;   /* 0: free */
    uint32_t quiet; /* as in struct thread */
    uintptr_t pinned;
} strays[STRAYS];
static uint32_t more_strays, more_quiet;

static struct stray *stray_with(uint32_t tid) {
    for (int i = 0; i < STRAYS; i++)
        if (__atomic_load_n(&strays[i].tid, __ATOMIC_RELAXED) == tid) return &strays[i];
    return NULL;
}

static struct stray *new_stray(uint32_t tid) {
    for (int i = 0; i < STRAYS; i++) {
        uint32_t none = 0;
        if (__atomic_compare_exchange_n(&strays[i].tid, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &strays[i];
    }
    return NULL;
}

/* As stack_has_left, for a thread that does not know its stack: a pin on the alternate stack is of a handler that is
 * over once the thread is on another. */
static bool stray_has_left(uintptr_t inner, uintptr_t slot) {
    stack_t other;
    if (os_call(SYS_sigaltstack, 0, &other) < 0 || other.ss_flags & SS_ONSTACK) return false;
    return slot >= inner || inner - (uintptr_t)other.ss_sp < other.ss_size;
}

/* In a sandbox the kernel is asked nothing, and no site becomes free any more. */
static enum account_pin pin_stray(uintptr_t slot) {
    if (ledger_is_sealed()) return PIN_OUTER;
    uint32_t tid = os_tid();
    struct stray *self = stray_with(tid);
    if (self && self->pinned && !stray_has_left(self->pinned, slot)) return PIN_OUTER;
    if (!self) self = new_stray(tid);
    if (!self) {
        __atomic_fetch_add(&more_strays, 1, __ATOMIC_SEQ_CST);
        return PIN_MORE;
    }
    __atomic_store_n(&self->pinned, slot, __ATOMIC_SEQ_CST);
    return PIN_STRAY;
}

/* In a forked child there is nothing to do any more. */
static void unpin_stray(void) {
    struct stray *self = ledger_is_sealed() ? NULL : stray_with(os_tid());
    if (!self) return;
    __atomic_store_n(&self->pinned, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&self->tid, 0, __ATOMIC_RELEASE);
}

static void unpin_one_more(void) {
    uint32_t seen = __atomic_load_n(&more_strays, __ATOMIC_RELAXED);
    while (seen &&
           !__atomic_compare_exchange_n(&more_strays, &seen, seen - 1, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
}

static bool has_died(uint32_t tid) { return os_call(SYS_tgkill, os_pid(), tid, 0) < 0; }

static bool strays_quiet(uintptr_t slot) {
    bool all = true;
    for (int i = 0; i < STRAYS; i++) {
        struct stray *stray = &strays[i];
        uint32_t tid = __atomic_load_n(&stray->tid, __ATOMIC_ACQUIRE);
        uintptr_t pinned = __atomic_load_n(&stray->pinned, __ATOMIC_SEQ_CST);
        if (tid && pinned && pinned != slot && has_died(tid) &&
            __atomic_compare_exchange_n(&stray->pinned, &pinned, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            __atomic_store_n(&stray->tid, 0, __ATOMIC_RELEASE);
            pinned = 0;
        }
        if (!pinned || pinned == slot) stray->quiet = epoch;
        all = all && stray->quiet == epoch;
    }
    if (!__atomic_load_n(&more_strays, __ATOMIC_SEQ_CST)) more_quiet = epoch;
    return all && more_quiet == epoch;
}

enum account_pin account_pin(uintptr_t slot) {
    struct thread *self = account_self == &account_nobody ? acquire() : account_self;
    if (self == &account_nobody) return pin_stray(slot);
    if (self->pinned && !stack_has_left(self->pinned, slot)) return PIN_OUTER;
    __atomic_store_n(&self->pinned, slot, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return PIN_OWN;
}

void account_unpin(enum account_pin pin) {
    if (pin == PIN_STRAY)
        unpin_stray();
    else if (pin == PIN_MORE)
        unpin_one_more();
    else if (pin == PIN_OWN && account_self != &account_nobody)
        __atomic_store_n(&account_self->pinned, 0, __ATOMIC_RELEASE);
}

void account_epoch(void) { epoch++; }

bool account_all_quiet(uintptr_t slot) {
    bool all = strays_quiet(slot);
    for (uint32_t i = SNAP_THREAD_FIRST; i < account_slots(); i++) {
        struct thread *thread = thread_at(i);
        uintptr_t pinned = thread ? __atomic_load_n(&thread->pinned, __ATOMIC_ACQUIRE) : 0;
        if (!pinned || (thread == account_self && pinned == slot) || __atomic_load_n(&slot_free[i], __ATOMIC_ACQUIRE)) {
            if (thread) thread->quiet = epoch;
        } else if (thread->quiet != epoch) {
            all = false;
        }
    }
    return all;
}

void account_sum(uint32_t chunk, struct snap_counter sums[SNAP_CHUNK_SITES]) {
    memset(sums, 0, SNAP_CHUNK_SITES * sizeof *sums);
    for (int frees = 1; frees >= 0; frees--)
        for (uint32_t slot = 0; slot < account_slots(); slot++) {
            const struct thread *thread = thread_at(slot);
            const uint64_t *words = thread ? thread->chunks[chunk] : NULL;
            for (int i = 0; words && i < SNAP_CHUNK_SITES; i++) {
                struct snap_counter counter = counted(os_load(&words[i]));
                sums[i].free_bytes += frees ? counter.free_bytes : 0;
                sums[i].free_blocks += frees ? counter.free_blocks : 0;
                sums[i].alloc_bytes += frees ? 0 : counter.alloc_bytes;
                sums[i].alloc_blocks += frees ? 0 : counter.alloc_blocks;
            }
        }
}

static void add_counter(struct snap_counter *to, const struct snap_counter *from) {
    atomic_add(&to->alloc_bytes, from->alloc_bytes);
    atomic_add(&to->alloc_blocks, from->alloc_blocks);
    atomic_add(&to->free_bytes, from->free_bytes);
    atomic_add(&to->free_blocks, from->free_blocks);
}

/* Out of one slot's words. What it has too little from then on stands in its record. */
static void take_out(uint32_t slot, uint64_t *words, const uint32_t to[SNAP_CHUNK_SITES],
                     struct snap_counter sums[SNAP_CHUNK_SITES]) {
    struct snap_thread *record = series_at(&records, slot);
    struct snap_counter taken = {0};
    for (int i = 0; i < SNAP_CHUNK_SITES; i++) {
        uint64_t word = to[i] ? os_load(&words[i]) : 0;
        if (!word) continue;
        struct snap_counter counter = counted(word);
        sum_up(&sums[i], &counter);
        sum_up(&taken, &counter);
        __atomic_store_n(&words[i], 0, __ATOMIC_RELEASE);
        if (word & SNAP_WIDE_BIT) put_wide(wide_of(word));
    }
    if (record) add_counter(&record->total, &taken);
}

/* Of the shared slot; where there is no room, that of SNAP_SITE_UNKNOWN. */
static struct snap_counter *shared_counter(uint32_t site) {
    struct snap_counter *counter = wide_counter(&shared, site);
    if (counter) return counter;
    ledger_lost(SNAP_LOST_SITES);
    return account_counter(&shared, SNAP_SITE_UNKNOWN);
}

/* The shared slot's counters get all of it. */
void account_move_sites(uint32_t chunk, const uint32_t to[SNAP_CHUNK_SITES]) {
    struct snap_counter sums[SNAP_CHUNK_SITES] = {0};
    struct snap_thread *record = series_at(&records, SNAP_THREAD_SHARED);
    for (uint32_t slot = 0; slot < account_slots(); slot++) {
        const struct thread *thread = thread_at(slot);
        if (thread && thread->chunks[chunk]) take_out(slot, thread->chunks[chunk], to, sums);
    }
    struct snap_counter moved = {0};
    for (int i = 0; i < SNAP_CHUNK_SITES; i++) {
        struct snap_counter *into = to[i] ? shared_counter(to[i]) : NULL;
        if (!into) continue;
        add_counter(into, &sums[i]);
        sum_up(&moved, &sums[i]);
    }
    const struct snap_counter less = {-moved.alloc_bytes, -moved.alloc_blocks, -moved.free_bytes, -moved.free_blocks};
    if (record) add_counter(&record->total, &less);
}

void account_begin(void) {
    if (!end_key_made) end_key_made = pthread_key_create(&end_key, thread_end) == 0;
    shared.slot = SNAP_THREAD_SHARED;
    mapped.slot = SNAP_THREAD_MAPPINGS;
    for (uint32_t slot = 0; slot < SNAP_THREAD_FIRST; slot++) series_take(&records);
    wide_counter(&shared, SNAP_SITE_UNKNOWN);
    wide_counter(&mapped, SNAP_SITE_UNKNOWN);
    set_quantum(1);
}

static void forget_chunks(struct thread *self) {
    memset(self->chunks, 0, self->chunk_limit * sizeof *self->chunks);
    self->chunk_limit = 0;
}

uint64_t account_abandon(void) {
    int64_t bytes = live_host + (int64_t)ledger_head->inherited_bytes - (int64_t)inherited_freed;
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots; slot++)
        if (thread_at(slot)) bytes += moved_by(thread_at(slot));
    forget_chunks(&shared);
    forget_chunks(&mapped);
    memset(slabs, 0, sizeof slabs); /* private copies of the parent's: left behind untouched */
    memset(slot_free, 0, slots);
    slots = SNAP_THREAD_FIRST;
    live_host = live_mapped = 0;
    inherited_freed = 0;
    memset(strays, 0, sizeof strays);
    more_strays = 0;
    series_reset(&records);
    series_reset(&chunks);
    series_reset(&wide);
    free_wide = NULL;
    account_self = &account_nobody;
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
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots && slot < NAMES_AT_MOST && !ledger_is_sealed(); slot++) {
        struct snap_thread *record = series_at(&records, slot);
        if (record && record->state == SNAP_THREAD_LIVE) read_name(record);
    }
}
