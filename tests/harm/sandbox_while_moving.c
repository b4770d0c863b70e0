/* sandbox_while_moving.c HOW — goes into a sandbox while memstow's worker is in the middle of a move and waits for a
 * disk that does not answer (another filter makes fdatasync wait for us). HOW:
 *   prctl, seccomp, syscall: a sandbox for this thread only; the disk answers afterwards
 *   all threads: a sandbox for all threads; the disk answers while we wait
 *   both: a sandbox for this thread only, and then one for all threads
 * At the end the worker is gone. Prints the program's pid when a request for a move may come. Ends with status 5. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"
#include "sandbox.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

enum { SIZE = 8 << 20, PATIENCE_MS = 60000 };

static const int killed[] = {SYS_open,   SYS_fallocate, SYS_fdatasync, SYS_unlink, SYS_gettid,
                             SYS_tgkill, SYS_clone3,    SYS_socket,    SYS_fcntl,  SYS_sched_yield};

/* Installs a filter by inline assembly, so that memstow does not see it. Returns a descriptor on which calls of
 * fdatasync wait for an answer. */
static int make_disk_hang(void) {
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    long result, number = SYS_seccomp, flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(SECCOMP_SET_MODE_FILTER), "S"(flags), "d"(&program)
                     : "rcx", "r11", "memory");
    if (result < 0) _exit(77);
    return (int)result;
}

static useconds_t answer_us = 300000;

static void *answer(void *disk) {
    struct seccomp_notif call = {0};
    MUST(ioctl(*(int *)disk, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0);
    usleep(answer_us); /* another thread may wait in sandbox_enter meanwhile, or return from it. Both end well */
    struct seccomp_notif_resp go_on = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    MUST(ioctl(*(int *)disk, SECCOMP_IOCTL_NOTIF_SEND, &go_on) == 0);
    return NULL;
}

static bool has_worker(void) {
    char name[32] = "", path[300];
    bool there = false;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file)) there |= !strcmp(name, "memstow worker\n");
        if (file) fclose(file);
    }
    closedir(tasks);
    return there;
}

int main(int count, char *arguments[]) {
    bool both = count > 1 && !strcmp(arguments[1], "both"), all = both || !strcmp(arguments[1], "all threads");
    pthread_t thread;
    abi_find();
    int disk = make_disk_hang();
    uint32_t owner = (uint32_t)abi_memstow_owner_open(MEMSTOW_CUSTOM, "owner", "", 0, 0);
    abi_memstow_scope_enter(owner);
    char *p = malloc(SIZE);
    memset(p, 1, SIZE);
    abi_memstow_scope_leave(owner);
    say("%d", getpid());
    struct pollfd asked = {.fd = disk, .events = POLLIN};
    MUST(poll(&asked, 1, PATIENCE_MS) == 1 && has_worker());
    if (both) answer_us = 4000000; /* longer than memstow waits before a sandbox of one thread */
    if (all) pthread_create(&thread, NULL, answer, &disk);
    if (both) sandbox_enter("prctl", killed, sizeof killed / sizeof *killed);
    if (both) MUST(has_worker());
    sandbox_enter(both ? "all threads" : arguments[1], killed, sizeof killed / sizeof *killed);
    say("inside");
    if (!all) MUST(has_worker());
    if (!all) answer(&disk);
    for (int turn = 0; has_worker() && turn < PATIENCE_MS; turn++) usleep(1000);
    MUST(!has_worker());
    for (int i = 0; i < SIZE; i++) MUST(p[i] == 1);
    _exit(5);
}
