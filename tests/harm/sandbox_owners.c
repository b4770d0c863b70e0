/* sandbox_owners.c WHEN — goes into a sandbox that kills at calls which the program itself does not make, and uses the
 * registration ABI there; its owner is opened before or after. Ends with status 5. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { SMALL = 100, LARGE = 1 << 20 };

static const int killed[] = {SYS_open,   SYS_openat,    SYS_fallocate, SYS_ftruncate,   SYS_unlink,      SYS_gettid,
                             SYS_tgkill, SYS_access,    SYS_ioctl,     SYS_userfaultfd, SYS_mincore,     SYS_clone,
                             SYS_clone3, SYS_nanosleep, SYS_socket,    SYS_prctl,       SYS_sched_yield, SYS_sysinfo};

static void filter(void) {
    struct sock_filter code[2 * 32 + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    for (size_t i = 0; i < sizeof killed / sizeof *killed; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)killed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) _exit(77);
}

static uint32_t open_model(void) {
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(model && CALL(0, memstow_owner_policy, model, MEMSTOW_STOW, 0) == 0);
    return model;
}

static void allocate(uint32_t model) {
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    char *small = malloc(SMALL), *large = malloc(LARGE);
    MUST(small && large);
    memset(large, 1, LARGE);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
}

static void ask(uint32_t model, uint64_t live) {
    __typeof__(memstow_trigger) *trigger = (__typeof__(trigger))dlsym(RTLD_DEFAULT, "memstow_trigger");
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(abi_memstow_owner_figures(model, &figures) == 0 && figures.live_bytes == live);
    MUST(figures.resident_bytes == UINT64_MAX); /* it cannot be told */
    MUST(abi_memstow_stow(model) == -ENOTSUP && abi_memstow_restore(model) == -ENOTSUP);
    MUST(abi_memstow_release(model) >= 0 && trigger(MEMSTOW_REQUEST, "") >= 0);
}

int main(int count, char *arguments[]) {
    uint32_t model = 0;
    uint64_t live = SMALL + LARGE;
    abi_find();
    if (count > 1 && !strcmp(arguments[1], "before")) {
        allocate(model = open_model());
        live *= 2;
    }
    filter();
    if (!model) model = open_model();
    allocate(model);
    if (has_memstow) ask(model, live);
    MUST(CALL(0, memstow_owner_retire, model) == 0);
    _exit(5);
}
