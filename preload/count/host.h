/* host.h — blocks of the malloc family, as seen from outside of the hooks (hook_host.c).
 * In: an address that the program says is a block's, or in a large one. Out: what its header says. Reading what may be
 * no memory is safe. The caller knows that nobody frees the block meanwhile. */
#ifndef MEMSTOW_HOST_H
#define MEMSTOW_HOST_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct host_block {
    uintptr_t start;
    uint64_t size; /* as the program asked */
    uint32_t site;
    bool parts; /* some are counted elsewhere (parts.h) */
};

/* False: it is no block that is counted. */
bool host_find(uintptr_t address, struct host_block *out);
/* The same of a block that begins at the address: no table is searched. */
bool host_find_start(uintptr_t address, struct host_block *out);
/* Writes site and parts to its header, or where it is listed. */
void host_change(const struct host_block *block);

#pragma GCC visibility pop

#endif
