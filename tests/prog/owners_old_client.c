// A client built against an earlier header: the functions of version 1.0, and structures that were shorter then. It
// gets as much as it has room for.
#include "expect.h"

#include <dlfcn.h>
#include <stdint.h>

struct figures { /* as they may have been: the first fields of memstow_figures */
    uint32_t size, kind, policy;
    int32_t priority;
    uint32_t retired, adopted_by;
    uint64_t live_bytes, live_blocks;
};

int main(void) {
    uint32_t (*version)(void) = (uint32_t(*)(void))dlsym(RTLD_DEFAULT, "memstow_abi_version");
    int32_t (*tracking)(void) = (int32_t(*)(void))dlsym(RTLD_DEFAULT, "memstow_is_tracking");
    int64_t (*open_owner)(uint32_t, const char *, const char *, uint64_t, uint64_t) =
        (int64_t(*)(uint32_t, const char *, const char *, uint64_t, uint64_t))dlsym(RTLD_DEFAULT, "memstow_owner_open");
    int32_t (*enter)(uint32_t) = (int32_t(*)(uint32_t))dlsym(RTLD_DEFAULT, "memstow_scope_enter");
    int32_t (*get)(uint32_t, struct figures *) =
        (int32_t(*)(uint32_t, struct figures *))dlsym(RTLD_DEFAULT, "memstow_owner_figures");
    if (version) {
        MUST(version() >> 16 == 1 && tracking() == 1);
        uint32_t owner = (uint32_t)open_owner(1, "model", "", 0, 0);
        MUST(enter(owner) == 0);
        char *p = malloc(123);
        MUST(p);
        struct {
            struct figures figures;
            uint64_t behind[4];
        } room = {.figures.size = sizeof room.figures, .behind = {1, 2, 3, 4}};
        MUST(get(owner, &room.figures) == 0);
        MUST(room.figures.size == sizeof room.figures && room.figures.kind == 1 && room.figures.live_bytes == 123);
        MUST(room.behind[0] == 1 && room.behind[3] == 4);
        room.figures.size = 8;
        room.figures.policy = 77;
        MUST(get(owner, &room.figures) == 0 && room.figures.policy == 77);
        free(p);
    }
    say("ok");
    return 0;
}
