/* control.c — see control.h. This file starts and ends three threads: the listener, the worker and the device thread.
 * clients.c talks to the clients. */
#include "preload/control/control.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/count/account.h"
#include "preload/base/arena.h"
#include "preload/base/tracked.h"
#include "preload/control/clients.h"
#include "preload/blocks/host.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/owners/moving.h"
#include "preload/owners/mover.h"
#include "preload/shared/os.h"
#include "preload/control/endpoint.h"
#include "preload/control/requests.h"
#include "preload/serve/serve_settings.h"
#include "preload/stacks/stack.h"
#include "preload/triggers/trigger.h"
#include "preload/triggers/watch.h"
#include "preload/copies/vram_thread.h"
#include "preload/vram/vram_ahead.h"
#include "preload/base/seal.h"

/* The size of a thread's stack. It is large because the stack also holds the thread-local storage of all libraries that
 * the program was linked with. It is too small for a huge page, so only the pages that are touched cost memory. */
enum { STACK = 1536 * 1024 };
enum { BEGIN_SECONDS = 2 }; /* the longest time that control_stop waits for a thread that starts the listener */
static const uint64_t SECOND = 1000000000, PAUSES = 1ull << 31;

/* The state of the listener. NONE: nobody has started it, or the start failed. BEGINNING: a thread is starting it.
 * RUNS: it was started. OVER: control_stop has told it to end. */
enum stage { STAGE_NONE, STAGE_BEGINNING, STAGE_RUNS, STAGE_OVER };

/* A forked child finds this page empty, because the threads and the socket are those of its parent. */
static struct {
    uint32_t stage; /* enum stage */
    uint32_t pid;
    bool stopping;
    bool put_off; /* the start of the listener is put off until control_retry: a thread was on its way into a sandbox */
    bool lingers; /* control_stop has waited long enough, and the threads have not ended yet */
    bool listens; /* control_stop has waited for the listener in vain */
    bool working; /* the worker was started */
    bool devices; /* the device thread was started */
    bool failed;  /* a thread could not be made, and the ledger says so */
    /* For the listener [0], the worker [1] and the device thread [2]: whether the memory that glibc allocated for the
     * thread is no longer counted. */
    bool left_out[3];
    pthread_t listener, worker, device;
    struct endpoint endpoint;
} __attribute__((aligned(OS_PAGE))) page;

/* The stacks of the threads, in the order of left_out, each with an inaccessible page in front. The threads of a forked
 * child get the same memory for their stacks. */
static char *stacks[3];

/* --- starting a thread --- */

static char *stack_for(int thread) {
    if (!stacks[thread]) {
        char *memory = arena_take(OS_PAGE + STACK);
        if (!memory || os_call(SYS_mprotect, memory, OS_PAGE, PROT_NONE) < 0) return NULL;
        stacks[thread] = memory + OS_PAGE;
    }
    return stacks[thread];
}

/* Blocks all signals with two exceptions: signals of faults, and the signals by which glibc reaches every thread
 * (setuid). */
