/* cuda_route.c — see cuda_route.h. The loaded objects are searched when a caller calls an entry for the first
 * time, and again after something was unloaded. */
#include "preload/cuda/cuda_route.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/stacks/generation.h"

#define ENTRY(side_, name_, base_, since_, per_thread_, ...)                                                           \
    {.name = #name_, .base = base_, .since = since_, .side = CUDA_##side_, .per_thread = per_thread_},
#define RESOLVER ENTRY
const struct cuda_entry cuda_entries[CUDA_ENTRIES] = {
#include "preload/cuda/cuda_table.h"
};

static const cuda_hooks *all_hooks;
/* The function that each hook calls, by entry and slot: an entry has a hook in each slot (cuda_route.h). Slot 0 is not
 * used here, because its function depends on the caller. */
static void *reals[CUDA_ENTRIES][CUDA_SLOTS];

void cuda_route_begin(const cuda_hooks *hooks) { all_hooks = hooks; }

/* --- from the name of an entry to the entry --- */

enum { NAME_SLOTS = 512 }; /* a power of two, well above the number of entries */
_Static_assert(CUDA_ENTRIES < NAME_SLOTS / 3, "names are found at once");

/* A hash table of the entries' names. A slot holds 1 + the entry's index, or 0 if the slot is empty. `by_name` is NULL
 * until the first look-up. Other threads see the table complete or not at all, and it never changes. */
static const uint16_t *by_name;

static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

/* Makes the table `by_name`. Several threads, or a signal handler, may do this at once. Each makes a table, and the
 * first complete one is used by all. Returns NULL if there is no memory. */
static const uint16_t *make_names(void) {
    const uint16_t *none = NULL;
    uint16_t *made = arena_take(NAME_SLOTS * sizeof *made);
    if (!made) return NULL;
    for (uint32_t entry = 0; entry < CUDA_ENTRIES; entry++) {
        uint32_t slot = hash_of(cuda_entries[entry].name) % NAME_SLOTS;
        while (made[slot]) slot = (slot + 1) % NAME_SLOTS;
        made[slot] = (uint16_t)(entry + 1);
    }
    return __atomic_compare_exchange_n(&by_name, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? made : none;
}

static int named_without_table(const char *name) {
    for (int entry = 0; entry < CUDA_ENTRIES; entry++)
        if (!strcmp(cuda_entries[entry].name, name)) return entry;
    return -1;
}

int cuda_route_named(const char *name) {
    const uint16_t *names = __atomic_load_n(&by_name, __ATOMIC_ACQUIRE);
    if (unlikely(!names) && !(names = make_names())) return named_without_table(name);
    for (uint32_t slot = hash_of(name) % NAME_SLOTS; names[slot]; slot = (slot + 1) % NAME_SLOTS)
        if (!strcmp(cuda_entries[names[slot] - 1].name, name)) return names[slot] - 1;
    return -1;
}

/* The answer is the newest version of the entry that is not newer than the requested version. This version may exist
 * twice: once for the usual default stream, and once for the thread's own default stream. The flags say which of the
 * two streams is asked for. */
int cuda_route_meant(const char *base, int version, uint64_t flags) {
    int best = -1;
    for (int i = 0; i < CUDA_ENTRIES; i++) {
        const struct cuda_entry *entry = &cuda_entries[i], *than = best < 0 ? NULL : &cuda_entries[best];
        if (!entry->base[0] || strcmp(entry->base, base) != 0 || (int)entry->since > version) continue;
        if (entry->per_thread && !(flags & CUDA_FLAG_PER_THREAD_STREAM)) continue;
        if (!than || entry->since > than->since || (entry->since == than->since && entry->per_thread)) best = i;
    }
    return best;
}

/* Lists for cuda_route_is_unknown_memory. tests/real/cuda_names compares them with NVIDIA's headers.
 * - `memory`: beginnings of the names of functions that concern memory, captures or binding.
 * - `families`: beginnings of the names of those among them that neither allocate, free nor bind memory.
 * - `harmless`: more functions that do none of this. The list has their whole names, without a suffix such as _v2, so
 *   that a new function whose name begins like one of these does not count as harmless. */
static const char *const harmless[] = {
    "cuArray3DGetDescriptor",
    "cuArrayGetDescriptor",
    "cuArrayGetMemoryRequirements",
    "cuArrayGetPlane",
    "cuArrayGetSparseProperties",
    "cuIpcGetEventHandle",
    "cuIpcOpenEventHandle",
    "cuMemAdvise",
    "cuMemBatchDecompressAsync",
    "cuMemDiscardAndPrefetchBatchAsync",
    "cuMemDiscardBatchAsync",
    "cuMemGetAccess",
    "cuMemGetAddressRange", /* CUDA 2's version, as cuMemGetInfo below; cuda_table.h has the later versions of both */
    "cuMemGetAllocationGranularity",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuMemGetDefaultMemPool",
    "cuMemGetInfo",
    "cuMemGetLocationInfo",
    "cuMemGetMemPool",
    "cuMemHostGetDevicePointer",
    "cuMemHostGetFlags",
    "cuMemMapArrayAsync",
    "cuMemPoolExportToShareableHandle",
    "cuMemPoolGetAccess",
    "cuMemPoolImportFromShareableHandle",
    "cuMemPrefetchAsync",
    "cuMemPrefetchBatchAsync",
    "cuMemRangeGetAttribute",
    "cuMemRangeGetAttributes",
    "cuMemSetAccess",
    "cuMemSetMemPool",
    "cuMipmappedArrayGetLevel",
    "cuMipmappedArrayGetMemoryRequirements",
    "cuMipmappedArrayGetSparseProperties",
    "cuMulticastAddDevice",
    "cuMulticastGetGranularity",
    "cuMulticastUnbind",
};
static const char *const families[] = {"cuMemcpy", "cuMemset"};
static const char *const memory[] = {
    "cuMem",
    "cuArray",
    "cuMipmappedArray",
    "cuStreamBegin",
    "cuStreamEnd",
    "cuMulticast",
    "cuLogicalEndpointBind",
    "cuIpc",
    "cuGraphAddMemAlloc",
    "cuGraphAddNode",
};

static bool cuda_route_begins(const char *name, const char *const *with, size_t count) {
    size_t i = 0;
    while (i < count && strncmp(name, with[i], strlen(with[i])) != 0) i++;
    return i < count;
}

/* Whether the text is what CUDA appends to the name of a function: _v2, _ptds, _ptsz, _v2_ptsz, or nothing. */
static bool is_suffix(const char *text) {
    if (text[0] == '_' && text[1] == 'v' && text[2] >= '0' && text[2] <= '9') text += 3;
    return !*text || !strcmp(text, "_ptds") || !strcmp(text, "_ptsz");
}

static bool is_harmless(const char *name) {
    for (size_t i = 0, length; i < sizeof harmless / sizeof *harmless; i++)
        if (!strncmp(name, harmless[i], length = strlen(harmless[i])) && is_suffix(name + length)) return true;
    return cuda_route_begins(name, families, sizeof families / sizeof *families);
}

bool cuda_route_is_unknown_memory(const char *name) {
    return cuda_route_begins(name, memory, sizeof memory / sizeof *memory) && !is_harmless(name);
}

/* --- kinds of loaded objects, by the names of their files --- */

static bool has_prefix(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

/* Only comfy-aimdo is exempt: it overwrites the first bytes of the driver's functions with jumps, so it must find the
 * driver's functions and not our hooks. */
bool cuda_route_is_exempt(uintptr_t code) { return has_prefix(cuda_scope_file(cuda_scope_object(code)), "aimdo"); }

bool cuda_route_is_library(uintptr_t code) {
    static const char *const prefixes[] = {"libcublas", "libcudnn",    "libcufft", "libcusolver", "libcusparse",
                                           "libcurand", "libcutensor", "libnccl",  "libnvshmem",  "libnvjpeg"};
    const char *file = cuda_scope_file(cuda_scope_object(code));
    size_t i = 0, count = sizeof prefixes / sizeof *prefixes;
    while (i < count && !has_prefix(file, prefixes[i])) i++;
    return i < count;
}

bool cuda_route_has_exempt(void) { return cuda_scope_any("vbar_allocate", NULL) != NULL; }

bool cuda_route_is_driver(uintptr_t code) {
    const char *file = cuda_scope_file(cuda_scope_object(code));
    return has_prefix(file, "libcuda.so") || has_prefix(file, "libnvidia-") || has_prefix(file, "libcudart") ||
           has_prefix(file, "libnvcuvid");
}

/* --- the function that an exported hook calls --- */

/* A binding remembers which function was found for a caller. So a caller stays bound to the same library, whatever is
 * loaded later. After code was unloaded, everything is looked up again. `sequence` is odd while an entry is written,
 * and changes with each write. */
enum { FIRST_BINDINGS = 256, BINDING_REACH = 4, BINDING_LEVELS = 5 };
static struct binding {
    uint32_t sequence, generation; /* generation: the generation of the loaded code, plus 1; 0: the entry is empty */
    uintptr_t caller;
    void *real;
    const char *name; /* compared by address, not by its text */
} first_bindings[FIRST_BINDINGS];

/* The further levels of the table. They are needed because a program with a compiler (Triton) has thousands of callers.
 * If the slots for a caller are taken in one level, the binding goes into the next level, which is four times as
 * large. */
static struct binding *more_bindings[BINDING_LEVELS];

static struct binding *bindings_of(uint32_t level) {
    return level ? __atomic_load_n(&more_bindings[level], __ATOMIC_ACQUIRE) : first_bindings;
}

/* Makes a level of the table of bindings. Several threads may do this at once. The first complete level is used by
 * all. */
static struct binding *make_bindings(uint32_t level) {
    struct binding *none = NULL, *made = arena_take(((size_t)FIRST_BINDINGS << 2 * level) * sizeof *made);
    if (!made) return NULL;
    return __atomic_compare_exchange_n(&more_bindings[level], &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
               ? made
               : none;
}

static uint64_t binding_slot(const struct binding *like, uint32_t level, uint32_t step) {
    uint64_t hash = (like->caller ^ (uintptr_t)like->name << 32) * 0x9E3779B97F4A7C15u >> 40;
    return (hash + step) & (((uint64_t)FIRST_BINDINGS << 2 * level) - 1);
}

static bool is_bound(const struct binding *at, const struct binding *like, void **real) {
    uint32_t sequence = __atomic_load_n(&at->sequence, __ATOMIC_ACQUIRE);
    bool same = __atomic_load_n(&at->generation, __ATOMIC_RELAXED) == like->generation &&
                __atomic_load_n(&at->caller, __ATOMIC_RELAXED) == like->caller &&
                __atomic_load_n(&at->name, __ATOMIC_RELAXED) == like->name;
    *real = __atomic_load_n(&at->real, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return same && !(sequence & 1) && os_load32(&at->sequence) == sequence;
}

static bool find_binding(struct binding *self) {
    const struct binding *all;
    for (uint32_t level = 0; level < BINDING_LEVELS && (all = bindings_of(level)); level++)
        for (uint32_t step = 0; step < BINDING_REACH; step++)
            if (likely(is_bound(&all[binding_slot(self, level, step)], self, &self->real))) return true;
    return false;
}

/* Returns an entry that is empty, or was written before code was last unloaded. If there is none, the new binding
 * replaces an entry of the first level. */
static struct binding *slot_for_binding(const struct binding *is) {
    struct binding *all;
    for (uint32_t level = 0; level < BINDING_LEVELS; level++) {
        if (!(all = bindings_of(level)) && !(all = make_bindings(level))) break;
        for (uint32_t step = 0; step < BINDING_REACH; step++) {
            struct binding *at = &all[binding_slot(is, level, step)];
            if (os_load32(&at->generation) != is->generation) return at;
        }
    }
    return &first_bindings[binding_slot(is, 0, 0)];
}

static void cuda_route_remember(const struct binding *is) {
    struct binding *to = slot_for_binding(is);
    uint32_t sequence = os_load32(&to->sequence);
    if (sequence & 1 ||
        !__atomic_compare_exchange_n(&to->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&to->generation, is->generation, __ATOMIC_RELAXED);
    __atomic_store_n(&to->caller, is->caller, __ATOMIC_RELAXED);
    __atomic_store_n(&to->real, is->real, __ATOMIC_RELAXED);
    __atomic_store_n(&to->name, is->name, __ATOMIC_RELAXED);
    __atomic_store_n(&to->sequence, sequence + 2, __ATOMIC_RELEASE);
}

/* If several libraries have the function, the answer is the function of the library that the caller is linked to.
 * Without such a library, it is the function of the library that was loaded first. */
static void *look_for(const char *name, uintptr_t caller) {
    uint32_t count;
    void *first = cuda_scope_any(name, &count), *linked = count > 1 ? cuda_scope_linked(name, caller) : NULL;
    return linked ? linked : first;
}

/* The generation is read before the look-up. So if code is unloaded during the look-up, the binding has an old
 * generation, and later calls do not use it. */
void *cuda_route_bound(const char *name, uintptr_t caller) {
    uint32_t generation = __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE) + 1;
    struct binding binding = {.generation = generation, .caller = caller, .name = name};
    if (likely(find_binding(&binding))) return binding.real;
    binding.real = look_for(name, caller);
    if (binding.real) cuda_route_remember(&binding);
    return binding.real;
}

void *cuda_route_real(enum cuda_entry_id entry, uint32_t slot, uintptr_t caller) {
    if (slot) return __atomic_load_n(&reals[entry][slot], __ATOMIC_ACQUIRE);
    return cuda_route_bound(cuda_entries[entry].name, caller);
}

/* --- hooks for addresses that were returned at run time: slots 1 and above --- */

/* Makes the hook in the slot call `real`. Returns false if the hook calls another function already, and the library of
 * that function is still loaded. */
static bool take_slot(enum cuda_entry_id entry, uint32_t slot, void *real) {
    void *seen = __atomic_load_n(&reals[entry][slot], __ATOMIC_ACQUIRE);
    if (seen == real) return true;
    if (seen && cuda_scope_object((uintptr_t)seen)) return false;
    return __atomic_compare_exchange_n(&reals[entry][slot], &seen, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
           seen == real;
}

static bool is_only_one(enum cuda_entry_id entry, const void *real) {
    uint32_t count;
    return cuda_scope_any(cuda_entries[entry].name, &count) == real && count == 1;
}

void *cuda_route_hook(enum cuda_entry_id entry, void *real) {
    if (!real || cuda_scope_is_ours(real) || !all_hooks) return real;
    if (is_only_one(entry, real)) return all_hooks[entry][0];
    for (uint32_t slot = 1; slot < CUDA_SLOTS; slot++)
        if (take_slot(entry, slot, real)) return all_hooks[entry][slot];
    ledger_lost(SNAP_LOST_CUDA);
    return real;
}

bool cuda_route_is_hook(const void *address) { return cuda_scope_is_ours(address); }

void *cuda_route_without_hook(void *address) {
    for (uint32_t entry = 0; all_hooks && cuda_scope_is_ours(address) && entry < CUDA_ENTRIES; entry++)
        for (uint32_t slot = 0; slot < CUDA_SLOTS; slot++)
            if (all_hooks[entry][slot] == address) return cuda_route_real((enum cuda_entry_id)entry, slot, 0);
    return address;
}
