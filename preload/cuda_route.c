/* cuda_route.c — see cuda_route.h. The loaded objects are gone through only when a name is looked for first, and again
 * after one was unloaded. */
#include "cuda_route.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "ledger.h"
#include "os.h"
#include "site.h"
#include "symbol.h"

#define ENTRY(side_, name_, base_, since_, per_thread_, ...)                                                           \
    {.name = #name_, .base = base_, .since = since_, .side = CUDA_##side_, .per_thread = per_thread_},
#define RESOLVER ENTRY
const struct cuda_entry cuda_entries[CUDA_ENTRIES] = {
#include "cuda_table.h"
};

static const cuda_hooks *all_hooks;
static void *reals[CUDA_ENTRIES][CUDA_SLOTS];
static uint8_t several[CUDA_ENTRIES]; /* libraries that export it */

void cuda_route_begin(const cuda_hooks *hooks) { all_hooks = hooks; }

/* --- names --- */

enum { NAME_SLOTS = 512 }; /* a power of two, well above the number of entries */
_Static_assert(CUDA_ENTRIES < NAME_SLOTS / 3, "names are found at once");

/* Filled once; threads that do it at the same time write the same. */
static uint16_t by_name[NAME_SLOTS]; /* 1 + entry */
static bool names_ready;

static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

static void make_names_ready(void) {
    static uint16_t made[NAME_SLOTS]; /* whoever looks meanwhile finds whole tables only */
    memset(made, 0, sizeof made);
    for (uint16_t entry = 0; entry < CUDA_ENTRIES; entry++) {
        uint32_t slot = hash_of(cuda_entries[entry].name) % NAME_SLOTS;
        while (made[slot]) slot = (slot + 1) % NAME_SLOTS;
        made[slot] = (uint16_t)(entry + 1);
    }
    memcpy(by_name, made, sizeof by_name);
    __atomic_store_n(&names_ready, true, __ATOMIC_RELEASE);
}

int cuda_route_named(const char *name) {
    if (unlikely(!__atomic_load_n(&names_ready, __ATOMIC_ACQUIRE))) make_names_ready();
    for (uint32_t slot = hash_of(name) % NAME_SLOTS; by_name[slot]; slot = (slot + 1) % NAME_SLOTS)
        if (!strcmp(cuda_entries[by_name[slot] - 1].name, name)) return by_name[slot] - 1;
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

static const struct link_map *object_at(uintptr_t address) {
    struct dl_find_object object;
    return _dl_find_object((void *)address, &object) ? NULL : object.dlfo_link_map;
}

static const char *file_of(const struct link_map *object) {
    const char *slash = object && object->l_name ? strrchr(object->l_name, '/') : NULL;
    return slash ? slash + 1 : object && object->l_name ? object->l_name : "";
}

static bool has_prefix(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

static bool is_ours(const void *address) {
    static const struct link_map *own;
    if (unlikely(!own)) own = object_at((uintptr_t)&cuda_route_begin);
    return address && object_at((uintptr_t)address) == own;
}

/* comfy-aimdo writes jumps over the first bytes of the driver's functions, and must find those. */
bool cuda_route_is_exempt(uintptr_t code) { return has_prefix(file_of(object_at(code)), "aimdo"); }

bool cuda_route_is_driver(uintptr_t code) {
    const char *file = file_of(object_at(code));
    return has_prefix(file, "libcuda.so") || has_prefix(file, "libnvidia-") || has_prefix(file, "libcudart") ||
           has_prefix(file, "libnvcuvid");
}

struct search {
    const char *name;
    const struct link_map *wanted; /* the object that a caller depends on; NULL: any */
    void *found;
    uint32_t count;
};

/* Any address of an object leads to its link_map. */
static const struct link_map *link_map_of(const struct dl_phdr_info *info) {
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) return object_at(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static int look_in(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    const struct link_map *object = link_map_of(info);
    if (!object || is_ours((void *)object->l_ld) || (search->wanted && object != search->wanted)) return 0;
    void *found = (void *)symbol_find(object, search->name, NULL);
    if (!found) return 0;
    if (!search->found) search->found = found;
    search->count++;
    return search->wanted != NULL;
}

void *cuda_route_find(const char *name) {
    struct search search = {.name = name};
    dl_iterate_phdr(look_in, &search);
    return search.found;
}

/* --- which of several runtimes a caller means: its own, or the one that it was linked with --- */

static const char *needed_at(const struct link_map *object, uint32_t index) {
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)(entry->d_un.d_ptr < object->l_addr ? object->l_addr + entry->d_un.d_ptr
                                                                        : entry->d_un.d_ptr);
    for (const ElfW(Dyn) *entry = object->l_ld; strings && entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && index-- == 0) return strings + entry->d_un.d_val;
    return NULL;
}

struct dependency {
    const char *file;
    const struct link_map *found;
};

static int is_file(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct dependency *dependency = context;
    const struct link_map *object = link_map_of(info);
    if (object && !strcmp(file_of(object), dependency->file)) dependency->found = object;
    return dependency->found != NULL;
}

static void *find_in(const struct link_map *object, const char *name) {
    struct search search = {.name = name, .wanted = object};
    if (object) dl_iterate_phdr(look_in, &search);
    return search.found;
}

void *cuda_route_linked(const char *name, uintptr_t caller) {
    const struct link_map *object = object_at(caller);
    void *found = object ? find_in(object, name) : NULL;
    for (uint32_t i = 0; object && !found; i++) {
        struct dependency dependency = {.file = needed_at(object, i)};
        if (!dependency.file) break;
        dl_iterate_phdr(is_file, &dependency);
        found = find_in(dependency.found, name);
    }
    return found;
}

/* --- slots --- */

static void *find_first(enum cuda_entry_id entry) {
    struct search search = {.name = cuda_entries[entry].name};
    dl_iterate_phdr(look_in, &search);
    several[entry] = search.count > 1;
    __atomic_store_n(&reals[entry][0], search.found, __ATOMIC_RELEASE);
    return search.found;
}

/* Libraries that are unloaded take their functions with them. */
static void forget_unloaded(void) {
    static uint32_t generation;
    uint32_t now = __atomic_load_n(&site_code_generation, __ATOMIC_ACQUIRE);
    if (likely(now == __atomic_load_n(&generation, __ATOMIC_RELAXED))) return;
    for (uint32_t entry = 0; entry < CUDA_ENTRIES; entry++) __atomic_store_n(&reals[entry][0], NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&generation, now, __ATOMIC_RELAXED);
}

void *cuda_route_real(enum cuda_entry_id entry, uint32_t slot, uintptr_t caller) {
    if (slot) return __atomic_load_n(&reals[entry][slot], __ATOMIC_ACQUIRE);
    forget_unloaded();
    void *real = __atomic_load_n(&reals[entry][0], __ATOMIC_ACQUIRE);
    if (unlikely(!real)) real = find_first(entry);
    void *linked = unlikely(several[entry]) ? cuda_route_linked(cuda_entries[entry].name, caller) : NULL;
    return linked ? linked : real;
}

/* A slot whose function went with its library may be another's. */
static bool take_slot(enum cuda_entry_id entry, uint32_t slot, void *real) {
    void *seen = __atomic_load_n(&reals[entry][slot], __ATOMIC_ACQUIRE);
    if (seen == real) return true;
    if (seen && object_at((uintptr_t)seen)) return false;
    return __atomic_compare_exchange_n(&reals[entry][slot], &seen, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
           seen == real;
}

void *cuda_route_hook(enum cuda_entry_id entry, void *real) {
    if (!real || is_ours(real) || !all_hooks) return real;
    if (cuda_route_real(entry, 0, 0) == real && !several[entry]) return all_hooks[entry][0];
    for (uint32_t slot = 1; slot < CUDA_SLOTS; slot++)
        if (take_slot(entry, slot, real)) return all_hooks[entry][slot];
    ledger_lost(SNAP_LOST_CUDA);
    return real;
}

bool cuda_route_is_hook(const void *address) { return is_ours(address); }

void *cuda_route_without_hook(void *address) {
    for (uint32_t entry = 0; all_hooks && is_ours(address) && entry < CUDA_ENTRIES; entry++)
        for (uint32_t slot = 0; slot < CUDA_SLOTS; slot++)
            if (all_hooks[entry][slot] == address) return cuda_route_real((enum cuda_entry_id)entry, slot, 0);
    return address;
}
