/* control_leaves.c HOW — registers an owner. HOW says what follows:
 *
 * return, pthread_exit, thrd_exit: the main thread leaves in this way, and the last thread prints a line into a buffer
 * that only an orderly end empties
 *
 * sandbox: the program goes into a sandbox that forbids all calls of a control thread
 *
 * listen, no_thread: the program waits for its input, with or without permission to make threads */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

static int tasks(void) {
    int count = 0;
    DIR *directory = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void *last(void *nothing) {
    usleep(300000);
    printf("the last thread ends\n");
    return nothing;
}

static void forbid(void) {
    static const int forbidden[] = {SYS_accept4, SYS_ppoll,  SYS_poll,     SYS_recvfrom,
                                    SYS_sendto,  SYS_socket, SYS_unlinkat, SYS_flock};
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    struct sock_filter filter[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], COUNT - i, 0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {COUNT + 3, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) exit(77);
}

int main(int argc, char **argv) {
    int64_t (*open)(uint32_t, const char *, const char *, uint64_t, uint64_t) =
        dlsym(RTLD_DEFAULT, "memstow_owner_open");
    pthread_t thread;
    (void)argc;
    if (!strcmp(argv[1], "no_thread")) setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0});
    if (open && open(4, "a", "", 0, 0) <= 0) return 3;
    if (!strcmp(argv[1], "listen") || !strcmp(argv[1], "no_thread")) {
        getchar();
        return 0;
    }
    if (!strcmp(argv[1], "sandbox")) {
        usleep(200000);
        forbid();
        usleep(1500000);
        printf("%d thread\n", tasks());
        if (open && open(4, "b", "", 0, 0) <= 0) return 4;
        printf("%d thread\n", tasks());
        return 0;
    }
    pthread_create(&thread, NULL, last, NULL);
    if (!strcmp(argv[1], "pthread_exit")) pthread_exit(NULL);
    if (!strcmp(argv[1], "thrd_exit")) thrd_exit(0);
    pthread_join(thread, NULL);
    return 0;
}
