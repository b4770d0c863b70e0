// Threads that hold ids. The pin of a thread without a slot ends when the thread ends, when the thread is found outside
// of the hook that pinned it, or in a forked child.
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/count/account.h"
#include "preload/count/pin.h"
#include "preload/ledger/ledger.h"
#include "preload/count/site.h"
#include "preload/count/thread.h"
#include "preload/base/forked.h"

static void begin(void) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, 1 << 20, "unit");
}

static bool all_quiet(void) {
    pin_epoch();
    return pin_all_quiet(1);
}

/* Tries again, because a join may return before the kernel has forgotten the thread, and because threads with a slot
 * are checked only now and then. */
static bool becomes_quiet(void) {
    enum { ENOUGH = 1000, MICROSECONDS = 1000 };
    for (int i = 0; i < ENOUGH; i++) {
        if (all_quiet()) return true;
        usleep(MICROSECONDS);
    }
    return false;
}

static pthread_barrier_t step;

static void *pin_and_leave(void *again) {
    uintptr_t inner = (uintptr_t)__builtin_frame_address(0) - 64, outer = inner + 64;
    thread_slot();
    account_thread_end();
    cr_expect_eq(pin_begin(inner), PIN_STRAY);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    cr_expect_eq(pin_begin(inner - 64), PIN_OUTER, "a signal handler is further in");
    if (again) { /* as in the next hook: the first one never returned */
        enum pin pin = pin_begin(outer);
        cr_expect_eq(pin, PIN_STRAY);
        pin_end(pin);
        pthread_barrier_wait(&step);
        pthread_barrier_wait(&step);
    }
    return NULL;
}

Test(pin, pins_end_where_their_hook_was_left) {
    pthread_t thread;
    begin();
    pthread_barrier_init(&step, NULL, 2);
    pthread_create(&thread, NULL, pin_and_leave, (void *)1);
    pthread_barrier_wait(&step);
    cr_expect_not(all_quiet());
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    cr_expect(all_quiet());
    pthread_barrier_wait(&step);
    pthread_join(thread, NULL);
}

Test(pin, pins_end_with_their_thread) {
    pthread_t thread;
    begin();
    pthread_barrier_init(&step, NULL, 2);
    pthread_create(&thread, NULL, pin_and_leave, NULL);
    pthread_barrier_wait(&step);
    cr_expect_not(all_quiet());
    pthread_barrier_wait(&step);
    pthread_join(thread, NULL);
    cr_expect(becomes_quiet());
}

/* The thread ends within a hook, by a system call. So none of the code runs that usually ends a thread. */
static void *pin_and_end(void *unused) {
    thread_slot();
    cr_expect_eq(pin_begin((uintptr_t)__builtin_frame_address(0)), PIN_OWN);
    pthread_barrier_wait(&step);
    syscall(SYS_exit, 0);
    return unused;
}

Test(pin, who_ended_itself_in_a_hook_is_not_waited_for) {
    pthread_t thread;
    begin();
    pthread_barrier_init(&step, NULL, 2);
    pthread_create(&thread, NULL, pin_and_end, NULL);
    pthread_detach(thread); /* ThreadSanitizer does not see the thread end, so a join would never return under it */
    pthread_barrier_wait(&step);
    cr_expect_not(all_quiet());
    cr_expect(becomes_quiet());
}

Test(pin, pins_end_with_a_fork) {
    begin();
    thread_slot();
    account_thread_end();
    enum pin pin = pin_begin((uintptr_t)__builtin_frame_address(0));
    cr_expect_eq(pin, PIN_STRAY);
    cr_expect_not(all_quiet());
    forked_forget();
    pin_end(pin);
    cr_expect(all_quiet());
}
