/* origins.c — see origins.h. */
#include "preload/count/origins.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/count/pin.h"
#include "preload/count/site.h"
#include "preload/base/seal.h"
#include "preload/count/thread.h"
#include "preload/base/forked.h"

enum { DESCRIPTORS = 1 << 16, STARTING = 256, INHERITED_MOST = 1024 };

static struct series descriptors = {
    .type = SNAP_ORIGIN, .record_size = sizeof(struct snap_origin), .first_bits = 7, .limit = DESCRIPTORS};
static struct series threads = {
    .type = SNAP_START, .record_size = sizeof(struct snap_origin), .first_bits = 6, .limit = THREAD_SLOTS};
static struct origins_thread starting[STARTING]; /* threads that are being started */
static const char created;                       /* `creator` has its address once the thread was created */

/* --- records of origins --- */

/* Returns the record with this id. If its section is missing, makes it, and first all earlier sections, because the ids
 * of a series have no gap. NULL: there is no memory, or the id is too high. */
static struct snap_origin *origins_record_at(struct series *self, uint32_t id) {
    if (id >= self->limit) return NULL;
    if (!series_at(self, id))
        for (uint32_t first = 0; first <= id; first = 2 * first + (1u << self->first_bits))
            if (!series_reserve(self, first)) return NULL;
    return series_at(self, id);
}

/* If a thread is killed in this function, the record's sequence number stays odd until the next write, and readers
 * ignore the record. */
