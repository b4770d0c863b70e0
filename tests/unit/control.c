/* The two threads of the control socket. The owners here take their time, so a client sees the progress of a move
 * and can cancel it. Memory pressure is checked once a second. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/proc/control_client.h"
#include "preload/count/account.h"
#include "preload/control/control.h"
#include "preload/blocks/host.h"
#include "preload/ledger/ledger.h"
#include "memstow.h"
#include "preload/owners/moving.h"
#include "preload/owners/mover.h"
#include "preload/shared/os.h"
#include "preload/control/requests.h"
#include "preload/count/site.h"
#include "preload/triggers/trigger.h"
#include "preload/triggers/watch.h"

/* There are no host blocks here. */
bool host_find(uintptr_t address, struct host_block *out) { return (void)address, (void)out, false; }

void host_change(const struct host_block *block) { (void)block; }

static uint64_t moved;
static bool cancelled, polls, quick;
static uint32_t polled, passed_on;

/* Moves a byte a millisecond until it is cancelled. */
int64_t moving_stow(uint32_t owner) {
    (void)owner;
    bool at_once = __atomic_load_n(&quick, __ATOMIC_ACQUIRE);
    while (!at_once && !__atomic_load_n(&cancelled, __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&moved, 1, __ATOMIC_RELAXED);
        usleep(1000);
    }
    return at_once ? 42 : -ECANCELED;
}
int64_t moving_stow_host(uint32_t owner) { return moving_stow(owner); }
int64_t moving_stow_device(uint32_t owner) { return moving_stow(owner); }
int64_t moving_restore(uint32_t owner) { return owner == 1 ? 1 << 20 : -ENOENT; }
bool moving_was_cut_short(void) { return false; }
int64_t moving_release(uint32_t owner) { return owner; }
uint64_t moving_progress(uint64_t *wanted) {
    *wanted = 1000000;
    return __atomic_load_n(&moved, __ATOMIC_RELAXED);
}
uint64_t (*mover_request)(uint32_t owner, bool out, struct move_end *end);
void (*mover_cancel_request)(uint64_t ticket);
static bool at_work;
void mover_begin_work(void) { __atomic_store_n(&at_work, true, __ATOMIC_RELAXED); }
void mover_end_work(void) { __atomic_store_n(&at_work, false, __ATOMIC_RELAXED); }
void mover_begin_call(void) {}
/* A move of owner 5 out is under way. It has ended when mover_is_on is called for the third time. */
int64_t mover_end(uint32_t owner, bool out) { return out && (owner == 5 || !owner) ? 77 : -ENOENT; }
bool mover_is_on(uint64_t number, uint64_t *so_far, uint64_t *wanted) {
    static int asked;
    *so_far = number == 77 ? 1000 : 0, *wanted = 4000;
    return ++asked < 3;
}

void mover_cancel_work(void) { __atomic_store_n(&cancelled, true, __ATOMIC_RELEASE); }
int64_t trigger_run(uint32_t reason, const char *text, uint64_t needed) {
    (void)needed;
    return reason == MEMSTOW_REQUEST && !strcmp(text, "why") ? 7 : -1;
}
void trigger_words(char *to, size_t room) { snprintf(to, room, "1 kept"); }
bool watch_is_wanted(void) { return __atomic_load_n(&polls, __ATOMIC_ACQUIRE); }
uint32_t watch_poll(uint64_t now_ns, bool (*ask)(uint32_t reason, const char *text, uint64_t needed)) {
    (void)now_ns;
    if (ask(MEMSTOW_PRESSURE, "full", 5)) __atomic_fetch_add(&passed_on, 1, __ATOMIC_RELEASE);
    return __atomic_fetch_add(&polled, 1, __ATOMIC_RELEASE), 0;
}

static char path[200];
static int before; /* number of threads, some of them Criterion's */

static bool there_in(const char *folder, const char *below) {
    snprintf(path, sizeof path, "%s%s/%u.%llu", folder, below, os_pid(), (unsigned long long)os_start_ticks(0));
    return access(path, F_OK) == 0;
}

