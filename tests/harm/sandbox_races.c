/* sandbox_races.c WAY — a thread tries again and again to enter a sandbox, and fails each time. WAY says what happens
 * meanwhile:
 *
 * enters: another thread enters a real sandbox, where opening a file kills, and needs memory there
 *
 * forks: children are forked, and each child needs a ledger of its own
 *
 * handler: a signal handler runs in the middle of a try, on the same thread, and tries, too
 *
 * blocks: invalid addresses are looked up
 *
 * Ends with status 5. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"
#include "sandbox.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/wait.h>

static int over, probes;

static void ask(void) {
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8, 0, 0) < 0); /* a filter at an invalid address */
    __atomic_fetch_add(&probes, 1, __ATOMIC_RELAXED);
}

static void *probe(void *nothing) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) ask();
    return nothing;
}

static void *enter(void *nothing) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    void **kept = NULL;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) _exit(77);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 60000; i++) { /* more than the ledger has room for before it grows */
        void **next = malloc(70000);
        *next = kept;
        kept = next;
    }
    return nothing;
}

static void fork_children(void) {
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (!child) {
            void *volatile block = malloc(100000);
            MUST(block);
            exit(0);
        }
        MUST(waitpid(child, NULL, 0) == child);
    }
}

static void in_handler(int number) {
    (void)number;
    ask();
}

static void interrupt(void) {
    struct itimerval often = {{0, 300}, {0, 300}}, never = {0};
    signal(SIGALRM, in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300000; i++) ask();
    setitimer(ITIMER_REAL, &never, NULL);
}

static void ask_of_blocks(void) {
    static uint64_t addresses[4096];
    static struct memstow_block blocks[4096];
    for (int i = 0; i < 4096; i++) addresses[i] = 0x10010 + (uint64_t)i * 4096;
    for (int i = 0; has_memstow && i < 20; i++) abi_memstow_blocks(addresses, 4096, 0, blocks, sizeof *blocks);
}

int main(int count, char **arguments) {
    pthread_t prober, other;
    const char *way = count > 1 ? arguments[1] : "";
    abi_find();
    MUST(!pthread_create(&prober, NULL, probe, NULL));
    while (!__atomic_load_n(&probes, __ATOMIC_RELAXED)) sched_yield();
    if (!strcmp(way, "enters")) {
        MUST(!pthread_create(&other, NULL, enter, NULL));
        pthread_join(other, NULL);
    } else if (!strcmp(way, "forks"))
        fork_children();
    else if (!strcmp(way, "handler"))
        interrupt();
    else
        ask_of_blocks();
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(prober, NULL);
    _exit(5);
}
