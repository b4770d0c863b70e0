/* listen.c — libmemstow_cupti.so: the functions that the driver calls at its start, and the functions that CUPTI calls.
 * In: CUDA_INJECTION64_PATH, which names this library. Out: records of memory, in the table of seen.h. If libmemstow.so
 * is preloaded, that library has the ledger, and the records are compared with the ledger at the exit of the process.
 * If not, the records become a ledger (source.h). The library shares CUPTI with other subscribers if CUPTI can be
 * shared (session.h). It never prints, and never exits. It has a fixed number of buffers: when they are full, CUPTI
 * drops records, and counts them. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/life/cupti.h"
#include "cupti/compare.h"
#include "cupti/pools.h"
#include "cupti/records.h"
#include "cupti/seen.h"
#include "cupti/session.h"
#include "cupti/source.h"
#include "cupti/vmm.h"

enum { BUFFERS = 16, BUFFER_SIZE = 256 << 10, ROUNDS = 10, WAIT_NS = 20000000, ASK_NS = 250000000 };

static struct cupti cupti;
static struct cupti_sections sections;
static compare_blocks *ledger_blocks;
static struct session session;
static pid_t process;
static bool is_source; /* the ledger is made from the records */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t buffers[BUFFERS][BUFFER_SIZE] __attribute__((aligned(64)));
static bool lent[BUFFERS];

static void listen_count(uint64_t *of, uint64_t n) { __atomic_fetch_add(of, n, __ATOMIC_RELAXED); }

static void count_lost(uint64_t *of, uint64_t n) {
    listen_count(of, n);
    if (is_source) source_lost(n);
}

static void set_state(enum snap_cupti_state state) { __atomic_store_n(&sections.head->state, state, __ATOMIC_RELEASE); }

/* --- reading CUPTI's records --- */

static void lend_buffer(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = NULL;
    *size = *records = 0;
    for (size_t i = 0; i < BUFFERS && !*buffer; i++)
        if (!__atomic_exchange_n(&lent[i], true, __ATOMIC_ACQUIRE)) *buffer = buffers[i];
    if (*buffer) *size = BUFFER_SIZE;
}

static void take_back(const uint8_t *buffer) {
    size_t i = (size_t)(buffer - buffers[0]) / BUFFER_SIZE;
    if (i < BUFFERS) __atomic_store_n(&lent[i], false, __ATOMIC_RELEASE);
}

/* Returns the path of the library that made the call, or NULL if the path is unknown. Older versions of CUPTI tell only
 * the address of the call, so dladdr finds the path. If this library keeps the ledger itself (is_source), the result is
 * always NULL, because the address is enough. The caller must not hold our lock: dladdr waits for a thread that opens
 * or closes a library, and that thread may call CUDA and wait for our lock. */
static const char *source_of(const struct cupti_memory *record) {
    Dl_info info;
    if (is_source) return NULL;
    if (session.has_source && record->source) return record->source;
    return record->pc && dladdr((void *)(uintptr_t)record->pc, &info) ? info.dli_fname : NULL;
}

static void read_memory(const struct cupti_memory *record) {
    const char *source = source_of(record);
    listen_count(&sections.head->records, 1);
    pthread_mutex_lock(&lock);
    bool pool_read = pools_memory(record), read = seen_record(record, source);
    pthread_mutex_unlock(&lock);
    if (!pool_read || !read) count_lost(&sections.head->unread, 1);
}

static void read_pool(const struct cupti_pool *record) {
    listen_count(&sections.head->records, 1);
    pthread_mutex_lock(&lock);
    bool read = pools_record(record);
    pthread_mutex_unlock(&lock);
    if (!read) count_lost(&sections.head->unread, 1);
}

static void note_use(void) { listen_count(&sections.head->pool_records, 1); }

/* Counts a record that was not requested, or whose layout is unknown. */
static void note_unknown(uint32_t kind) {
    if (!sections.head->unknown) sections.head->unknown_kind = kind;
    count_lost(&sections.head->unknown, 1);
}

static void count_dropped(cupti_context context, uint32_t stream) {
    size_t dropped = session_dropped(&session, context, stream);
    if (dropped) count_lost(&sections.head->dropped, dropped);
}

/* CUPTI calls this with a buffer of records. Does nothing in a forked child, because the buffers belong to the parent,
 * which reads them itself. */