static bool is_there(void) {
    char own[64];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    snprintf(own, sizeof own, "/tmp/memstow-%u", geteuid());
    return (runtime && there_in(runtime, "/memstow")) || there_in(own, "");
}

static int threads(void) {
    int count = -2;
    DIR *tasks = opendir("/proc/self/task");
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count;
}

/* Whether memstow has this many threads. Under ThreadSanitizer the threads are not counted, because ThreadSanitizer has
 * a thread of its own. */
static bool threads_are(int ours) {
#if defined(__SANITIZE_THREAD__)
    return ours <= 2;
#else
    for (int i = 0; i < 1000 && threads() != before + ours; i++)
        usleep(1000); /* the kernel still knows a thread for a moment */
    return threads() == before + ours;
#endif
}
/* memstow joins its threads with a time-out. ThreadSanitizer does not notice such a join, and would report the threads
 * as leaked. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0:die_after_fork=0"; }

static void begin(void) {
    before = threads();
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, 1 << 20, "unit");
    control_begin();
    control_begin();
    for (int i = 0; i < 1000 && !is_there(); i++) usleep(10000);
    cr_assert(is_there());
}

/* There is no memory for the listener's stack. */
static void begin_in_vain(void) {
    struct rlimit as_before, none;
    cr_assert_eq(getrlimit(RLIMIT_AS, &as_before), 0);
    none = (struct rlimit){4096, as_before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
    control_begin();
    setrlimit(RLIMIT_AS, &as_before);
    cr_assert(threads_are(0));
}

Test(control, begins_later_if_there_was_no_thread, .timeout = 60) {
#ifdef __SANITIZE_THREAD__
    cr_skip("ThreadSanitizer itself needs the address space that this test takes away");
#endif
    before = threads();
    begin_in_vain();
    begin();
    cr_assert(threads_are(1));
    control_stop(CONTROL_PATIENCE);
}

static int ask_with(uint32_t type, uint32_t owner, int64_t number, const char *text) {
    char error[256];
    struct wire_message message = {.type = type, .owner = owner, .number = number};
    int fd = control_connect(getpid(), path, error, sizeof error);
    cr_assert(fd >= 0, "%s", error);
    strcpy(message.text, text);
    cr_assert_eq(control_send(fd, &message), 0);
    return fd;
}

static int ask(uint32_t type, uint32_t owner, const char *text) { return ask_with(type, owner, 0, text); }

/* The next answer of a type. */
static struct wire_message answer(int fd, uint32_t type) {
    struct wire_message got = {0};
    for (int i = 0; i < 1000 && got.type != type; i++) cr_assert(control_receive(fd, &got, 100) >= 0);
    cr_assert_eq(got.type, type);
    return got;
}

Test(control, answers_by_itself, .timeout = 60) {
    begin();
    cr_assert_eq(answer(ask(WIRE_RESTORE, 1, ""), WIRE_DONE).number, 1 << 20);
    cr_assert_eq(answer(ask(WIRE_RESTORE, 2, ""), WIRE_DONE).number, -ENOENT);
    cr_assert_eq(answer(ask(WIRE_RELEASE, 3, ""), WIRE_DONE).number, 3);
    cr_assert_eq(answer(ask(WIRE_TRIGGER, 0, "why"), WIRE_DONE).number, 7);
    cr_assert(threads_are(2));
    cr_assert(__atomic_load_n(&at_work, __ATOMIC_RELAXED));
    control_stop(CONTROL_PATIENCE);
    cr_assert_not(__atomic_load_n(&at_work, __ATOMIC_RELAXED), "another thread may have the worker's id now");
}

Test(control, tells_how_far_it_is_and_ends_early, .timeout = 60) {
    begin();
    int fd = ask(WIRE_STOW, 1, "");
    struct wire_message got = answer(fd, WIRE_WORKING), second;
    do second = answer(fd, WIRE_WORKING);
    while (second.number <= got.number);
    /* Other clients are heard meanwhile, and wait. */
    int waiting = ask(WIRE_RELEASE, 3, ""), leaving = ask(WIRE_RELEASE, 4, "");
    answer(waiting, WIRE_WAITING);
    answer(leaving, WIRE_WAITING);
    struct wire_message cancel = {.type = WIRE_CANCEL};
    control_send(leaving, &cancel);
    cr_assert_eq(answer(leaving, WIRE_DONE).number, -ECANCELED);
    cr_assert_not(__atomic_load_n(&cancelled, __ATOMIC_ACQUIRE), "what is at work is another's");
    control_send(fd, &cancel);
    cr_assert_eq(answer(fd, WIRE_DONE).number, -ECANCELED);
    cr_assert_eq(answer(waiting, WIRE_DONE).number, 3);
    control_stop(CONTROL_PATIENCE);
}

/* A client ends a move that the program itself began, and learns how far the move came. No worker takes part. */
Test(control, ends_a_move_of_the_programs, .timeout = 60) {
    begin();
    cr_assert_eq(answer(ask_with(WIRE_END, 4, WIRE_STOW, ""), WIRE_DONE).number, -ENOENT);
    cr_assert_eq(answer(ask_with(WIRE_END, 5, WIRE_RESTORE, ""), WIRE_DONE).number, -ENOENT);
    int fd = ask_with(WIRE_END, 5, WIRE_STOW, "");
    struct wire_message got = answer(fd, WIRE_WORKING);
    cr_assert(got.number == 1000 && !strcmp(got.text, "4000"));
    got = answer(fd, WIRE_DONE);
    cr_assert(got.number == 1000 && !strcmp(got.text, "4000"));
    cr_assert_eq(answer(ask_with(WIRE_END, 0, WIRE_STOW, ""), WIRE_DONE).number, 1000);
    cr_assert(threads_are(1));
    control_stop(CONTROL_PATIENCE);
}

Test(control, stops_for_good_with_what_it_does, .timeout = 60) {
    begin();
    int fd = ask(WIRE_STOW, 1, "");
    answer(fd, WIRE_WORKING);
    errno = 1234;
    control_stop(CONTROL_PATIENCE);
    cr_assert_eq(errno, 1234);
    cr_assert(cancelled);
    cr_assert(threads_are(0));
    cr_assert_not(is_there());
    struct wire_message got = answer(fd, WIRE_DONE);
    cr_assert(got.number == -ESHUTDOWN || got.number == -ECANCELED);
    control_begin();
    control_stop(CONTROL_PATIENCE);
    control_end();
    cr_assert(threads_are(0));
}

Test(control, looks_at_pressure_once_a_second, .timeout = 60) {
    struct memstow_request got;
    begin();
    sleep(2);
    cr_assert(threads_are(1), "no worker without work");
    cr_assert_eq(polled, 0);
    __atomic_store_n(&polls, true, __ATOMIC_RELEASE);
    while (__atomic_load_n(&polled, __ATOMIC_ACQUIRE) < 2) usleep(10000);
    cr_assert_eq(passed_on, 0);
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 0);
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 30000), 1);
    cr_assert(got.reason == MEMSTOW_PRESSURE && got.needed == 5);
    control_stop(CONTROL_PATIENCE);
}

Test(control, of_a_parent_is_not_a_childs, .timeout = 60) {
    int status;
    begin();
    __atomic_store_n(&quick, true, __ATOMIC_RELEASE);
    pid_t child = fork();
    if (!child) {
        bool alone = threads_are(-before + 1);
        bool gone = !is_there();
        control_stop(CONTROL_PATIENCE);
        control_end();
        control_begin();
        for (int i = 0; i < 1000 && !is_there(); i++) usleep(10000);
        int fd = ask(WIRE_STOW, 1, "");
        bool works = answer(fd, WIRE_DONE).number == 42;
        control_end();
        _exit(alone && gone && works && !is_there() ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert(is_there());
    cr_assert_eq(answer(ask(WIRE_STOW, 1, ""), WIRE_DONE).number, 42);
    control_end();
    cr_assert_not(is_there());
}
