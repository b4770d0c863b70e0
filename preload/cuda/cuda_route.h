/* cuda_route.h — finds the function of CUDA that a name stands for, and the hook of ours that calls this function.
 * In: the addresses that the loader, dlsym and CUDA's own resolvers return. Out: a hook that calls the function at such
 * an address, or the same address if memstow has no hook for it. It never loads a library of CUDA, and never keeps one
 * loaded.
 *
 * An entry (a line of cuda_table.h) has CUDA_SLOTS hooks, which call different functions. The first hook is exported,
 * for callers that the loader bound to it: it calls the function that the process would have found without memstow. The
 * other hooks are for other functions of the same name, whose addresses were returned at run time: the function of a
 * second CUDA runtime, or one that the driver's resolver returns and that is not the one that the driver exports. */
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

/* A line of cuda_table.h, which explains the fields. */
struct cuda_entry {
    const char *name, *base;
    uint32_t since;
    uint8_t side, per_thread;
};
extern const struct cuda_entry cuda_entries[CUDA_ENTRIES];
enum { CUDA_VERSION_KNOWN = 13050 }; /* the newest headers with which the table was compared */

/* The entry with this name; -1: there is none. */
int cuda_route_named(const char *name);
/* Returns the entry that a resolver means by a base name, a version and flags, or -1 if there is no such entry. */
int cuda_route_meant(const char *base, int version, uint64_t flags);

/* Whether the driver function with this base name may give memory in a way that memstow does not know. */
bool cuda_route_is_unknown_memory(const char *name);

/* The hooks, from hook_cuda.c: hooks[entry][slot]. */
typedef void *const cuda_hooks[CUDA_SLOTS];
void cuda_route_begin(const cuda_hooks *hooks);

/* Returns the function that the hook in this slot must call when `caller` has called the hook, or NULL if the process
 * has no such function. */
void *cuda_route_real(enum cuda_entry_id entry, uint32_t slot, uintptr_t caller);
/* Does the same as cuda_route_real for any function, by its name. All calls for one name must pass the same pointer,
 * because the pointers are compared, not the texts. */
void *cuda_route_bound(const char *name, uintptr_t caller);
/* The hook that calls `real`. If `real` is itself a hook, or if all slots are taken, `real` is the answer. */
void *cuda_route_hook(enum cuda_entry_id entry, void *real);

/* Whether an address is in memstow's own code, as all hooks are. */
bool cuda_route_is_hook(const void *address);
/* The function behind a hook; any other address is returned unchanged. */
void *cuda_route_without_hook(void *address);

/* Whether the code at an address gets no hooks. */
bool cuda_route_is_exempt(uintptr_t code);
/* Whether the code at an address belongs to the driver. The driver's mappings do not count as the program's. */
bool cuda_route_is_driver(uintptr_t code);
/* Whether the code at an address belongs to a library such as cuBLAS or cuDNN, whose memory serves all that call it. */
bool cuda_route_is_library(uintptr_t code);
/* Whether exempt code is loaded: memstow does not see what that code does with devices. */
bool cuda_route_has_exempt(void);

#pragma GCC visibility pop

#endif
