// A client that was built with an old header (1.2), and a client whose structures are smaller than those of any
// version. Both get as much as their structures have room for, and the memory behind a structure is not touched.
#include "expect.h"
#include "lib/memstow-1.2.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(MEMSTOW_ABI_VERSION == 0x00010002, "an earlier header");

#define FIND(name) __typeof__(name) *name##_ = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name)

enum { BYTES = 123, MARK = 0x5a };

/* A structure of the client, and the memory behind it. */
#define ROOM(type)                                                                                                     \
    struct {                                                                                                           \
        type is;                                                                                                       \
        unsigned char behind[64];                                                                                      \
    }
#define MARKED(room) memset((room)->behind, MARK, sizeof(room)->behind)
static void untouched(const unsigned char *behind) {
    for (int i = 0; i < 64; i++) MUST(behind[i] == MARK);
}

static void figures(uint32_t owner) {
    FIND(memstow_owner_figures);
    ROOM(struct memstow_figures) room = {.is.size = sizeof room.is};
    MARKED(&room);
    MUST(memstow_owner_figures_(owner, &room.is) == 0 && room.is.size == sizeof room.is);
    MUST(room.is.kind == MEMSTOW_MODEL && room.is.policy == MEMSTOW_STOW && room.is.live_bytes == BYTES);
    MUST(room.is.stowed_bytes == 0);
    untouched(room.behind);
    room.is.size = 8; /* only the kind */
    room.is.policy = 77;
    MUST(memstow_owner_figures_(owner, &room.is) == 0 && room.is.kind == MEMSTOW_MODEL && room.is.policy == 77);
}

static void decisions(uint32_t owner) {
    FIND(memstow_trigger_begin);
    FIND(memstow_trigger_end);
    ROOM(struct memstow_decision) room;
    MARKED(&room);
    MUST(memstow_trigger_begin_(MEMSTOW_REQUEST, "old", 0, &room.is, 1, sizeof room.is) == 1);
    MUST(room.is.owner == owner && room.is.policy == MEMSTOW_STOW && room.is.live_bytes == BYTES);
    untouched(room.behind);
    MUST(memstow_trigger_end_() >= 0);
}

static void requests(void) {
    FIND(memstow_request_next);
    FIND(memstow_request_done);
    ROOM(struct memstow_request) room = {.is.size = sizeof room.is};
    MARKED(&room);
    MUST(memstow_request_next_(&room.is, 0) == 0 && room.is.size == sizeof room.is);
    untouched(room.behind);
    room.is.size = offsetof(struct memstow_request, needed); /* the least size that is taken */
    memset(&room.is.needed, MARK, sizeof room.is.needed);
    MUST(memstow_request_next_(&room.is, 0) == 0 && room.is.needed == 0x5a5a5a5a5a5a5a5a);
    room.is.size = offsetof(struct memstow_request, needed) - 1;
    MUST(memstow_request_next_(&room.is, 0) == -EINVAL);
    MUST(memstow_request_done_(1, 0, "") == -ENOENT);
}

static void scopes(uint32_t owner) {
    FIND(memstow_scope_save);
    ROOM(struct memstow_scopes) room = {.is.size = sizeof room.is};
    MARKED(&room);
    MUST(memstow_scope_save_(&room.is) == 0 && room.is.count == 1 && room.is.owners[0] == owner);
    untouched(room.behind);
}

int main(void) {
    FIND(memstow_abi_version);
    FIND(memstow_is_tracking);
    FIND(memstow_owner_open);
    FIND(memstow_owner_policy);
    FIND(memstow_scope_enter);
    FIND(memstow_scope_leave);
    FIND(memstow_peak);
    if (memstow_abi_version_) {
        MUST(memstow_abi_version_() >> 16 == 1 && memstow_abi_version_() > MEMSTOW_ABI_VERSION);
        MUST(memstow_is_tracking_() == 1);
        uint32_t owner = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "model", "", 0, 0);
        MUST(memstow_owner_policy_(owner, MEMSTOW_STOW, 0) == 0 && memstow_scope_enter_(owner) == 0);
        char *p = malloc(BYTES);
        MUST(p);
        scopes(owner);
        MUST(memstow_scope_leave_(owner) == 0);
        figures(owner);
        decisions(owner);
        requests();
        MUST(memstow_peak_(0) > 0);
        free(p);
    }
    say("ok");
    return 0;
}
