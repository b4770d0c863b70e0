/* cuda_route.h — from an entry point's name to the function that serves it, and from there to our hook.
 * In: what the loader, dlsym and CUDA's own resolvers would have answered. Out: a hook that calls exactly that, or the
 * answer as it was where memstow has none. No library of CUDA is ever loaded or kept loaded by us.
 *
 * An entry has CUDA_SLOTS hooks that differ in what they call. The first is the exported one, for callers that the
 * loader bound to it: it calls what the process would have found without us. The others are for addresses that were
 * handed out at run time: of a second CUDA runtime, or of a driver whose resolver has other entries than its symbols.
 */
#ifndef MEMSTOW_CUDA_ROUTE_H
#define MEMSTOW_CUDA_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

enum cuda_side { CUDA_RUNTIME, CUDA_DRIVER };
enum { CUDA_SLOTS = 3 };

#define ENTRY(side, name, ...) CUDA_ENTRY_##name,
#define RESOLVER(side, name, ...) CUDA_ENTRY_##name,
enum cuda_entry_id {
#include "preload/cuda/cuda_table.h"
    CUDA_ENTRIES
};

struct cuda_entry {
    const char *name, *base;
    uint32_t since;
    uint8_t side, per_thread;
};
extern const struct cuda_entry cuda_entries[CUDA_ENTRIES];
enum { CUDA_VERSION_KNOWN = 13050 }; /* of the newest headers that the table was compared with */

/* The entry of this name, -1: none. */
int cuda_route_named(const char *name);
/* The entry that a resolver means by a base name, a version and its flags, -1: none. */
int cuda_route_meant(const char *base, int version, uint64_t flags);

/* Whether a base name is one that memory may come from which memstow does not know. */
bool cuda_route_is_unknown_memory(const char *name);

/* The hooks, from hook_cuda.c: hooks[entry][slot]. */
typedef void *const cuda_hooks[CUDA_SLOTS];
void cuda_route_begin(const cuda_hooks *hooks);

/* The function that the hook in this slot calls for a caller; NULL: there is none in the process. */
void *cuda_route_real(enum cuda_entry_id entry, uint32_t slot, uintptr_t caller);
/* The hook that calls `real`: it is one itself, or one of the entry's. `real` when all are taken. */
void *cuda_route_hook(enum cuda_entry_id entry, void *real);

bool cuda_route_is_hook(const void *address);
/* What a hook calls; anything else as it is. */
void *cuda_route_without_hook(void *address);

/* Whether the code at an address is exempt: it is handed no hooks. Whether it is the driver's, whose mappings are not
 * the program's. */
bool cuda_route_is_exempt(uintptr_t code);
bool cuda_route_is_driver(uintptr_t code);
/* Whether there is code that is exempt: what it tells devices of, nobody sees. */
bool cuda_route_has_exempt(void);

#pragma GCC visibility pop

#endif
