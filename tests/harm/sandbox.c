/* sandbox.c HOW MODULE... — goes into a sandbox and allocates there. If HOW is "strict", the sandbox is seccomp's
 * strict mode, and only the main thread allocates. Otherwise HOW is "prctl", "seccomp" or "syscall", and the sandbox is
 * a filter that kills at calls that the program itself does not make. In this sandbox the program allocates from
 * modules that have not allocated before, from new threads, and in a forked child. Ends with status 5. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 100, MODULES = 32 };

static const int killed[] = {SYS_open,       SYS_openat,       SYS_creat,  SYS_fallocate, SYS_ftruncate, SYS_readlink,
                             SYS_readlinkat, SYS_memfd_create, SYS_unlink, SYS_unlinkat,  SYS_rename,    SYS_renameat2,
                             SYS_fstatfs,    SYS_gettid,       SYS_tgkill, SYS_prctl,     SYS_getppid,   SYS_geteuid,
                             SYS_nanosleep,  SYS_sched_yield,  SYS_ioctl};

static void *allocate(void *argument) {
    void *volatile p = malloc(1000), *volatile q = malloc(100000);
    free(p);
    return q ? argument : NULL;
}

/* Strict mode allows only read, write, exit and sigreturn, so allocations must fit into the present heap. Reading the
 * processor's clock kills, too. Each point of the history has a time, and memstow must not read the clock for it. To
 * test this, live bytes fall so far that the history gets a point. */
static void be_strict(void) {
    static void *blocks[100], *large[50];
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_MAX, 0);
    for (int i = 0; i < 50; i++) large[i] = malloc(20000);
    free(malloc(50000)); /* from now on the heap has room */
    for (int i = 0; i < 100; i++) free(malloc(500));
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(77);
    for (int i = 0; i < 100; i++) blocks[i] = malloc(400);
    for (int i = 0; i < 100; i += 2) free(blocks[i]);
    for (int i = 0; i < 50; i++) free(large[i]);
    write(1, "strict\n", 7);
    syscall(SYS_exit, 5);
}

int main(int count, char **arguments) {
    void *(*functions[MODULES])(size_t) = {0};
    static char *large[2000];
    pthread_t threads[THREADS];
    if (!strcmp(arguments[1], "strict")) be_strict();
    for (int i = 2; i < count; i++) {
        void *module = dlopen(arguments[i], RTLD_NOW);
        functions[i - 2] = module ? (void *(*)(size_t))dlsym(module, "allocate") : NULL;
        if (!functions[i - 2]) return 91;
    }
    setvbuf(stdout, NULL, _IOFBF, 1000); /* so that libc does not call ioctl */
    mallopt(M_ARENA_MAX, 4);             /* otherwise glibc counts the processors, and opens a file for that */
    sandbox_enter(arguments[1], killed, sizeof killed / sizeof *killed);
    for (int i = 2; i < count; i++)
        if (!functions[i - 2](1000 + (size_t)i)) return 92;
    for (int i = 0; i < 2000; i++) large[i] = malloc(70000);
    for (int i = 0; i < 1000; i++) mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, allocate, &threads[i])) return 93;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 100; i++) free(large[i]), large[i] = malloc(100);
        exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d, large %d\n", status, !!large[1999]);
    return 5;
}
