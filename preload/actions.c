/* actions.c — see actions.h: weak definitions, for a build in which moving and triggers are not there yet. */
#include "actions.h"

#include <errno.h>

#include "memstow.h"
#include "owners.h"

#define WEAK __attribute__((weak))
#define EXPORT WEAK __attribute__((visibility("default")))

EXPORT int64_t memstow_trigger(uint32_t reason, const char *text) {
    (void)reason, (void)text;
    return 0;
}

WEAK int64_t owners_stow(uint32_t owner) { return owners_kind(owner) ? 0 : -ENOENT; }
WEAK int64_t owners_restore(uint32_t owner) { return owners_kind(owner) ? 0 : -ENOENT; }
WEAK int64_t owners_release(uint32_t owner) { return owners_kind(owner) ? 0 : -ENOENT; }
WEAK uint64_t owners_moved(void) { return 0; }
WEAK void owners_cancel(void) {}
WEAK bool trigger_polls(void) { return false; }
WEAK uint32_t trigger_poll(uint64_t now_ns, bool (*ask)(uint32_t reason, const char *text, uint64_t needed)) {
    (void)now_ns, (void)ask;
    return 0;
}
