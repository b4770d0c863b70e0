/* thread.c — see thread.h. */
#include "preload/count/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/base/lock.h"
#include "preload/base/seal.h"
#include "preload/base/symbol.h"
#include "preload/count/counters.h"
#include "preload/count/sample.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/stacks/stack.h"
#include "preload/count/thread_inside.h"
#include "preload/base/forked.h"

/* SCAN_FROM: when there are this many slots, and each time their number has doubled, dead threads are looked for. */
enum { SLABS = 16, FIRST_SLAB = 4, SCAN_FROM = 64 };

#define NOWHERE (UINT64_MAX / 2)

struct thread thread_nobody = {.nowhere = NOWHERE, .pinned = UINTPTR_MAX};
__thread struct thread *thread_self __attribute__((tls_model("initial-exec"))) = &thread_nobody;

/* FRESH: the thread gets a slot at its first event. MAKING: the slot is being made, and a signal handler that allocates
 * now gets none. ENDED: the thread counts in the shared slot. */
enum thread_stage { FRESH, MAKING, RUNNING, ENDED };
static __thread uint8_t stage __attribute__((tls_model("initial-exec")));

struct thread thread_shared, thread_mapped; /* SNAP_THREAD_SHARED, SNAP_THREAD_MAPPINGS */
static struct thread *slabs[SLABS];         /* slab k holds FIRST_SLAB << k threads */
static struct lock making_slab;
static uint32_t slots = SNAP_THREAD_FIRST;
/* By slot. 1: the slot's thread has ended, and no thread has the slot now. Slots that were never used have 0. */
static uint8_t slot_free[THREAD_SLOTS];

enum { QUANTUM_MOST = 16384 };
/* How many bytes a thread may hold back (set_quantum). New threads use it at once, others after their next flush. */
static uint64_t quantum = QUANTUM_MOST;

static struct series records = {
    .type = SNAP_THREAD, .record_size = sizeof(struct snap_thread), .first_bits = 5, .limit = THREAD_SLOTS};

static pthread_key_t end_key;
static bool end_key_made;
enum { KEYS_AT_HAND = 32 }; /* when a thread sets a later key, glibc allocates memory */

/* --- slots of threads --- */

uint32_t thread_slots(void) { return __atomic_load_n(&slots, __ATOMIC_ACQUIRE); }

bool thread_has_ended(uint32_t slot) { return __atomic_load_n(&slot_free[slot], __ATOMIC_ACQUIRE); }

struct snap_thread *thread_record(uint32_t slot) {
    return series_at(&records, slot);
}

struct thread *thread_at(uint32_t slot) {
    if (slot < SNAP_THREAD_FIRST) return slot == SNAP_THREAD_SHARED ? &thread_shared : &thread_mapped;
    uint32_t n = slot - SNAP_THREAD_FIRST, k = 31u - (uint32_t)__builtin_clz(n / FIRST_SLAB + 1);
    struct thread *slab = __atomic_load_n(&slabs[k], __ATOMIC_ACQUIRE);
    return slab ? slab + (n - ((FIRST_SLAB << k) - FIRST_SLAB)) : NULL;
}

/* Only one thread at a time makes a slab. Otherwise, if a hundred threads begin at once, each would take megabytes of
 * address space for a slab, and there may be a limit (RLIMIT_AS). */
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

/* Frees the slots of threads whose end ran no destructor: the system call exit ended them, or clone started them
 * without libc. */
