/* no_counter.c HOW SIZE — allocates, and ends with status 3. HOW says whether the thread that allocates may read the
 * processor's counter, which libc's clock reads.
 *
 * With these HOWs the thread may not read the counter:
 *
 * strict: the thread is in the strictest sandbox, where nearly all system calls kill, too. The heap has room for more
 * than was live before, so malloc needs no system call.
 *
 * library: libc's function prctl has forbidden the counter.
 *
 * number: syscall(SYS_prctl, …) has forbidden the counter.
 *
 * With these HOWs the thread may read the counter:
 *
 * failing: the kernel has refused the strictest sandbox.
 *
 * filtered: the kernel has refused the strictest sandbox, because the thread has a filter.
 *
 * beside: another thread is in the strictest sandbox. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 60 };

static size_t size;

static void allocate(size_t bytes) {
    void *volatile blocks[COUNT];
    for (int i = 0; i < COUNT; i++) blocks[i] = malloc(bytes);
    for (int i = 0; i < COUNT; i++) free(blocks[i]);
}

/* Call stacks that come for the first time. */
static __attribute__((noinline)) void allocate_below(int depth) {
    if (depth) allocate_below(depth - 1);
    void *volatile block = malloc(size);
    free(block);
}

static void *allocate_in_thread(void *argument) {
    for (size_t bytes = size; bytes < 64 * size; bytes *= 2) allocate(bytes);
    return argument;
}

static void be_strict(void) {
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TOP_PAD, 32 << 20);
    allocate(size);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(77);
    for (int i = 1; i < 4; i++) allocate(size * (size_t)i);
    allocate_below(50);
}

static void try_strict(void) {
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == 0 || errno != EINVAL) _exit(78);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT + 99) == 0) _exit(78);
}

/* Installs a filter that allows all calls. Then asks for the strictest sandbox, which the kernel refuses to a thread
 * with a filter. */
static void try_strict_behind_filter(void) {
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog program = {1, &allow};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(77);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0) _exit(78);
}

static void forbid(const char *how) {
    long failed = !strcmp(how, "number") ? syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)
                                         : prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    if (failed) _exit(77);
}

static int wakes[2], entered;

static void *wait_in_sandbox(void *argument) {
    char byte;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(77);
    __atomic_store_n(&entered, 1, __ATOMIC_RELEASE);
    if (read(wakes[0], &byte, 1) == 1) syscall(SYS_exit, 0);
    return argument;
}

/* While another thread is in the sandbox, the main thread allocates, and so does a forked child. */
static void be_beside(void) {
    pthread_t thread;
    int status = 0;
    if (pipe(wakes) || pthread_create(&thread, NULL, wait_in_sandbox, NULL)) _exit(2);
    while (!__atomic_load_n(&entered, __ATOMIC_ACQUIRE)) usleep(1000);
    pid_t child = fork();
    if (!child) {
        allocate_in_thread(NULL);
        _exit(9);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 9) _exit(79);
    allocate_in_thread(NULL);
    write(1, "end\n", 4);
    syscall(SYS_exit_group, 3);
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count != 3) return 1;
    size = (size_t)atol(arguments[2]);
    if (!strcmp(arguments[1], "beside")) be_beside();
    if (!strcmp(arguments[1], "strict")) {
        be_strict();
    } else {
        if (!strcmp(arguments[1], "failing"))
            try_strict();
        else if (!strcmp(arguments[1], "filtered"))
            try_strict_behind_filter();
        else
            forbid(arguments[1]);
        allocate_in_thread(NULL);
        if (pthread_create(&thread, NULL, allocate_in_thread, NULL)) return 2;
        pthread_join(thread, NULL);
    }
    write(1, "end\n", 4);
    syscall(SYS_exit, 3);
}