static void origins_write_record(struct snap_origin *record, const struct snap_origin *origin) {
    uint32_t sequence = os_load32(&record->sequence) | 1;
    __atomic_store_n(&record->sequence, sequence, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    record->kind = origin->kind;
    record->key = origin->key;
    __atomic_store_n(&record->site, origin->site, __ATOMIC_RELAXED);
    record->birth_ns = origin->birth_ns;
    record->device = origin->device;
    record->inode = origin->inode;
    __atomic_store_n(&record->sequence, sequence + 1, __ATOMIC_RELEASE);
}

/* The site of the caller's stack. It has no tag: otherwise each run of the program's work would add a site for each
 * stack. */
static uint32_t site_of_origin(struct caller caller) { return stack_site(caller.slot, caller.address, caller.rbp); }

/* --- origins of descriptors --- */

/* Whether a system call filter was there from the beginning (in a container, say). It may forbid statx. */
static bool is_filtered(void) {
    enum { NOT_ASKED, FILTERED, FREE };
    static uint32_t known;
    if (os_load32(&known) == NOT_ASKED)
        __atomic_store_n(&known, os_call(SYS_prctl, PR_GET_SECCOMP) == 0 ? FREE : FILTERED, __ATOMIC_RELAXED);
    return os_load32(&known) == FILTERED;
}

static void note_thing(struct snap_origin *origin, uint64_t device_major, uint32_t device_minor, uint64_t inode) {
    origin->device = device_major << 32 | device_minor;
    origin->inode = inode;
}

/* Notes device and inode of a descriptor, without waiting for a file server that may be dead. Under a system call
 * filter only fstat can be used, and fstat may ask the server. So in this case only a file that was just opened is
 * looked at, because its server has just answered. */
static void look_at_descriptor(int fd, struct snap_origin *origin) {
    struct statx st;
    struct stat plain;
    if (is_filtered()) {
        bool just_opened = origin->kind != SNAP_ORIGIN_COPY && origin->kind != SNAP_ORIGIN_INHERITED;
        if (just_opened && os_stat_fd(fd, &plain) == 0)
            note_thing(origin, major(plain.st_dev), minor(plain.st_dev), plain.st_ino);
    } else if (os_call(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) == 0) {
        note_thing(origin, st.stx_dev_major, st.stx_dev_minor, st.stx_ino);
    }
}

/* Origins are not noted when stacks are not recorded, in a sandbox, or in a child that shares our memory but not our
 * descriptors. */
static bool is_wanted(void) {
    if (sample_here && !sample_bytes) return false;
    return ledger_is_ours() && !seal_is_set() && os_pid() == ledger_head->pid;
}

void origins_note(int fd, enum snap_origin_kind kind, struct caller caller) {
    /* A signal handler's alternate stack may be too small for our frames. */
    if (fd < 0 || !is_wanted() || stack_is_alternate()) return;
    struct snap_origin origin = {.kind = kind, .key = (uint32_t)fd, .birth_ns = os_now()};
    struct snap_origin *record = origins_record_at(&descriptors, origin.key);
    if (!record) return;
    look_at_descriptor(fd, &origin);
    enum pin pin = pin_begin(caller.slot);
    origin.site = site_of_origin(caller);
    origins_write_record(record, &origin);
    pin_end(pin);
}

/* The descriptors that were found in /proc/self/fd. */
struct numbers {
    uint32_t list[INHERITED_MOST], count;
};

static bool origins_take_number(void *context, const char *name) {
    struct numbers *self = context;
    uint32_t fd = (uint32_t)os_take_decimal(&name);
    if (fd > STDERR_FILENO) self->list[self->count++] = fd;
    return self->count < INHERITED_MOST;
}

/* The list also has the descriptor by which os_each_name read /proc/self/fd. os_each_name has closed it again, so the
 * loop skips it. */
void origins_note_inherited(void) {
    static struct numbers numbers; /* only one thread begins a ledger */
    numbers.count = 0;
    if (!is_wanted()) return;
    os_each_name("/proc/self/fd", origins_take_number, &numbers);
    for (uint32_t i = 0; i < numbers.count; i++) {
        struct snap_origin origin = {.kind = SNAP_ORIGIN_INHERITED, .key = numbers.list[i], .birth_ns = os_now()};
        if (os_call(SYS_fcntl, origin.key, F_GETFD) < 0) continue;
        struct snap_origin *record = origins_record_at(&descriptors, origin.key);
        if (!record) continue;
        look_at_descriptor((int)origin.key, &origin);
        origins_write_record(record, &origin);
    }
}

/* --- origins of threads --- */

struct origins_thread *origins_expect(struct caller caller) {
    if (!is_wanted()) return NULL;
    struct origins_thread *thread = NULL;
    for (int i = 0; i < STARTING && !thread; i++) {
        const void *nobody = NULL;
        if (__atomic_compare_exchange_n(&starting[i].creator, &nobody, __builtin_thread_pointer(), false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            thread = &starting[i];
    }
    if (!thread) return NULL;
    enum pin pin = pin_begin(caller.slot);
    __atomic_store_n(&thread->site, site_of_origin(caller), __ATOMIC_RELAXED);
    pin_end(pin);
    return thread;
}

void origins_created(struct origins_thread *thread) {
    /* Nothing changes if the entry has another creator: the new thread has arrived, and the entry is free or used
     * again. */
    const void *self = __builtin_thread_pointer();
    __atomic_compare_exchange_n(&thread->creator, &self, &created, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void origins_forget(struct origins_thread *thread) {
    __atomic_store_n(&thread->site, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&thread->creator, NULL, __ATOMIC_RELEASE);
}

void origins_arrive(struct origins_thread *thread) {
    uint32_t slot = ledger_is_ours() && !seal_is_set() ? thread_slot() : SNAP_THREAD_SHARED;
    struct snap_origin *record = slot == SNAP_THREAD_SHARED ? NULL : origins_record_at(&threads, slot);
    struct snap_origin origin = {.kind = SNAP_ORIGIN_OF_THREAD, .site = thread->site, .birth_ns = os_now()};
    if (record) {
        origin.key = os_tid();
        origins_write_record(record, &origin);
    }
    origins_forget(thread);
}

/* Copies a record. False: the record is empty, or a thread writes to it now. */
static bool read_record(const struct snap_origin *record, struct snap_origin *out) {
    uint32_t sequence = __atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE);
    *out = *record;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return out->kind && !(sequence & 1) && os_load32(&record->sequence) == sequence;
}

bool origins_of_descriptor(uint32_t fd, struct snap_origin *out) {
    const struct snap_origin *record = fd < descriptors.limit ? series_at(&descriptors, fd) : NULL;
    return record && read_record(record, out);
}

bool origins_of_thread(uint32_t tid, struct snap_origin *out) {
    for (uint32_t slot = 0; slot < threads.limit; slot++) {
        const struct snap_origin *record = series_at(&threads, slot);
        if (!record) return false;
        if (os_load32(&record->key) == tid && read_record(record, out)) return true;
    }
    return false;
}

static void visit_series(const struct series *self, void (*visit)(uint32_t site)) {
    for (uint32_t id = 0; id < self->limit; id++) {
        const struct snap_origin *record = series_at(self, id);
        if (!record) return;
        uint32_t site = os_load32(&record->site);
        if (site) visit(site);
    }
}

/* `starting` is read first, because sites move from there to the threads' records. In the other order, one could be
 * missed. */
void origins_sites(void (*visit)(uint32_t site)) {
    for (int i = 0; i < STARTING; i++) {
        uint32_t site = __atomic_load_n(&starting[i].site, __ATOMIC_ACQUIRE);
        if (site) visit(site);
    }
    visit_series(&threads, visit);
    visit_series(&descriptors, visit);
}

/* In a forked child: forgets what the parent noted. If a signal handler forked while this thread was creating another
 * thread, the child goes on to create that thread, too. So the child keeps the entry for it in `starting`. */
static void origins_abandon(void) {
    series_reset(&descriptors);
    series_reset(&threads);
    for (int i = 0; i < STARTING; i++) {
        if (starting[i].creator == __builtin_thread_pointer())
            starting[i].site = 0; /* of the parent's ledger */
        else
            starting[i] = (struct origins_thread){0};
    }
}
FORKED(origins_abandon);