static void block_signals(sigset_t *before) {
    static const int open[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all); /* all but glibc's own */
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) sigdelset(&all, open[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* Makes a thread that can be joined, because control_stop waits for its end. This is necessary, for example, when the
 * program's first thread calls pthread_exit: the process then goes on until its last thread ends, so our threads must
 * not outlive the program's. */
static int start_thread(int which, pthread_t *thread, void *(*work)(void *)) {
    pthread_attr_t attributes;
    sigset_t before;
    char *stack = stack_for(which);
    if (!stack) return ENOMEM;
    pthread_attr_init(&attributes);
    int error = pthread_attr_setstack(&attributes, stack, STACK);
    block_signals(&before);
    if (!error) error = pthread_create(thread, &attributes, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Finds the block that glibc has allocated for a thread with the program's allocator: the vector of its thread-local
 * storage. The second word of the thread's descriptor points to the second element of the vector. For a thread of ours,
 * leave_out takes this block out of the program's count. Before the thread ends, count_in_again counts the block in
 * again, because the thread's end frees the block. */
__attribute__((no_sanitize("thread"))) /* the words were written before the thread began, which ThreadSanitizer does not
                                        * know */
static bool
find_vector(pthread_t thread, struct host_block *vector) {
    enum { ELEMENT = 16 };
    return host_find(((const uintptr_t *)thread)[1] - ELEMENT, vector);
}

static void leave_out(int which, pthread_t thread) {
    struct host_block vector;
    if (find_vector(thread, &vector)) account_free(vector.site, vector.size);
    __atomic_store_n(&page.left_out[which], true, __ATOMIC_RELEASE);
}

static void wait_to_be_left_out(int which) {
    while (!__atomic_load_n(&page.left_out[which], __ATOMIC_ACQUIRE)) os_call(SYS_sched_yield);
}

static void count_in_again(void) {
    struct host_block vector;
    if (!find_vector((pthread_t)os_thread(), &vector)) return;
    vector.site = account_alloc(vector.site, vector.size);
    host_change(&vector);
}

static int control_start(int which, pthread_t *thread, void *(*work)(void *)) {
    int error = start_thread(which, thread, work);
    if (!error) leave_out(which, *thread);
    return error;
}

static bool is_stopping(void) { return __atomic_load_n(&page.stopping, __ATOMIC_ACQUIRE); }

/* --- the worker: carries requests out --- */

static int64_t control_act(const struct memstow_request *request) {
    switch (request->kind) {
    case MEMSTOW_ASK_TRIGGER:
        return trigger_run(MEMSTOW_REQUEST, request->text, 0);
    case MEMSTOW_ASK_STOW:
        return moving_stow(request->owner);
    case MEMSTOW_ASK_RESTORE:
        return moving_restore(request->owner);
    case MEMSTOW_ASK_RELEASE:
        return moving_release(request->owner);
    }
    return -EINVAL;
}

/* Writes the text that is sent with `result` into request->text. */
static void tell_of(struct memstow_request *request, int64_t result) {
    bool moves = request->kind == MEMSTOW_ASK_STOW || request->kind == MEMSTOW_ASK_RESTORE;
    if (request->kind == MEMSTOW_ASK_TRIGGER && result >= 0)
        trigger_words(request->text, sizeof request->text);
    else
        os_copy(request->text, sizeof request->text,
                moves && result >= 0 && moving_was_cut_short() ? "the move was cancelled" : "");
}

static void *control_work(void *nothing) {
    struct memstow_request request;
    uint64_t next_poll = 0;
    os_call(SYS_prctl, PR_SET_NAME, "memstow worker");
    vram_thread_apart = true; /* it has the listener's descriptors */
    wait_to_be_left_out(1);
    for (;;) {
        /* Called before `stopping` is read. The thread that stops us sets `stopping`, and then cancels the work. So
         * either we see `stopping`, or our work is cancelled. */
        mover_begin_work();
        uint32_t seen = requests_seen();
        if (is_stopping()) break;
        uint64_t now = os_now();
        if (requests_take(&request)) {
            int64_t result = control_act(&request);
            tell_of(&request, result);
            requests_done(request.ticket, result, request.text);
        } else if (watch_is_wanted() && now >= next_poll) {
            next_poll = now + SECOND;
            watch_poll(now, requests_pass_on);
        } else {
            requests_wait(seen, SECOND);
        }
    }
    mover_end_work();
    count_in_again();
    return nothing;
}

/* Starts the worker when there is work. The worker stays, because there may be more work. */
static void start_worker(void) {
    if (page.working || !(requests_for_worker() || watch_is_wanted())) return;
    page.working = control_start(1, &page.worker, control_work) == 0;
}

/* --- the device thread: calls the driver of devices --- */

static void *be_device_thread(void *nothing) {
    os_call(SYS_prctl, PR_SET_NAME, "memstow device");
    wait_to_be_left_out(2);
    vram_thread_run(is_stopping, vram_ahead_step);
    count_in_again();
    return nothing;
}

/* Starts the device thread, if device memory may move. A thread of the program must call this, so that the device
 * thread has the program's descriptors. */
static void start_device_thread(void) {
    if (!serve_wanted || !vram_thread_begins()) return;
    page.devices = control_start(2, &page.device, be_device_thread) == 0;
    if (!page.devices) vram_thread_ended();
}

/* --- the listener (the control thread): talks to clients --- */

/* Gives the thread a descriptor table of its own, with nothing of the program's in it at any time. Otherwise we could
 * keep one end of the program's pipe open, and the pipe's reader would never see the end of the data. Numbers 0 to 2
 * are filled, so that a write to standard output by mistake does not go to a file or a client. Returns 0 or -errno. */
static int leave_descriptors(void) {
    int error = (int)os_call(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
    if (error) return error;
    for (int fd = 0, want = 0; want <= 2; want++) {
        fd = (int)os_call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd != want) return fd < 0 ? fd : -EBADF;
    }
    return 0;
}

static void say_why_not(const char *what, int error) {
    char note[160] = "no control socket: ";
    strcat(note, what);
    strcat(note, " failed with error ");
    os_decimal(note + strlen(note), (uint64_t)-error);
    ledger_fact(SNAP_FACT_NOTE, note);
}

/* Notes the socket's path in the ledger, each path only once. */
static void tell_endpoint(void) {
    static char told[ENDPOINT_SIZE];
    if (!strcmp(told, page.endpoint.path)) return;
    strcpy(told, page.endpoint.path);
    ledger_fact(SNAP_FACT_CONTROL, told);
}

static void listen_until_stopped(void) {
    const char *what = "close_range";
    int fd = leave_descriptors();
    if (fd == 0) fd = endpoint_listen(&page.endpoint, &what);
    if (fd < 0) {
        say_why_not(what, fd);
        return;
    }
    tell_endpoint();
    clients_begin(fd);
    while (!is_stopping()) {
        clients_serve();
        start_worker();
    }
    clients_end();
    if (page.working) pthread_join(page.worker, NULL);
}

static void *be_listener(void *nothing) {
    os_call(SYS_prctl, PR_SET_NAME, "memstow");
    wait_to_be_left_out(0);
    listen_until_stopped();
    count_in_again();
    return nothing;
}

/* --- the listener begins and ends --- */

/* Starts the listener and the device thread. If the listener cannot be made, the next owner that is opened tries again.
 * The ledger gets a note of the first failure only. */
static void control_thread_begin(void) {
    page.pid = os_pid();
    int error = control_start(0, &page.listener, be_listener);
    if (error && !page.failed) say_why_not("a thread", -error);
    page.failed |= error != 0;
    if (!error) start_device_thread();
    __atomic_store_n(&page.stage, error ? STAGE_NONE : STAGE_RUNS, __ATOMIC_RELEASE);
}

static bool may_enter_sandbox(void) {
    return seal_is_set() || __atomic_load_n(&tracked_page.entering, __ATOMIC_SEQ_CST);
}

/* Whether the listener must not be started now: a thread is in a sandbox or on its way into one, and the sandbox may
 * kill the thread that we start. If so, sets put_off: a thread that does not get into its sandbox calls control_retry,
 * which starts the listener if put_off is set.
 *
 * That thread may have called control_retry just before put_off was set. So we look once more afterwards, and return
 * false if no thread is on its way any more. */
static bool is_put_off(void) {
    if (likely(!may_enter_sandbox())) return false;
    __atomic_store_n(&page.put_off, true, __ATOMIC_SEQ_CST);
    return may_enter_sandbox();
}

void control_begin(void) {
    uint32_t none = STAGE_NONE;
    int error = errno;
    /* In a signal handler that may have interrupted the program's allocator, no thread can be made. The next owner that
     * is opened tries again. */
    if (__atomic_load_n(&page.stage, __ATOMIC_RELAXED) != STAGE_NONE || stack_is_interrupted() || is_put_off()) return;
    if (os_call(SYS_madvise, &page, sizeof page, MADV_WIPEONFORK) != 0 ||
        !__atomic_compare_exchange_n(&page.stage, &none, STAGE_BEGINNING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    /* Either we see here that a thread is on its way into a sandbox, or that thread sees the new stage, and waits
     * (control_stop). */
    if (is_put_off())
        __atomic_store_n(&page.stage, STAGE_NONE, __ATOMIC_RELEASE);
    else
        control_thread_begin();
    errno = error;
}

void control_retry(void) {
    if (__atomic_exchange_n(&page.put_off, false, __ATOMIC_SEQ_CST)) control_begin();
}

/* Whether the threads run in this process. A vfork child has our memory, but another pid. */
static bool runs_here(void) {
    return __atomic_load_n(&page.stage, __ATOMIC_ACQUIRE) == STAGE_RUNS && page.pid == os_pid();
}

/* Waits first for the listener, which waits for the worker. The device thread is last: the worker may need it. */
static bool wait_for_threads(uint32_t seconds) {
    struct timespec until;
    int cancelling;
    uint64_t now = os_now();
    until = (struct timespec){(time_t)(now / SECOND) + seconds, (long)(now % SECOND)};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    page.listens = pthread_clockjoin_np(page.listener, NULL, CLOCK_MONOTONIC, &until) != 0;
    if (page.devices) page.devices = pthread_clockjoin_np(page.device, NULL, CLOCK_MONOTONIC, &until) != 0;
    pthread_setcancelstate(cancelling, NULL);
    return !page.listens && !page.devices;
}

/* Waits while another thread starts the control thread. A signal handler that has interrupted that other thread waits
 * in vain, until the time is over. */
static void wait_for_beginning(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    uint64_t until = os_now() + BEGIN_SECONDS * SECOND;
    while (__atomic_load_n(&page.stage, __ATOMIC_SEQ_CST) == STAGE_BEGINNING && os_now() < until)
        os_call(SYS_nanosleep, &pause, 0);
}

bool control_stop(uint32_t seconds) {
    uint32_t runs = STAGE_RUNS;
    int error = errno;
    wait_for_beginning();
    if (!runs_here() ||
        !__atomic_compare_exchange_n(&page.stage, &runs, STAGE_OVER, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&page.stopping, true, __ATOMIC_SEQ_CST);
    mover_cancel_work();
    requests_wake();
    vram_thread_wake();
    endpoint_knock(&page.endpoint);
    bool ended = wait_for_threads(seconds);
    __atomic_store_n(&page.lingers, !ended, __ATOMIC_RELEASE);
    endpoint_leave(&page.endpoint);
    errno = error;
    return ended;
}

/* pthread_tryjoin_np tells without a system call whether a thread has ended. */
static bool any_lingers(void) {
    if (page.listens) page.listens = pthread_tryjoin_np(page.listener, NULL) != 0;
    if (page.devices) page.devices = pthread_tryjoin_np(page.device, NULL) != 0;
    return page.listens || page.devices;
}

void control_await(void) {
    for (uint64_t i = 0; i < PAUSES && __atomic_load_n(&page.lingers, __ATOMIC_ACQUIRE); i++) {
        if (!any_lingers()) __atomic_store_n(&page.lingers, false, __ATOMIC_RELEASE);
        __builtin_ia32_pause();
    }
}

void control_resume(void) {
    int error = errno;
    page.stopping = page.working = page.devices = page.left_out[0] = page.left_out[1] = page.left_out[2] = false;
    if (stack_is_interrupted()) /* as in control_begin: no thread can be made in a signal handler */
        __atomic_store_n(&page.stage, STAGE_NONE, __ATOMIC_RELEASE);
    else
        control_thread_begin();
    errno = error;
}

void control_end(void) {
    if (!seal_is_set() && runs_here()) endpoint_leave(&page.endpoint);
}
