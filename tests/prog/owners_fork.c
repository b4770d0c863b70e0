// Owners, scopes and the run go on in a forked child. Its ledger has the owners that it needs. The child's changes to
// them do not reach its parent, even if a change is its first action.
#include "abi.h"
#include "expect.h"

#include <sys/wait.h>

enum { PARENTS = 1000, CHILDS = 333, LATER = 50, LARGE = 70000, PART = 1000 };

static void *kept[4];

static void *allocate(size_t size) {
    void *p = malloc(size);
    MUST(p);
    memset(p, 1, size);
    return p;
}

static void end_well(pid_t child) {
    int status;
    MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void say_at_once(uint32_t model) {
    pid_t child = fork();
    if (!child) {
        MUST(CALL(0, memstow_owner_policy, model, MEMSTOW_FREE, 7) == 0);
        _exit(0);
    }
    end_well(child);
}

/* Frees the parent's block, a part of which was assigned, and assigns a part of the block that comes in its place. */
static void give_part_again(uint32_t owner, char *block) {
    free(block);
    block = allocate(LARGE);
    MUST(CALL(0, memstow_assign, owner, block + PART / 2, 3 * PART) == 0);
    free(block);
}

int main(void) {
    abi_find();
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    char *block = allocate(LARGE);
    MUST(CALL(0, memstow_assign, model, block + PART, PART) == 0);
    MUST(CALL(1, memstow_run_begin, "run") > 0);
    MUST(CALL(0, memstow_owner_policy, model, MEMSTOW_STOW, 1) == 0);
    say_at_once(model);
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    kept[0] = allocate(PARENTS);
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        kept[1] = allocate(CHILDS);
        MUST(CALL(0, memstow_scope_leave, model) == 0);
        uint32_t late = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_CUSTOM, "late", "", 2, 0);
        MUST(!has_memstow || (late != model && (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "", "", 1, 0) == model));
        give_part_again(late, block);
        MUST(CALL(0, memstow_scope_enter, late) == 0);
        kept[2] = allocate(LATER);
        free(kept[0]);
        _exit(0);
    }
    end_well(child);
    say("expect owners[0].policy == stow");
    say("expect owners[name=model].live_bytes == %d", PARENTS + PART);
    say("expect owners[name=run].live_bytes == %d", PARENTS);
    say("expect@%d owners[name=model].live_bytes == %d", (int)child, CHILDS);
    say("expect@%d owners[name=run].live_bytes == %d", (int)child, CHILDS + LATER);
    say("expect@%d owners[name=late].live_bytes == %d", (int)child, LATER);
    return 0;
}
