/* shutdown.c — see shutdown.h. */
#include "preload/shutdown/shutdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/shutdown/shutdown_audit.h"
#include "preload/shutdown/shutdown_kin.h"
#include "preload/shutdown/shutdown_log.h"
#include "preload/shutdown/shutdown_processes.h"
#include "preload/shutdown/shutdown_threads.h"
#include "preload/stow/stow_thread.h"
#include "preload/stow/stow_work.h"

enum { NAME = 64, AFTER = 512, MS = 1000000 };
#define STEP_NS (20 * MS)
#define HANDLER_NS (SHUTDOWN_HANDLER_S * UINT64_C(1000000000))

/* The state of a handler. IDLE: its stage has not begun. WAITING: it may begin when its turn comes. RUNNING: it runs.
 * DONE: it has returned, or no thread could be started for it. LATE: nobody waits for it any more, because its time was
 * over, or because it ran in an ending that was called off. */
enum state { IDLE, WAITING, RUNNING, DONE, LATE };

struct handler {
    int32_t (*run)(void *context);
    void *context;
    uint64_t limit_ns, begun_ns;
    uint32_t stage;
    bool parallel, noted; /* noted: the log has the line about the handler's end */
    uint32_t state;       /* enum state; DONE does not replace LATE */
    int32_t result;
    char name[NAME], after[AFTER];
};

static struct handler handlers[MEMSTOW_HANDLERS];
static uint32_t count;
static struct lock lock;
static uint32_t owner_pid, runners;
static uint32_t noted_stage; /* the stage whose beginning is in the log */
/* When the present stage began, and the longest limit of its handlers (at least HANDLER_NS). Only the stage DRAIN uses
 * these times. */
static uint64_t stage_begun_ns, stage_limit_ns;

/* The time limit of an ending. Endings have numbers, because a signal may begin a new ending just after another ending
 * was called off. */
static struct {
    uint32_t armed;  /* the number of the ending in progress; 0: none. The limit's thread waits on this word */
    uint32_t number; /* the number of the latest ending */
    uint64_t end_ns;
    int status;
    bool own_files;
    struct stow_thread *thread;
} limit;
static int64_t late_drains; /* how many handlers of the stage DRAIN failed or were late */

void shutdown_check_process(void) {
    uint32_t pid = os_pid(), before = __atomic_load_n(&owner_pid, __ATOMIC_RELAXED);
    if (before == pid ||
        !__atomic_compare_exchange_n(&owner_pid, &before, pid, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    if (!before) return;
    count = 0;
    late_drains = 0;
    runners = noted_stage = 0;
    memset(&lock, 0, sizeof lock);
    memset(&limit, 0, sizeof limit);
    shutdown_processes_reset();
    shutdown_threads_reset();
}

/* --- registering and finding handlers --- */

static bool is_taken(const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(handlers[i].name, name) == 0) return true;
    return false;
}

int shutdown_handler(const struct memstow_handler *handler, const char *name, const char *after) {
    uint64_t limit_ns = (uint64_t)handler->milliseconds * MS;
    if (!lock_wait(&lock)) return -EBUSY;
    int result = is_taken(name) ? -EEXIST : count == MEMSTOW_HANDLERS ? -ENOSPC : 0;
    if (result == 0) {
        struct handler *self = &handlers[count];
        *self = (struct handler){.run = handler->run,
                                 .context = handler->context,
                                 .limit_ns = limit_ns ? limit_ns : HANDLER_NS,
                                 .stage = handler->stage,
                                 .parallel = handler->parallel == 1 || handler->stage == MEMSTOW_DRAIN};
        os_copy(self->name, NAME, name);
        os_copy(self->after, AFTER, after);
        __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    }
    lock_let_go(&lock);
    return result;
}

static uint32_t shutdown_state_of(const struct handler *self) {
    return __atomic_load_n(&self->state, __ATOMIC_ACQUIRE);
}

static bool is_over(const struct handler *self) {
    return shutdown_state_of(self) == DONE || shutdown_state_of(self) == LATE;
}

/* Whether a list of names, separated by commas, contains this name. */
static bool shutdown_names(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        at += strspn(at, " ");
        size_t part = strcspn(at, ","), trimmed = part;
        while (trimmed && at[trimmed - 1] == ' ') trimmed--;
        if (trimmed == length && memcmp(at, name, length) == 0) return true;
        at += part;
    }
    return false;
}

