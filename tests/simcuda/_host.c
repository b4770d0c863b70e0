/* _host.c — replaces blocks/host.c in the library for sanitizers. That library has no hooks of malloc, because a
 * sanitizer has its own. So there are no host blocks with memstow's header, and these functions find none. */
#include "preload/blocks/host.h"

bool host_find(uintptr_t address, struct host_block *out) {
    (void)address, (void)out;
    return false;
}

bool host_find_start(uintptr_t address, struct host_block *out) { return host_find(address, out); }

bool host_has_header(const void *p) {
    (void)p;
    return false;
}

void host_change(const struct host_block *block) { (void)block; }
