/* sandbox_first_owner.c TIMES — one thread registers the first owner while another thread puts all threads into a
 * sandbox. The sandbox kills at calls that only a thread of memstow's makes. This is done TIMES times, each time in a
 * new child. To make a thread takes long here, as in a debugger. Prints how many children the sandbox has killed.
 * sandbox_first_owner.c probe — the call that begins the sandbox fails. The program goes on until its input ends. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"
#include "sandbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

static const int killed[] = {SYS_close_range, SYS_socket, SYS_bind, SYS_listen};
static pthread_barrier_t both;

static __thread bool slow;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    __typeof__(pthread_create) *real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
    if (slow) usleep(5000);
    int error = real(thread, attributes, start, argument);
    if (slow) usleep(5000);
    return error;
}

static void *open_first(void *nothing) {
    slow = true;
    pthread_barrier_wait(&both);
    MUST(CALL(1, memstow_owner_open, MEMSTOW_NODE, "first", "", 1, 0) > 0);
    return nothing;
}

static void race(int turn) {
    pthread_t other;
    pthread_barrier_init(&both, NULL, 2);
    MUST(!pthread_create(&other, NULL, open_first, NULL));
    pthread_barrier_wait(&both);
    usleep(turn % 20 * 1000);
    sandbox_enter("all threads", killed, sizeof killed / sizeof *killed);
    pthread_join(other, NULL);
    usleep(20000);
    _exit(0);
}

static void *probe(void *over) {
    while (!__atomic_load_n((int *)over, __ATOMIC_RELAXED))
        MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8, 0, 0) < 0); /* a filter at an invalid address */
    return NULL;
}

static void probe_beside(void) {
    pthread_t prober;
    int over = 0;
    MUST(!pthread_create(&prober, NULL, probe, &over));
    usleep(10000);
    while (CALL(1, memstow_owner_open, MEMSTOW_NODE, "first", "", 1, 0) <= 0) continue; /* a probe may make it fail */
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(prober, NULL);
    puts("ready");
    fflush(stdout);
    getchar();
}

int main(int count, char **arguments) {
    int times = count > 1 ? atoi(arguments[1]) : 0, deaths = 0, status;
    abi_find();
    if (!times) probe_beside();
    for (int i = 0; i < times; i++) {
        pid_t child = fork();
        if (!child) race(i);
        MUST(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return 77;
        deaths += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    if (times) printf("%d killed\n", deaths);
    return 0;
}