static bool may_begin(const struct handler *self) {
    for (uint32_t i = 0; i < count; i++) {
        const struct handler *other = &handlers[i];
        if (other == self || other->stage != self->stage) continue;
        if (shutdown_state_of(other) == RUNNING && !(self->parallel && other->parallel)) return false;
        if (!is_over(other) && shutdown_names(self->after, other->name)) return false;
    }
    return true;
}

static void *run_handler(void *context) {
    struct handler *self = context;
    uint32_t running = RUNNING;
    self->result = self->run(self->context);
    __atomic_compare_exchange_n(&self->state, &running, DONE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return NULL;
}

static void begin_handler(struct handler *self) {
    pthread_t thread;
    pthread_attr_t attributes;
    self->begun_ns = os_now();
    __atomic_store_n(&self->state, RUNNING, __ATOMIC_RELEASE);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, run_handler, self);
    pthread_attr_destroy(&attributes);
    if (!error) return;
    self->result = -error;
    __atomic_store_n(&self->state, DONE, __ATOMIC_RELEASE);
}

static const char *const stages[] = {"", "stop accepting", "drain", "cancel", "clean", "processes", "threads"};

/* A handler is late when its own time is over. A handler of the stage DRAIN is also late when the time of this stage is
 * over, even if the handler has not begun. */
static bool is_late(const struct handler *self) {
    uint64_t now = os_now();
    if (self->stage == MEMSTOW_DRAIN && now - stage_begun_ns >= stage_limit_ns) return true;
    return self->begun_ns && now - self->begun_ns >= self->limit_ns;
}

/* Notes in the log that the handler has ended, or gives up on it if it is late. Returns 1 if this call found that the
 * handler failed or was late, else 0. */
