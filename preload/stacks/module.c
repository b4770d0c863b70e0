/* module.c — see module.h. The loader's _dl_find_object, which takes no lock, finds a module. Modules are compared by
 * addresses and path, so a module that is unloaded and loaded again at the same place keeps its id. If two threads see
 * a new module at the same moment, both may record it. Readers merge records of one path. */
#include "preload/stacks/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/ledger/series.h"
#include "preload/stacks/generation.h"
#include "preload/base/forked.h"
#include "preload/base/seal.h"

static const char *program_path = "";

static struct series modules = {
    .type = SNAP_MODULE, .record_size = sizeof(struct snap_module), .first_bits = 7, .limit = 1 << 16};

/* The address range and the hashed path of each recorded module, so that a look-up reads no strings of the ledger. */
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

/* Reads the ELF header at the start of the first segment. The module is mapped: the loader has just found it, and in
 * most cases one of its functions is on our call stack. */
static void read_elf(struct snap_module *module, const char *start, uintptr_t bias) {
    const Elf64_Ehdr *elf = (const void *)start;
    if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(Elf64_Phdr) ||
        elf->e_phoff + (size_t)elf->e_phnum * sizeof(Elf64_Phdr) > OS_PAGE)
        return;
    const Elf64_Phdr *headers = (const void *)(start + elf->e_phoff);
    for (int i = 0; i < elf->e_phnum; i++)
        if (headers[i].p_type == PT_NOTE && bias + headers[i].p_vaddr + headers[i].p_memsz <= module->end)
            copy_build_id(module, (const char *)(bias + headers[i].p_vaddr), headers[i].p_memsz);
}

const char *module_path(const struct link_map *map) {
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
    module->generation = generation_of_code;
    read_elf(module, found->dlfo_map_start, module->bias);
    module->path = ledger_string(path);
    keys[id].end = module->end;
    keys[id].path_hash = hash_text(path);
    __atomic_store_n(&keys[id].start, module->start, __ATOMIC_RELEASE);
    return id + 1;
}

uint32_t module_at(uintptr_t address) {
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) || !found.dlfo_link_map) return 0;
    const char *path = module_path(found.dlfo_link_map);
    uint64_t hash = hash_text(path);
    for (uint64_t i = 0, n = os_load(&modules.next); i < n; i++)
        if (__atomic_load_n(&keys[i].start, __ATOMIC_ACQUIRE) == (uintptr_t)found.dlfo_map_start &&
            keys[i].end == (uintptr_t)found.dlfo_map_end && keys[i].path_hash == hash)
            return (uint32_t)i + 1;
    return add_module(&found, path);
}

/* Whether a call instruction ends in front of this address: a call of a near address (5 bytes), or a call through a
 * register or memory (2 to 7 bytes). */
static bool follows_call(uintptr_t address) {
    enum { LONGEST = 7, NEAR = 5, NEAR_CALL = 0xE8, INDIRECT = 0xFF, OPERATION = 0x38, CALL = 0x10 };
    uint8_t code[LONGEST];
    if (seal_is_set() || !os_peek(code, (const void *)(address - LONGEST), LONGEST)) return false;
    if (code[LONGEST - NEAR] == NEAR_CALL) return true;
    for (int i = 0; i < LONGEST - 1; i++)
        if (code[i] == INDIRECT && (code[i + 1] & OPERATION) == CALL) return true;
    return false;
}

/* Returns the address that has the lower half `low`, lies in a module, and meets the condition `is`. NULL as `is` means
 * that there is no condition. Returns 0 if there is no such address, or if there are several. */
static uintptr_t only_code(uint32_t low, bool (*is)(uintptr_t address)) {
    uintptr_t found = 0;
    for (uint64_t i = 0, n = os_load(&modules.next); i < n; i++) {
        uintptr_t start = __atomic_load_n(&keys[i].start, __ATOMIC_ACQUIRE);
        uintptr_t address = start + (uint32_t)(low - (uint32_t)start);
        if (!start || address >= keys[i].end || address == found || module_at(address) != i + 1) continue;
        if (is && !is(address)) continue;
        if (found) return 0;
        found = address;
    }
    return found;
}

uintptr_t module_code(uint32_t low) {
    uintptr_t only = only_code(low, NULL);
    return only ? only : only_code(low, follows_call);
}

const struct snap_module *module_record(uint32_t module) { return module ? series_at(&modules, module - 1) : NULL; }

void module_begin(const char *program) { program_path = program; }

static void module_abandon(void) {
    uint64_t known = os_load(&modules.next);
    memset(keys, 0, known * sizeof *keys);
    series_reset(&modules);
}
FORKED(module_abandon);