static void read_buffer(cupti_context context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    static const struct records_readers readers = {read_memory, read_pool, note_use, note_unknown};
    int error = errno;
    (void)size;
    if (getpid() != process) return;
    records_read(buffer, valid, session_next, &readers);
    count_dropped(context, stream);
    take_back(buffer);
    errno = error;
}

static void context_ends(const struct cupti_resource *resource) {
    uint32_t number;
    if (cupti.cuptiGetContextId(resource->context, &number) != CUPTI_OK) return;
    pthread_mutex_lock(&lock);
    seen_context_ended(number);
    pthread_mutex_unlock(&lock);
}

/* CUPTI calls this for the events and calls that were requested. In a forked child CUDA does not work any more, so
 * nothing is done there. */
static void listen_called(void *data, int domain, uint32_t id, const void *what) {
    struct caller caller = CALLER;
    int error = errno;
    (void)data;
    if (getpid() != process) return;
    if (domain == CUPTI_DOMAIN_RESOURCE && id == CUPTI_CONTEXT_DESTROY_STARTING) context_ends(what);
    if (domain == CUPTI_DOMAIN_DRIVER) {
        listen_count(&sections.head->calls, 1);
        vmm_call(id, what, caller);
    }
    errno = error;
}

/* --- asking CUPTI for records --- */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool ask_for_records(uint32_t flag) {
    uint64_t now = now_ns();
    bool asked = cupti.cuptiActivityFlushAll(flag) == CUPTI_OK;
    if (asked) __atomic_store_n(&sections.head->read_ns, now, __ATOMIC_RELEASE);
    return asked;
}

static bool is_listening(void) { return __atomic_load_n(&sections.head->state, __ATOMIC_ACQUIRE) == SNAP_CUPTI_SOURCE; }

/* If this library keeps the ledger, a thread holds `asking` while it asks CUPTI for records or ends the session.
 * `over`: CUPTI may be gone, and must not be asked any more. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static bool over;

static bool ask_in_between(void) {
    pthread_mutex_lock(&asking);
    bool goes_on = is_listening() && !over;
    if (goes_on) ask_for_records(0);
    pthread_mutex_unlock(&asking);
    return goes_on;
}

/* Asks CUPTI for records from time to time. CUPTI hands over only full buffers by itself. The requests keep the ledger
 * up to date while the program runs, so that little is lost when the program is killed. */
static void *keep_asking(void *nothing) {
    static const struct timespec pause = {.tv_nsec = ASK_NS};
    while (nanosleep(&pause, NULL), ask_in_between())
        ;
    return nothing;
}

