/* sandbox_owners.c WHEN — goes into a sandbox that kills at calls that the program itself does not make, and uses the
 * registration ABI there. WHEN says what is done with the owner: it is opened before the sandbox (before) or in it
 * (after), or it is opened before and has stowed memory, which is freed in the sandbox (stowed). Ends with status 5. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"
#include "sandbox.h"

#include <errno.h>

enum { SMALL = 100, LARGE = 1 << 20 };

static const int killed[] = {SYS_open,   SYS_openat,    SYS_fallocate, SYS_ftruncate,   SYS_unlink,      SYS_gettid,
                             SYS_tgkill, SYS_access,    SYS_ioctl,     SYS_userfaultfd, SYS_mincore,     SYS_clone,
                             SYS_clone3, SYS_nanosleep, SYS_socket,    SYS_prctl,       SYS_sched_yield, SYS_sysinfo};

static uint32_t open_model(void) {
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(model && CALL(0, memstow_owner_policy, model, MEMSTOW_STOW, 0) == 0);
    return model;
}

static char *large;

static void allocate(uint32_t model) {
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    char *small = malloc(SMALL);
    large = malloc(LARGE);
    MUST(small && large);
    memset(large, 1, LARGE);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
}

static void ask(uint32_t model, uint64_t live) {
    __typeof__(memstow_trigger) *trigger = (__typeof__(trigger))dlsym(RTLD_DEFAULT, "memstow_trigger");
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(abi_memstow_owner_figures(model, &figures) == 0 && figures.live_bytes == live);
    MUST(figures.resident_bytes == UINT64_MAX); /* unknown in a sandbox */
    MUST(abi_memstow_stow(model) == -ENOTSUP && abi_memstow_restore(model) == -ENOTSUP);
    MUST(abi_memstow_release(model) >= 0 && trigger(MEMSTOW_REQUEST, "") >= 0);
}

int main(int count, char *arguments[]) {
    uint32_t model = 0;
    uint64_t live = SMALL + LARGE;
    bool stowed = count > 1 && !strcmp(arguments[1], "stowed");
    abi_find();
    if (stowed || (count > 1 && !strcmp(arguments[1], "before"))) {
        allocate(model = open_model());
        live += SMALL + (stowed ? 0 : LARGE);
        if (stowed && has_memstow) MUST(abi_memstow_owner_idle(model, 1) == 0 && abi_memstow_stow(model) > 0);
    }
    sandbox_enter("prctl", killed, sizeof killed / sizeof *killed);
    if (stowed) free(large);
    if (!model) model = open_model();
    allocate(model);
    if (has_memstow) ask(model, live);
    MUST(CALL(0, memstow_owner_retire, model) == 0);
    _exit(5);
}
