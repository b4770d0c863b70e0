/* sandbox_probes.c WAY — asks for a sandbox in one of four ways, and does not get into it:
 *
 * probe: by probes that cannot succeed (those of libseccomp, systemd and Chromium)
 * refused: by filters that the kernel refuses
 * thread: for all threads, of which one cannot join the sandbox
 * vfork: in a vfork child, which alone goes into the sandbox
 *
 * Prints the result of each call. Afterwards everything is as before: owners can be registered (this needs files), the
 * control thread is there, and a forked child has a ledger. With a second argument, "then in", the process finally goes
 * into a real sandbox. Ends with status 5. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"
#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { OWNERS = 3000 };

static const int killed[] = {SYS_open,      SYS_openat,      SYS_fallocate, SYS_ftruncate, SYS_unlink,
                             SYS_gettid,    SYS_tgkill,      SYS_clone3,    SYS_socket,    SYS_prctl,
                             SYS_nanosleep, SYS_sched_yield, SYS_futex};

static void tell(const char *what, long result) {
    say("%s %d %d", what, result < 0 ? -1 : result > 0, result < 0 ? errno : 0);
}

static void probe(void) {
    static char nothing[1];
    tell("no filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0));
    tell("by syscall", syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0));
    tell("unknown mode", prctl(PR_SET_SECCOMP, 77, nothing, 0, 0));
    tell("strict with flags", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
    for (unsigned flag = 0; flag < 8; flag++)
        tell("flag", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag ? 1u << (flag - 1) : 0, NULL));
    tell("unknown operation", syscall(SYS_seccomp, 99, 0, nothing));
    tell("action", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){SECCOMP_RET_ALLOW}));
    tell("unknown action", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){12345}));
    tell("asked", prctl(PR_GET_SECCOMP));
}

static struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), wrong = BPF_STMT(0xFFF, 0);

static void be_refused(void) {
    struct sock_fprog bad = {1, &wrong}, none = {0, &allow}, nowhere = {1, (struct sock_filter *)8};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    tell("wrong filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &bad, 0, 0));
    tell("wrong filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &bad));
    tell("empty filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &none));
    tell("filter nowhere", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &nowhere));
    tell("no program there", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8, 0, 0));
}

static int ready, over;

/* Bypasses memstow: only the kernel knows of it. */
static long quietly(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void *go_elsewhere(void *nothing) {
    struct sock_fprog program = {1, &allow};
    MUST(quietly(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program) == 0);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) usleep(1000);
    return nothing;
}

/* Asks for a sandbox for all threads. One thread cannot join it, because that thread has a filter of its own. The call
 * returns the id of that thread. */
static void lose_one(void) {
    struct sock_fprog program = {1, &allow};
    pthread_t thread;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    pthread_create(&thread, NULL, go_elsewhere, NULL);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) usleep(1000);
    tell("all threads", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

static void let_child_in(void) {
    pid_t child = vfork();
    if (!child) {
        sandbox_enter("prctl", killed, sizeof killed / sizeof *killed);
        _exit(4);
    }
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    say("child %d", status);
}

/* Waits until there is a control thread. memstow ends this thread before a sandbox, and starts it again if there is no
 * sandbox. */
static void look_for_control(void) {
    char name[32] = "";
    int there = 0;
    for (int turn = 0; has_memstow && !there && turn < 5000; turn++, usleep(1000)) {
        DIR *tasks = opendir("/proc/self/task");
        for (struct dirent *entry; (entry = readdir(tasks));) {
            char path[300];
            snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
            FILE *file = fopen(path, "r");
            if (file && fgets(name, sizeof name, file)) there |= !strcmp(name, "memstow\n");
            if (file) fclose(file);
        }
        closedir(tasks);
    }
    MUST(there || !has_memstow);
}

static void be_as_before(void) {
    char name[200];
    look_for_control();
    memset(name, 'n', sizeof name);
    for (int i = 0; i < OWNERS; i++) { /* more than the ledger had room for */
        snprintf(name + 150, 40, "%d", i);
        MUST(CALL(1, memstow_owner_open, MEMSTOW_CUSTOM, name, "", (uint64_t)i, 0) > 0);
    }
    pid_t child = fork();
    if (!child) {
        void *volatile kept = malloc(123456);
        MUST(kept);
        exit(0);
    }
    int status = 1;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char *arguments[]) {
    abi_find();
    if (has_memstow) MUST(abi_memstow_owner_open(MEMSTOW_CUSTOM, "first", "", 0, 0) > 0);
    if (has_memstow) look_for_control();
    if (!strcmp(arguments[1], "probe")) probe();
    if (!strcmp(arguments[1], "refused")) be_refused();
    if (!strcmp(arguments[1], "thread")) lose_one();
    if (!strcmp(arguments[1], "vfork")) let_child_in();
    be_as_before();
    if (count > 2) {
        sandbox_enter("seccomp", killed, sizeof killed / sizeof *killed);
        for (int i = 0; i < 1000; i++) MUST(malloc(70000));
    }
    _exit(5);
}
