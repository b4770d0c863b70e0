/* _host.c — stands for hook_host.c in the library for sanitizers, which has no hooks of malloc: a sanitizer has its
 * own. No block of the host's is known there. */
#include "preload/blocks/host.h"

bool host_find(uintptr_t address, struct host_block *out) {
    (void)address, (void)out;
    return false;
}

bool host_find_start(uintptr_t address, struct host_block *out) { return host_find(address, out); }

void host_change(const struct host_block *block) { (void)block; }
