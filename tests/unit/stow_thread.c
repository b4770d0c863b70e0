// memstow's own threads. A thread that is a process of its own ends when it is joined, even if somebody has stopped it
// with SIGSTOP.
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/shared/os.h"
#include "preload/stow/stow_thread.h"

#if defined(__SANITIZE_THREAD__)
enum { UNSEEN = 1 }; /* ThreadSanitizer must see the start of a thread */
#else
enum { UNSEEN = 0 };
#endif

static int ends[2];
static int process;

/* Waits until there is something to read. */
static void wait_for_word(void *unused) {
    struct pollfd wait = {.fd = ends[0], .events = POLLIN};
    (void)unused;
    __atomic_store_n(&process, (int)os_call(SYS_getpid), __ATOMIC_RELEASE);
    os_call(SYS_poll, &wait, 1, -1);
}

static struct stow_thread *start_apart(void) {
    cr_assert_eq(pipe(ends), 0);
    struct stow_thread *made = stow_thread_start_apart(wait_for_word, NULL);
    cr_assert(made);
    while (!__atomic_load_n(&process, __ATOMIC_ACQUIRE)) continue;
    return made;
}

static void has_ended(void) {
    cr_expect_eq(waitpid(process, NULL, __WALL), -1, "nothing of it is left");
    cr_expect_eq(kill(process, 0), -1);
}

Test(stow_thread, apart, .disabled = UNSEEN) {
    struct stow_thread *made = start_apart();
    cr_assert_eq(write(ends[1], "x", 1), 1);
    stow_thread_join(made);
    has_ended();
}

/* The thread's process is stopped and not continued. This happens if somebody stops the process group with kill
 * -STOP, and then continues only the program. */
Test(stow_thread, apart_and_stopped, .disabled = UNSEEN) {
    struct stow_thread *made = start_apart();
    siginfo_t stopped;
    cr_assert_eq(kill(process, SIGSTOP), 0);
    cr_assert_eq(waitid(P_PID, (id_t)process, &stopped, WSTOPPED | __WALL), 0);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    stow_thread_join(made);
    has_ended();
}

Test(stow_thread, apart_and_ended_by_somebody, .disabled = UNSEEN) {
    struct stow_thread *made = start_apart();
    cr_assert_eq(kill(process, SIGKILL), 0);
    stow_thread_join(made);
    has_ended();
}
