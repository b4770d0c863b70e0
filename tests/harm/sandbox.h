/* sandbox.h — a sandbox that kills at the given calls. If this machine does not let the program enter a sandbox, the
 * program ends with status 77. */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Goes into a sandbox that kills at the calls in `killed`. If `how` is "prctl", "seccomp" or "syscall", the sandbox is
 * for this thread only; "syscall" means a call of prctl by syscall(). If `how` is "all threads", the sandbox is for all
 * threads, by seccomp. */
static void sandbox_enter(const char *how, const int *killed, size_t count) {
    struct sock_filter code[2 * 32 + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    long result = -1;
    if (count > 32) _exit(99);
    for (size_t i = 0; i < count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)killed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(how, "prctl"))
        result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    else if (!strcmp(how, "seccomp"))
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    else if (!strcmp(how, "syscall"))
        result = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    else if (!strcmp(how, "all threads"))
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (result) _exit(77);
}

#endif
