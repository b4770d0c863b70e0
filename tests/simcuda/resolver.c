/* resolver.c — cuGetProcAddress in both generations. In: a name, a version of CUDA, flags. Out: the address of the
 * newest entry that is not newer than that version. As in the real driver, this is the address of the entry itself, not
 * that of the exported symbol, which jumps to the entry (thunks.S). */
#include "sim.h"

#include <string.h>

#define E(name, symbol, since, per_thread)                                                                             \
    extern const char entry_##symbol[] __asm__("sim_" #symbol) __attribute__((visibility("hidden")));
#include "entries.def"

static const struct entry {
    const char *name;
    const void *address;
    int since, per_thread;
} ENTRIES[] = {
#define E(name, symbol, since, per_thread) {#name, entry_##symbol, since, per_thread},
#include "entries.def"
};

static const struct entry *find(const char *name, int version, bool per_thread, bool *known) {
    const struct entry *best = NULL;
    *known = false;
    for (const struct entry *at = ENTRIES; at < ENTRIES + sizeof ENTRIES / sizeof *ENTRIES; at++) {
        if (strcmp(at->name, name) || at->since > sim_config.version || (at->per_thread && !per_thread)) continue;
        *known = true;
        if (at->since > version) continue;
        if (!best || at->since > best->since || (at->since == best->since && at->per_thread))
            best = at;
        else if (at->per_thread && !best->per_thread)
            best = at;
    }
    return best;
}

static CUresult resolve(const char *name, void **out, int version, uint64_t flags, int *status) {
    bool known;
    if (!name || !out || version > sim_config.version || flags & ~3ull) return CUDA_ERROR_INVALID_VALUE;
    const struct entry *entry = find(name, version, flags & CU_GET_PROC_PER_THREAD, &known);
    int said = entry ? CU_PROC_FOUND : known ? CU_PROC_VERSION_NOT_SUFFICIENT : CU_PROC_NOT_FOUND;
    journal_request(name, version, flags, said);
    *out = entry ? (void *)(uintptr_t)entry->address : NULL;
    if (status) *status = said;
    return CUDA_SUCCESS;
}

/* The first cuGetProcAddress has no parameter `status`. If it finds no entry, its result says so. */
static CUresult resolve_or_fail(const char *name, void **out, int version, uint64_t flags) {
    CUresult result = resolve(name, out, version, flags, NULL);
    return result || *out ? result : CUDA_ERROR_NOT_FOUND;
}

SAME(cuGetProcAddress, IN_CALLBACK, (const char *name, void **out, int version, uint64_t flags),
     resolve_or_fail(name, out, version, flags))
SAME(cuGetProcAddress_v2, IN_CALLBACK, (const char *name, void **out, int version, uint64_t flags, int *status),
     resolve(name, out, version, flags, status))
