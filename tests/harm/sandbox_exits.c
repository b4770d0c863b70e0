/* sandbox_exits.c HOW — goes into a sandbox that kills a process when it asks for its own id or its thread's. HOW says
 * what follows:
 *
 * exit, _exit, quick_exit: the program ends by this function
 * thread: a thread leaves by pthread_exit
 * threads: threads allocate at the same time
 * filter: another filter is added
 * fork: a forked child allocates and ends
 * vfork: a vfork child ends at once
 * failing exec: an exec fails
 * exec: an exec succeeds
 *
 * Unless HOW is exit, _exit, quick_exit or exec, main returns at the end. The exit status is 5, except after a
 * successful exec. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static const int killed[] = {SYS_getpid, SYS_gettid, SYS_tgkill};

static void *leave(void *nothing) {
    (void)nothing;
    pthread_exit(NULL);
}

static bool run_thread(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, leave, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static void *allocate(void *all) {
    void *volatile small = malloc(100), *volatile large = malloc(100000);
    pthread_barrier_wait(all); /* no thread ends before all threads are here, so none gets the place of another */
    free(small);
    free(large);
    return NULL;
}

static bool run_threads(void) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, allocate, &all)) return false;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return true;
}

static bool ended_with_7(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static bool fork_child(void) {
    pid_t pid = fork();
    if (!pid) {
        void *volatile block = malloc(100000);
        exit(block ? 7 : 8);
    }
    return ended_with_7(pid);
}

/* Starts a child that shares our memory and ends at once. */
static bool vfork_child(void) {
    pid_t pid = vfork();
    if (!pid) _exit(7);
    return ended_with_7(pid);
}

static bool is(const char *how, const char *what) { return strcmp(how, what) == 0; }

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    if (!run_thread()) return 91; /* so that libgcc, which pthread_exit needs, is loaded */
    sandbox_enter("prctl", killed, sizeof killed / sizeof *killed);
    if (is(how, "thread") && !run_thread()) return 92;
    if (is(how, "threads") && !run_threads()) return 95;
    if (is(how, "fork") && !fork_child()) return 96;
    if (is(how, "filter")) sandbox_enter("prctl", NULL, 0);
    if (is(how, "failing exec")) execl("/nowhere", "nowhere", NULL);
    if (is(how, "exec")) execle("/bin/false", "false", NULL, (char *[]){NULL});
    if (is(how, "vfork") && !vfork_child()) return 94;
    void *volatile last = malloc(12345);
    if (is(how, "exit")) exit(5);
    if (is(how, "_exit")) _exit(5);
    if (is(how, "quick_exit")) quick_exit(5);
    return last ? 5 : 93;
}
