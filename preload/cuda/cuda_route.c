/* cuda_route.c — see cuda_route.h. The loaded objects are gone through when an entry is called from a place for the
 * first time, and again after one was unloaded. */
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
static void *reals[CUDA_ENTRIES][CUDA_SLOTS]; /* but for the first slot, which is bound by its callers */

void cuda_route_begin(const cuda_hooks *hooks) { all_hooks = hooks; }

/* --- names --- */

enum { NAME_SLOTS = 512 }; /* a power of two, well above the number of entries */
_Static_assert(CUDA_ENTRIES < NAME_SLOTS / 3, "names are found at once");

/* 1 + entry. NULL until the first look-up has made it: never seen but whole, and never changed. */
static const uint16_t *by_name;

static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

/* Threads, and a signal handler, may be here at the same time: each makes a table of its own, and the first one that is
 * done is everybody's. */
static const uint16_t *make_names(void) {
    const uint16_t *none = NULL;
    uint16_t *made = arena_take(NAME_SLOTS * sizeof *made);
    if (!made) return NULL;
    for (uint16_t entry = 0; entry < CUDA_ENTRIES; entry++) {
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

/* Of several versions the newest that is not newer than what is asked for; of the two kinds of default stream the
 * thread's own where that is asked for, and where there is one. */
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

/* Those that have to do with memory, and neither make nor end any. */
bool cuda_route_is_unknown_memory(const char *name) {
    static const char *const harmless[] = {
        "cuMemcpy",        "cuMemset",     "cuMemGet",     "cuMemSet",      "cuMemHostGet",    "cuMemPrefetch",
        "cuMemAdvise",     "cuMemRange",   "cuMemPoolGet", "cuMemPoolSet",  "cuMemPoolTrimTo", "cuMemPoolExport",
        "cuMemPoolImport", "cuMemDiscard", "cuMemBatch",   "cuMemMapArray", "cuArrayGet",      "cuMipmappedArrayGet",
        "cuArray3DGet",
    };
    static const char *const memory[] = {"cuMem", "cuArray", "cuMipmappedArray"};
    bool is_memory = false;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (!strncmp(name, harmless[i], strlen(harmless[i]))) return false;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        is_memory |= !strncmp(name, memory[i], strlen(memory[i]));
    return is_memory;
}

/* --- objects --- */

static bool has_prefix(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

/* comfy-aimdo writes jumps over the first bytes of the driver's functions, and must find those. */
bool cuda_route_is_exempt(uintptr_t code) { return has_prefix(cuda_scope_file(cuda_scope_object(code)), "aimdo"); }

bool cuda_route_has_exempt(void) { return cuda_scope_any("vbar_allocate", NULL) != NULL; }

bool cuda_route_is_driver(uintptr_t code) {
    const char *file = cuda_scope_file(cuda_scope_object(code));
    return has_prefix(file, "libcuda.so") || has_prefix(file, "libnvidia-") || has_prefix(file, "libcudart") ||
           has_prefix(file, "libnvcuvid");
}

/* --- what the exported hooks call --- */

/* What was found for a call is remembered: a caller keeps the library that it is bound to, whatever is loaded later.
 * When something was unloaded, nothing holds that was found before. `sequence` is odd while one is written, and changes
 * when it is. */
enum { BINDINGS = 256, BINDING_REACH = 4 };
static struct binding {
    uint32_t sequence, generation; /* of the code that is loaded, plus 1; 0: empty */
    uintptr_t caller;
    void *real;
    uint64_t entry;
} bindings[BINDINGS];

static struct binding *binding_at(const struct binding *like, uint32_t step) {
    uint64_t hash = (like->caller ^ like->entry << 32) * 0x9E3779B97F4A7C15u >> 40;
    return &bindings[(hash + step) % BINDINGS];
}

static bool is_bound(const struct binding *at, const struct binding *like, void **real) {
    uint32_t sequence = __atomic_load_n(&at->sequence, __ATOMIC_ACQUIRE);
    bool same = __atomic_load_n(&at->generation, __ATOMIC_RELAXED) == like->generation &&
                __atomic_load_n(&at->caller, __ATOMIC_RELAXED) == like->caller && os_load(&at->entry) == like->entry;
    *real = __atomic_load_n(&at->real, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return same && !(sequence & 1) && os_load32(&at->sequence) == sequence;
}

static void remember(const struct binding *is) {
    struct binding *to = binding_at(is, 0);
    for (uint32_t step = 1; step < BINDING_REACH && os_load32(&to->generation) == is->generation; step++)
        to = binding_at(is, step);
    uint32_t sequence = os_load32(&to->sequence);
    if (sequence & 1 ||
        !__atomic_compare_exchange_n(&to->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&to->generation, is->generation, __ATOMIC_RELAXED);
    __atomic_store_n(&to->caller, is->caller, __ATOMIC_RELAXED);
    __atomic_store_n(&to->real, is->real, __ATOMIC_RELAXED);
    os_store(&to->entry, is->entry);
    __atomic_store_n(&to->sequence, sequence + 2, __ATOMIC_RELEASE);
}

/* Of several libraries the caller's own; else that which was loaded first. */
static void *look_for(enum cuda_entry_id entry, uintptr_t caller) {
    const char *name = cuda_entries[entry].name;
    uint32_t count;
    void *first = cuda_scope_any(name, &count), *linked = count > 1 ? cuda_scope_linked(name, caller) : NULL;
    return linked ? linked : first;
}

/* The generation is read before: what is unloaded meanwhile makes the binding one that does not hold. */
void *cuda_route_real(enum cuda_entry_id entry, uint32_t slot, uintptr_t caller) {
    if (slot) return __atomic_load_n(&reals[entry][slot], __ATOMIC_ACQUIRE);
    uint32_t generation = __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE) + 1;
    struct binding binding = {.generation = generation, .caller = caller, .entry = entry};
    for (uint32_t step = 0; step < BINDING_REACH; step++)
        if (likely(is_bound(binding_at(&binding, step), &binding, &binding.real))) return binding.real;
    binding.real = look_for(entry, caller);
    if (binding.real) remember(&binding);
    return binding.real;
}

/* --- slots --- */

/* A slot whose function went with its library may be another's. */
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