static int64_t look_at_handler(struct handler *self) {
    uint64_t took = self->begun_ns ? os_now() - self->begun_ns : 0;
    uint32_t state = shutdown_state_of(self);
    if (self->noted || state == IDLE) return 0;
    if (!is_over(self) && is_late(self) &&
        __atomic_compare_exchange_n(&self->state, &state, LATE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        self->result = -ETIMEDOUT;
    if (!is_over(self)) return 0;
    self->noted = true;
    int32_t result = shutdown_state_of(self) == LATE ? -ETIMEDOUT : self->result;
    shutdown_log_step(stages[self->stage], self->name, result, took);
    return result != 0;
}

/* Returns the next handler to begin, or NULL if none can begin now. If some handlers wait, but none can begin and none
 * runs, they wait for one another. Then this returns the first of them. *some_run: whether some handlers of the stage
 * run. */
static struct handler *shutdown_pick(uint32_t stage, bool *some_run) {
    struct handler *first = NULL;
    *some_run = false;
    for (uint32_t i = 0; i < count; i++) {
        if (handlers[i].stage != stage) continue;
        if (shutdown_state_of(&handlers[i]) == WAITING && may_begin(&handlers[i])) return &handlers[i];
        if (shutdown_state_of(&handlers[i]) == WAITING && !first) first = &handlers[i];
        *some_run |= shutdown_state_of(&handlers[i]) == RUNNING;
    }
    if (first && !*some_run) shutdown_log_step("circle", first->name, -EDEADLK, 0);
    return *some_run ? NULL : first;
}

static void begin_handlers(uint32_t stage) {
    stage_begun_ns = os_now();
    stage_limit_ns = HANDLER_NS;
    for (uint32_t i = 0; i < count; i++) {
        if (handlers[i].stage != stage || shutdown_state_of(&handlers[i]) != IDLE) continue;
        handlers[i].state = WAITING;
        if (handlers[i].limit_ns > stage_limit_ns) stage_limit_ns = handlers[i].limit_ns;
    }
}

static int64_t run_stage(uint32_t stage) {
    const struct timespec step = {.tv_nsec = STEP_NS};
    int64_t wrong = 0;
    begin_handlers(stage);
    for (;;) {
        bool some_run;
        struct handler *next = shutdown_pick(stage, &some_run);
        if (next) begin_handler(next);
        for (uint32_t i = 0; i < count; i++)
            if (handlers[i].stage == stage) wrong += look_at_handler(&handlers[i]);
        if (next) continue;
        if (!some_run) break;
        os_call(SYS_nanosleep, &step, NULL);
    }
    if (stage == MEMSTOW_DRAIN) late_drains = wrong;
    return wrong;
}

/* --- what the program has when a stage begins --- */

struct beginning {
    uint32_t asks, stage;
};

/* Is called when a stage begins. Notes in the log what the program has, and remembers the kin of this process
 * (shutdown_kin.h), because parents of kin may end in the stage. */
static void look_around(void *context) {
    const struct beginning *self = context;
    shutdown_kin_look(NULL, 0, NULL, NULL);
    shutdown_audit_stage(stages[self->stage], self->asks);
}

void shutdown_stage(uint32_t stage) {
    struct beginning self = {os_tid(), stage};
    bool own_files;
    if (!__atomic_load_n(&limit.armed, __ATOMIC_ACQUIRE)) return;
    if (__atomic_exchange_n(&noted_stage, stage, __ATOMIC_ACQ_REL) != stage)
        stow_work_apart(look_around, &self, &own_files);
}

/* Only one thread at a time runs a stage, because two threads could begin the same handler. */
int64_t shutdown_run(uint32_t stage) {
    if (__atomic_exchange_n(&runners, 1, __ATOMIC_ACQUIRE)) return -EALREADY;
    bool is_needed = stage != MEMSTOW_CANCEL || late_drains;
    if (is_needed) shutdown_stage(stage);
    int64_t wrong = is_needed ? run_stage(stage) : 0;
    __atomic_store_n(&runners, 0, __ATOMIC_RELEASE);
    return wrong;
}

/* --- what is left when the program ends --- */

struct left {
    uint32_t asks; /* id of the thread that called shutdown_end */
    int64_t threads, processes, descriptors;
};

static void find_left(void *context) {
    struct left *self = context;
    struct stow_thread *thread = __atomic_load_n(&limit.thread, __ATOMIC_ACQUIRE);
    self->threads = shutdown_threads_left(self->asks, thread ? stow_thread_id(thread) : 0);
    self->processes = shutdown_processes_left();
    self->descriptors = shutdown_audit_descriptors(self->asks);
}

/* --- the limit of an ending --- */

/* Ends the process, because the limit of its ending is over. It must not wait for a lock, or for anything else that
 * another thread may hold. */
static void force_end(void) {
    struct line line;
    shutdown_log_line(&line, "forced");
    line_signed(&line, "status", limit.status);
    shutdown_audit_memory(&line);
    shutdown_log_write(&line);
    shutdown_audit_descriptors(0);
    shutdown_threads_left(0, 0);
    shutdown_processes_end(0);
    shutdown_processes_left();
    os_call(SYS_exit_group, limit.status);
}

static bool is_armed(uint32_t number) { return __atomic_load_n(&limit.armed, __ATOMIC_ACQUIRE) == number; }

static void shutdown_guard(void *number) {
    uint32_t mine = (uint32_t)(uintptr_t)number;
    os_call(SYS_prctl, 15 /* PR_SET_NAME */, "memstow limit");
    while (is_armed(mine)) {
        uint64_t now = os_now(), end_ns = os_load(&limit.end_ns);
        if (now >= end_ns) {
            if (is_armed(mine)) force_end(); /* false: this ending was called off meanwhile */
            return;
        }
        struct timespec left = {(time_t)((end_ns - now) / 1000000000), (long)((end_ns - now) % 1000000000)};
        os_call(SYS_futex, &limit.armed, FUTEX_WAIT_PRIVATE, mine, &left);
    }
}

/* Begins a new ending, and returns its number. Returns 0 if another ending goes on. */
static uint32_t shutdown_arm(void) {
    uint32_t none = 0, number = __atomic_add_fetch(&limit.number, 1, __ATOMIC_RELAXED);
    if (!number) number = __atomic_add_fetch(&limit.number, 1, __ATOMIC_RELAXED);
    bool is = __atomic_compare_exchange_n(&limit.armed, &none, number, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return is ? number : 0;
}

static bool take_thread(struct stow_thread *thread) {
    return __atomic_compare_exchange_n(&limit.thread, &thread, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Stores the thread of an ending in `limit.thread`.
 *   - True: whoever takes the thread out of `limit.thread`, usually shutdown_disarm, waits for the thread's end.
 *   - False: the ending was called off meanwhile, and nobody else waits for the thread's end. The caller must wait.
 * If `limit.thread` still has the thread of an earlier ending, this function waits for that thread, which ends by
 * itself. */
static bool leave_thread(uint32_t number, struct stow_thread *thread) {
    struct stow_thread *before = NULL;
    while (!__atomic_compare_exchange_n(&limit.thread, &before, thread, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        if (!is_armed(number)) return false;
    if (before) stow_thread_join(before);
    return is_armed(number) || !take_thread(thread);
}

/* Starts the thread that watches the limit of this ending. */
static void begin_guard(uint32_t number) {
    uint64_t signals = 0;
    bool blocked = lock_out_signals(&signals); /* no handler of the program may run on the thread */
    /* The thread has descriptors of its own: the program may have used up its descriptors, or may close them. */
    struct stow_thread *thread =
        blocked ? stow_thread_start(shutdown_guard, (void *)(uintptr_t)number, &limit.own_files) : NULL;
    if (blocked) lock_let_signals(signals);
    if (!thread) shutdown_log_step("no limit", NULL, -EAGAIN, 0);
    if (thread && !leave_thread(number, thread)) stow_thread_join(thread);
}

int shutdown_begin(const char *reason, uint64_t limit_ns, int status) {
    struct line line;
    uint32_t number = shutdown_arm();
    if (!number) return -EALREADY;
    os_store(&limit.end_ns, os_now() + limit_ns);
    limit.status = status;
    noted_stage = 0;
    shutdown_log_begin();
    shutdown_log_line(&line, "begin");
    line_string(&line, "reason", reason);
    line_number(&line, "limit_ms", limit_ns / MS);
    shutdown_audit_memory(&line);
    shutdown_log_write(&line);
    begin_guard(number);
    return 0;
}

static void shutdown_disarm(void) {
    struct stow_thread *thread = __atomic_exchange_n(&limit.thread, NULL, __ATOMIC_ACQ_REL);
    __atomic_store_n(&limit.armed, 0, __ATOMIC_RELEASE);
    /* wakes all threads that wait: besides this ending's thread, the thread of the next ending may wait here */
    os_call(SYS_futex, &limit.armed, FUTEX_WAKE_PRIVATE, INT32_MAX);
    if (thread) stow_thread_join(thread);
    for (uint32_t i = 0; i < count; i++)
        if (is_over(&handlers[i])) handlers[i].state = LATE; /* each handler runs once */
}

int64_t shutdown_end(bool goes_on) {
    struct line line;
    if (!__atomic_load_n(&limit.armed, __ATOMIC_ACQUIRE)) return -ENOENT;
    struct left left = {.asks = os_tid()};
    bool own_files;
    stow_work_apart(find_left, &left, &own_files);
    shutdown_log_line(&line, "end");
    line_signed(&line, "threads_left", left.threads);
    line_signed(&line, "processes_left", left.processes);
    line_signed(&line, "descriptors_left", left.descriptors);
    shutdown_audit_memory(&line);
    shutdown_log_write(&line);
    if (goes_on) shutdown_disarm();
    return left.threads + left.processes;
}

/* --- endings that a signal begins --- */

static struct {
    struct sigaction before;
    uint64_t limit_ns;
    uint32_t pid;
    int status;
} signals[65];

static void on_signal(int number, siginfo_t *info, void *context) {
    const struct sigaction *before = &signals[number].before;
    int error = errno;
    if (signals[number].pid == os_pid()) shutdown_begin("a signal", signals[number].limit_ns, signals[number].status);
    errno = error;
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else
        before->sa_handler(number);
}

int shutdown_on_signal(int number, uint64_t limit_ns, int status) {
    struct sigaction now;
    if (number < 1 || number > 64 || sigaction(number, NULL, &now) < 0) return -EINVAL;
    bool again = (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal;
    if (!again && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return -EINVAL;
    shutdown_log_ready(); /* so that the signal handler needs less space on its stack */
    if (!again) signals[number].before = now;
    signals[number].limit_ns = limit_ns;
    signals[number].status = status;
    signals[number].pid = os_pid();
    now.sa_flags |= SA_SIGINFO;
    now.sa_sigaction = on_signal;
    return sigaction(number, &now, NULL) == 0 ? 0 : -EINVAL;
}
