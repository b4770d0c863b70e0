/* fork_in_thread_start FORKS: a signal handler forks while pthread_create runs. Then the interrupted pthread_create
 * goes on in the parent and in the child, and the new thread runs in each of them. Prints how many children ended in
 * order, how many got stuck, and how many crashed. A child may get stuck without memstow, too, because a thread that is
 * not in the child may hold a lock of libc. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FORKS_MOST = 10000 };

static volatile sig_atomic_t in_child, creating, most;
static int claimed; /* the number of forks; the handler may run in the new thread at the same time */
static pid_t children[FORKS_MOST];
static int ran;

static void handle(int number) {
    (void)number;
    if (in_child || !creating || __atomic_load_n(&claimed, __ATOMIC_RELAXED) >= most) return;
    int mine = __atomic_fetch_add(&claimed, 1, __ATOMIC_RELAXED);
    if (mine >= most) return;
    pid_t child = _Fork(); /* fork() takes malloc's locks, which the interrupted call may hold */
    if (!child)
        in_child = 1, alarm(2);
    else
        children[mine] = child;
}

static void *run(void *argument) {
    *(int *)argument = 1;
    return NULL;
}

int main(int count, char **arguments) {
    most = count > 1 ? atoi(arguments[1]) : 100;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20); /* too large for glibc's cache of stacks: each is a new mapping */
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGVTALRM, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    while (__atomic_load_n(&claimed, __ATOMIC_RELAXED) < most && !in_child) {
        pthread_t thread;
        ran = 0;
        creating = 1;
        int error = pthread_create(&thread, &attributes, run, &ran);
        creating = 0;
        if (error && in_child) _exit(7);
        if (error) continue;
        pthread_join(thread, NULL);
        if (!ran) _exit(8);
    }
    if (in_child) _exit(0);
    timer_settime(timer, 0, &never, NULL);
    int ended = 0, stuck = 0;
    for (int i = 0; i < most; i++) {
        int status = 0;
        if (children[i] <= 0 || waitpid(children[i], &status, 0) < 0) continue; /* the fork failed */
        ended += status == 0;
        stuck += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    }
    printf("%d ended, %d stuck, %d crashed\n", ended, stuck, most - ended - stuck);
    return 0;
}