static void begin_asking(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, keep_asking, NULL) == 0) {
        pthread_setname_np(thread, "memstow-cupti");
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- the end of the process --- */

static bool compare_once(bool again, uint64_t *differences) {
    uint64_t until = now_ns();
    if (!ask_for_records(CUPTI_FLUSH_FORCED)) return false;
    pthread_mutex_lock(&lock);
    *differences = compare(&sections, ledger_blocks, until, again);
    pthread_mutex_unlock(&lock);
    sections.head->compared_ns = until;
    return true;
}

/* Compares the records with the ledger. A call of another thread may have returned from the driver before the ledger
 * counts it. So differences get some time to disappear. */
static void compare_now(void) {
    static const struct timespec pause = {.tv_nsec = WAIT_NS};
    uint64_t differences = 0;
    if (!compare_once(false, &differences)) return;
    for (int round = 0; differences && round < ROUNDS; round++) {
        nanosleep(&pause, NULL);
        if (!compare_once(true, &differences)) return;
    }
    count_dropped(NULL, 0);
    set_state(SNAP_CUPTI_COMPARED);
}

static void end_source(bool quick) {
    pthread_mutex_lock(&asking);
    over = true;
    if (is_listening() && ask_for_records(CUPTI_FLUSH_FORCED)) {
        count_dropped(NULL, 0);
        set_state(SNAP_CUPTI_ENDED);
        session_end(&session);
    }
    pthread_mutex_unlock(&asking);
    source_end(quick);
}

/* In a forked child these three functions do nothing, because the child has neither CUDA nor this ledger. */
static void end_listening(void) {
    if (getpid() != process) return;
    compare_now();
    session_end(&session);
}
static void end_at_exit(void) {
    if (getpid() == process) end_source(false);
}
static void end_at_quick_exit(void) {
    if (getpid() == process) end_source(true);
}

/* --- beginning to listen --- */

static bool listen_refused(const char *call, int result) {
    if (result == CUPTI_OK) return false;
    sections.head->result = (uint32_t)result;
    strncpy(sections.head->call, call, sizeof sections.head->call - 1);
    set_state(SNAP_CUPTI_REFUSED);
    return true;
}

static void note_library(void) {
    size_t length = strlen(cupti.path), capacity = sizeof sections.head->library - 1;
    const char *end = length > capacity ? cupti.path + length - capacity : cupti.path;
    memcpy(sections.head->library, end, strlen(end));
}

static bool find_cupti(void) {
    if (!library_open(&cupti)) {
        set_state(SNAP_CUPTI_NOT_FOUND);
        return false;
    }
    note_library();
    if (listen_refused("cuptiGetVersion", cupti.cuptiGetVersion(&sections.head->version))) return false;
    if (sections.head->version >= CUPTI_CUDA_11_2) return true;
    set_state(SNAP_CUPTI_TOO_OLD);
    return false;
}

static bool listen_enable(void) {
    int result = session_enable_call(&session, true, CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_DESTROY_STARTING);
    if (!result) result = session_enable(&session, CUPTI_KIND_MEMORY2);
    if (listen_refused(session.failed, result)) return false;
    sections.head->no_pools = (uint32_t)session_enable(&session, CUPTI_KIND_MEMORY_POOL);
    return true;
}

/* Requests callbacks for all CUPTI_CALLS. If CUPTI refuses one of them, all are turned off, and physical memory is not
 * listed. */
static void enable_calls(void) {
#define X(name, number, ...) CUPTI_##name,
    static const uint32_t ids[] = {CUPTI_CALLS(X)};
#undef X
    for (size_t i = 0; i < sizeof ids / sizeof *ids && !sections.head->no_calls; i++)
        sections.head->no_calls = (uint32_t)session_enable_call(&session, true, CUPTI_DOMAIN_DRIVER, ids[i]);
    for (size_t i = 0; i < sizeof ids / sizeof *ids && sections.head->no_calls; i++)
        session_enable_call(&session, false, CUPTI_DOMAIN_DRIVER, ids[i]);
}

/* Begins a session with CUPTI, which may have another client already. If that fails, notes the reason and returns
 * false. */
static bool begin_session(void) {
    int result = session_begin(&session, &cupti, listen_called, lend_buffer, read_buffer);
    memcpy(sections.head->other, session.other, sizeof sections.head->other);
    sections.head->several = session.several;
    return !listen_refused(session.failed, result);
}

static bool begin_listening(void) {
    if (!begin_session()) return false;
    if (listen_enable()) return true;
    session_end(&session);
    return false;
}

/* Begins to listen. If this library became one of several clients of CUPTI, but could not begin to listen, tries once
 * more as the only client. */
static void listen_listen(void) {
    bool begun = begin_listening();
    if (!begun && session.several) {
        session = (struct session){.alone = true};
        sections.head->result = 0;
        sections.head->call[0] = 0;
        begun = begin_listening();
    }
    if (!begun) return;
    enable_calls();
    set_state(is_source ? SNAP_CUPTI_SOURCE : SNAP_CUPTI_LISTENING);
    if (is_source)
        begin_asking();
    else
        atexit(end_listening);
}

/* Finds the sections of the ledger for CUPTI's figures. Returns false if there is no ledger. The ledger belongs to the
 * library that was loaded first. If libmemstow.so was loaded first and keeps no ledger, this process is to have no
 * ledger. */
static bool find_ledger(void) {
    int (*begin_in_ledger)(uint32_t, struct cupti_sections *) =
        (int (*)(uint32_t, struct cupti_sections *))dlsym(RTLD_DEFAULT, "memstow_cupti_begin");
    ledger_blocks = (compare_blocks *)dlsym(RTLD_DEFAULT, "memstow_cupti_blocks");
    if (begin_in_ledger && ledger_blocks) return begin_in_ledger(CUPTI_SEAM, &sections) == 0;
    is_source = source_begin(&sections);
    return is_source;
}

/* Our exit handlers must run before CUPTI's own. The handler that is registered last is called first, so ours are
 * registered after CUPTI was loaded. */
static void listen_begin(void) {
    process = getpid();
    if (!find_ledger()) return;
    if (find_cupti()) listen_listen();
    if (!is_source) return;
    atexit(end_at_exit);
    at_quick_exit(end_at_quick_exit);
}

/* The driver calls this in cuInit. The result 1 tells the driver that the library may stay. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int error = errno;
    pthread_once(&once, listen_begin);
    errno = error;
    return 1;
}