static void free_slots_of_the_dead(void) {
    if (seal_is_set()) return;
    /* A vfork child, too, asks about the ledger's process: the child's own process has none of these threads. */
    uint32_t pid = ledger_head->pid;
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots; slot++) {
        struct snap_thread *record = series_at(&records, slot);
        if (!record || record->state != SNAP_THREAD_LIVE) continue;
        uint32_t tid = __atomic_load_n(&record->tid, __ATOMIC_RELAXED);
        uint64_t seen = tid | (uint64_t)SNAP_THREAD_LIVE << 32, over = tid | (uint64_t)SNAP_THREAD_ENDED << 32;
        /* The tid and the state share a word. If another thread has already given the slot to a living thread, the word
         * differs, and nothing happens. */
        /* Only ESRCH proves that the thread has ended, as in pin.c. */
        if (os_call(SYS_tgkill, pid, tid, 0) == -ESRCH &&
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

/* Sets the quantum: how many bytes a thread may hold back from the running total. The quantum shrinks as threads come,
 * but a thread that sleeps keeps its larger one. So the limit for all threads is the sum of the quanta with which they
 * began. For 2,048 threads it is 832 KiB: 16 x 16 KiB + 16 x 8 KiB + 32 x 4 KiB + 64 x 1 KiB + 128 x 0.5 KiB + ... Each
 * further thread adds one byte: with all THREAD_SLOTS in use, the limit is less than 895 KiB. */
static void set_quantum(uint32_t threads) {
    static const struct {
        uint32_t threads, quantum;
    } steps[] = {{16, 16384}, {32, 8192}, {64, 4096}, {128, 1024}, {256, 512}, {512, 256}, {1024, 128}, {2048, 64}};
    uint64_t chosen = 1;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        if (threads <= steps[i].threads) chosen = steps[i].quantum;
    uint64_t now = os_load(&quantum);
    while (now > chosen &&
           !__atomic_compare_exchange_n(&quantum, &now, chosen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ; /* a thread that saw fewer threads may come here later, but must not raise the quantum */
    do os_store(&ledger_head->quantum, now = os_load(&quantum));
    while (now != os_load(&quantum));
}

/* The next new slot; SNAP_THREAD_SHARED: there is no memory for one. */
static uint32_t take_next_slot(void) {
    uint32_t slot = __atomic_load_n(&slots, __ATOMIC_RELAXED);
    do
        if (slot >= THREAD_SLOTS || !series_reserve(&records, slot) || (!thread_at(slot) && !make_slab(slot)))
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

/* Notes what earlier threads counted in this slot, so that the share of the present thread is known. If counters move
 * to other sites meanwhile (fold.c), the slot is summed again. A slot with very many sites is not summed: its figures
 * are those of all threads that had the slot. */
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
    note_earlier_threads(record, thread_at(slot));
    record->tid = seal_is_set() ? 0 : os_tid();
    record->birth_ns = os_now();
    record->end_ns = 0;
    /* Any address in the stack will do: readers take the region around it. Asking libc for the bounds would take a
     * lock. */
    record->stack_end = (uintptr_t)__builtin_frame_address(0);
    record->uses++;
    note_name(record);
    __atomic_store_n(&record->state, SNAP_THREAD_LIVE, __ATOMIC_RELEASE);
}

void thread_begin_quantum(struct thread *self) {
    self->quantum = self->drift = os_load(&quantum);
    self->limit = 2 * self->quantum;
}

static void begin_here(struct thread *self) {
    self->here = sample_here ? counters_wide(self, sample_here).counter : NULL;
    self->nowhere = self->here ? 0 : NOWHERE;
    sample_begin(self);
}

static struct thread *begin_thread(void) {
    uint32_t slot = take_used_slot();
    if (slot == SNAP_THREAD_SHARED) slot = take_new_slot();
    if (slot == SNAP_THREAD_SHARED) return NULL;
    struct thread *self = thread_at(slot);
    begin_record(slot);
    thread_begin_quantum(self);
    begin_here(self);
    self->pinned = 0; /* an earlier thread may have ended in the middle of a hook */
    return self;
}

/* Signals are blocked, because a handler that leaves by longjmp would leave the slot half made. In a sandbox signals
 * are not blocked. */
struct thread *thread_acquire(void) {
    uint64_t signals = 0;
    if (stage != FRESH) return thread_self;
    bool blocked = lock_out_signals(&signals);
    if (stage == FRESH) { /* no handler was faster */
        stage = MAKING;
        struct thread *self = begin_thread();
        if (self) {
            stack_use(&self->stack);
            thread_self = self;
        } else {
            ledger_lost(SNAP_LOST_THREADS);
        }
        stage = self ? RUNNING : ENDED;
    }
    if (stage == RUNNING && end_key_made) LIBC(pthread_setspecific)(end_key, thread_self);
    if (blocked) lock_let_signals(signals);
    return thread_self;
}

uint32_t thread_slot(void) {
    if (unlikely(thread_self == &thread_nobody)) thread_acquire();
    return thread_self == &thread_nobody ? SNAP_THREAD_SHARED : thread_self->slot;
}

struct thread *thread_leave(void) {
    struct thread *self = thread_self;
    if (self == &thread_nobody) return NULL;
    stage = ENDED;
    thread_self = &thread_nobody;
    stack_use(NULL);
    return self;
}

void thread_give_up(struct thread *self) {
    struct snap_thread *record = series_at(&records, self->slot);
    note_name(record);
    record->end_ns = os_now();
    __atomic_store_n(&record->state, SNAP_THREAD_ENDED, __ATOMIC_RELEASE);
    __atomic_store_n(&slot_free[self->slot], 1, __ATOMIC_RELEASE);
}

/* --- the whole process: its beginning, a fork, the names of its threads --- */

/* Makes the pthread key that tells the end of a thread, unless a thread that sets it could enter the program's calloc
 * twice. glibc calls calloc when a thread sets a key that is not among the first KEYS_AT_HAND. If the program has a
 * calloc in front of ours, the thread may already be in that calloc when it sets the key. Without a key, the slots of
 * ended threads are found later (free_slots_of_the_dead). */
static void make_end_key(void (*at_end)(void *)) {
    if (end_key_made || LIBC(pthread_key_create)(&end_key, at_end) != 0) return;
    end_key_made = end_key < KEYS_AT_HAND || !symbol_before("calloc");
    if (!end_key_made) LIBC(pthread_key_delete)(end_key);
}

void thread_begin(void (*at_end)(void *)) {
    make_end_key(at_end);
    thread_shared.slot = SNAP_THREAD_SHARED;
    thread_mapped.slot = SNAP_THREAD_MAPPINGS;
    for (uint32_t slot = 0; slot < SNAP_THREAD_FIRST; slot++) series_take(&records);
    counters_begin();
    os_store(&quantum, QUANTUM_MOST); /* after a fork, `quantum` may still have the parent's lower value */
    set_quantum(1);
}

static void thread_abandon(void) {
    counters_forget(&thread_shared);
    counters_forget(&thread_mapped);
    memset(slabs, 0, sizeof slabs); /* forgets the slabs, copies of the parent's memory, without unmapping them */
    making_slab = (struct lock){0};
    memset(slot_free, 0, slots);
    slots = SNAP_THREAD_FIRST;
    series_reset(&records);
    thread_self = &thread_nobody;
    stack_use(NULL);
    stage = FRESH;
}
FORKED(thread_abandon);

static void read_name(struct snap_thread *record) {
    char path[64] = "/proc/self/task/";
    strcpy(os_decimal(path + strlen(path), record->tid), "/comm");
    int fd = os_open(path, O_RDONLY, 0);
    if (fd < 0) return;
    long got = os_read(fd, record->name, sizeof record->name - 1);
    os_close(fd);
    record->name[got > 0 ? got - 1 : 0] = 0; /* without the newline */
}

void thread_note_names(void) {
    enum { NAMES_AT_MOST = 1024 };
    for (uint32_t slot = SNAP_THREAD_FIRST; slot < slots && slot < NAMES_AT_MOST && !seal_is_set(); slot++) {
        struct snap_thread *record = series_at(&records, slot);
        if (record && record->state == SNAP_THREAD_LIVE) read_name(record);
    }
}
