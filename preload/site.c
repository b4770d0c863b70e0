/* site.c — see site.h. Modules are found by the loader's lock-free _dl_find_object, and compared by path, so that
 * one that is unloaded and loaded again keeps its id. Two threads that see a module first at the same moment may
 * both record it; readers join records of one path. */
#include "site.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "ledger.h"

uint32_t site_code_generation;

static const char *program_path = "";

static struct series modules = {
    .type = SNAP_MODULE, .record_size = sizeof(struct snap_module), .first_capacity = 128, .limit = 1 << 16};
static struct series tags = {
    .type = SNAP_TAG, .record_size = sizeof(struct snap_tag), .first_capacity = 64, .limit = 1 << 20};
static struct series sites = {
    .type = SNAP_SITE, .record_size = sizeof(struct snap_site), .first_capacity = 512, .limit = 1 << 21};
static struct series peaks = {
    .type = SNAP_PEAK, .record_size = sizeof(struct snap_peak), .first_capacity = 512, .limit = 1 << 21};

/* Site of (tag 0, module), by module id + 1; 0: none yet. */
static uint32_t site_of_module[(1 << 16) + 1];
/* What a module id was given for, to find it again without reading strings in the ledger. */
static struct module_key {
    uintptr_t start, end;
    uint64_t path_hash;
} keys[1 << 16];

static uint64_t hash_text(const char *text) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++) h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

static void copy_build_id(struct snap_module *module, const char *note, size_t length) {
    size_t at = 0;
    while (at + sizeof(Elf64_Nhdr) <= length) {
        const Elf64_Nhdr *n = (const void *)(note + at);
        size_t name = at + sizeof *n, desc = name + os_round_up(n->n_namesz, 4);
        if (desc + n->n_descsz > length) return;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && !memcmp(note + name, "GNU", 4) &&
            n->n_descsz <= sizeof module->build_id) {
            memcpy(module->build_id, note + desc, n->n_descsz);
            module->build_id_length = n->n_descsz;
            return;
        }
        at = desc + os_round_up(n->n_descsz, 4);
    }
}

/* The module is mapped: code of it is on our stack. Its ELF header lies at the start of its first segment. */
static void read_elf(struct snap_module *module, const char *start, uintptr_t bias) {
    const Elf64_Ehdr *elf = (const void *)start;
    if (memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_phentsize != sizeof(Elf64_Phdr) ||
        elf->e_phoff + (size_t)elf->e_phnum * sizeof(Elf64_Phdr) > OS_PAGE)
        return;
    const Elf64_Phdr *headers = (const void *)(start + elf->e_phoff);
    for (int i = 0; i < elf->e_phnum; i++)
        if (headers[i].p_type == PT_NOTE && bias + headers[i].p_vaddr + headers[i].p_memsz <= module->end)
            copy_build_id(module, (const char *)(bias + headers[i].p_vaddr), headers[i].p_memsz);
}

static const char *path_of(const struct link_map *map) {
    return map->l_name && map->l_name[0] ? map->l_name : program_path;
}

static uint32_t add_module(const struct dl_find_object *found, const char *path) {
    uint32_t id = series_take(&modules);
    struct snap_module *module = series_at(&modules, id);
    if (!module) {
        ledger_lost(SNAP_LOST_MODULES);
        return 0;
    }
    module->start = (uintptr_t)found->dlfo_map_start;
    module->end = (uintptr_t)found->dlfo_map_end;
    module->bias = found->dlfo_link_map->l_addr;
    module->generation = site_code_generation;
    read_elf(module, found->dlfo_map_start, module->bias);
    module->path = ledger_string(path);
    keys[id].end = module->end;
    keys[id].path_hash = hash_text(path);
    __atomic_store_n(&keys[id].start, module->start, __ATOMIC_RELEASE);
    return id + 1;
}

/* 1 + id of the module that holds the code; 0 when no file is mapped there. */
static uint32_t module_of(uintptr_t address) {
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) || !found.dlfo_link_map) return 0;
    const char *path = path_of(found.dlfo_link_map);
    uint64_t hash = hash_text(path);
    for (uint64_t i = 0, n = os_load(&modules.next); i < n; i++)
        if (__atomic_load_n(&keys[i].start, __ATOMIC_ACQUIRE) == (uintptr_t)found.dlfo_map_start &&
            keys[i].end == (uintptr_t)found.dlfo_map_end && keys[i].path_hash == hash)
            return (uint32_t)i + 1;
    return add_module(&found, path);
}

uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module) {
    uint32_t id = series_take(&sites);
    struct snap_site *site = series_at(&sites, id);
    if (!site) {
        ledger_lost(SNAP_LOST_SITES);
        return SNAP_SITE_UNKNOWN;
    }
    series_reserve(&peaks, id);
    *site = (struct snap_site){.tag = tag, .stack = stack, .module = module};
    return id;
}

static uint32_t site_for_module(uint32_t module) {
    uint32_t site = __atomic_load_n(&site_of_module[module], __ATOMIC_RELAXED), none = 0;
    if (site) return site;
    site = site_new(0, 0, module);
    if (site != SNAP_SITE_UNKNOWN &&
        !__atomic_compare_exchange_n(&site_of_module[module], &none, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        site = none; /* another thread's; ours stays empty */
    return site;
}

static void remember(uintptr_t return_address, uint32_t site) {
    struct thread *self = account_self;
    if (self == &account_nobody) return;
    uint32_t generation = __atomic_load_n(&site_code_generation, __ATOMIC_RELAXED);
    if (self->code_generation != generation) {
        memset(self->cache, 0, sizeof self->cache);
        self->code_generation = generation;
    }
    self->cache[return_address % ACCOUNT_CACHE] =
        (uint64_t)(return_address >> SITE_INDEX_BITS) << ACCOUNT_SITE_BITS | site;
}

uint32_t site_find(uintptr_t return_address) {
    uint32_t site = site_for_module(module_of(return_address));
    if (site != SNAP_SITE_UNKNOWN) remember(return_address, site);
    return site;
}

struct snap_peak *site_peak(uint32_t site) {
    return series_at(&peaks, site);
}

uint32_t site_count(void) { return (uint32_t)os_load(&sites.next); }

void site_begin(uint32_t stacks, const char *program) {
    program_path = program;
    struct snap_tag *untagged = series_at(&tags, series_take(&tags));
    if (untagged) *untagged = (struct snap_tag){0};
    for (int fixed = 0; fixed < SNAP_SITE_FIRST; fixed++)
        site_new(0, 0, 0); /* SNAP_SITE_UNKNOWN, SNAP_SITE_INHERITED */
    account_here = stacks == SNAP_STACKS_NONE ? site_for_module(0) : 0;
}

void site_abandon(void) {
    uint64_t known = os_load(&modules.next);
    memset(site_of_module, 0, (known + 1) * sizeof *site_of_module);
    memset(keys, 0, known * sizeof *keys);
    series_reset(&modules);
    series_reset(&tags);
    series_reset(&sites);
    series_reset(&peaks);
    account_here = 0;
}
