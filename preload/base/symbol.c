/* symbol.c — see symbol.h. It uses the hash table that the loader uses (DT_GNU_HASH, else DT_HASH). */
#include "preload/base/symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "preload/shared/os.h"

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Versym) * versions; /* NULL: there are none */
    const uint32_t *gnu_hash, *hash;
};
enum { HIDDEN = 0x8000 }; /* a flag of a symbol's version: only programs that were linked long ago use that version */

/* The address that an entry of the dynamic section gives. Usually the loader has made it absolute. Where the loader
 * cannot write to the section, the address is still relative to l_addr. */
static const void *symbol_address(const struct link_map *object, ElfW(Addr) value) {
    return (const void *)(value < object->l_addr ? object->l_addr + value : value);
}

static struct tables tables_of(const struct link_map *object) {
    struct tables out = {0};
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        const void *at = symbol_address(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB) out.symbols = at;
        if (entry->d_tag == DT_STRTAB) out.strings = at;
        if (entry->d_tag == DT_VERSYM) out.versions = at;
        if (entry->d_tag == DT_GNU_HASH) out.gnu_hash = at;
        if (entry->d_tag == DT_HASH) out.hash = at;
    }
    return out;
}

static bool symbol_is_named(const struct tables *in, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &in->symbols[index];
    bool hidden = in->versions && in->versions[index] & HIDDEN;
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value && !hidden && !strcmp(in->strings + symbol->st_name, name);
}

/* Looks in DT_GNU_HASH. The table has the number of buckets, the first symbol, the number of words in the Bloom filter,
 * and the filter's second shift. Then come the filter, the buckets, and one hash for each symbol. The lowest bit of a
 * hash marks the end of a bucket. */
static uint32_t find_gnu(const struct tables *in, const char *name) {
    uint32_t hash = 5381;
    for (const char *at = name; *at; at++) hash = hash * 33 + (uint8_t)*at;
    uint32_t buckets = in->gnu_hash[0], first = in->gnu_hash[1], words = in->gnu_hash[2], shift = in->gnu_hash[3];
    const uint64_t *filter = (const uint64_t *)(in->gnu_hash + 4);
    if (!buckets || !words) return STN_UNDEF;
    uint64_t word = filter[hash / 64 % words];
    if (!(word >> hash % 64 & word >> (hash >> shift) % 64 & 1)) return STN_UNDEF;
    const uint32_t *bucket = (const uint32_t *)(filter + words), *chain = bucket + buckets;
    uint32_t index = bucket[hash % buckets];
    if (index < first) return STN_UNDEF;
    for (;; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && symbol_is_named(in, index, name)) return index;
        if (entry & 1) return STN_UNDEF;
    }
}

static uint32_t find_sysv(const struct tables *in, const char *name) {
    uint32_t hash = 0;
    for (const char *at = name; *at; at++) {
        hash = (hash << 4) + (uint8_t)*at;
        hash = (hash ^ (hash >> 24 & 0xF0)) & 0x0FFFFFFF;
    }
    uint32_t buckets = in->hash[0], symbols = in->hash[1];
    const uint32_t *bucket = in->hash + 2, *chain = bucket + buckets;
    uint32_t index = buckets ? bucket[hash % buckets] : STN_UNDEF;
    while (index != STN_UNDEF && index < symbols && !symbol_is_named(in, index, name)) index = chain[index];
    return index < symbols ? index : STN_UNDEF;
}

uintptr_t symbol_find(const struct link_map *object, const char *name, size_t *size) {
    struct tables in = tables_of(object);
    if (!in.symbols || !in.strings || !(in.gnu_hash || in.hash)) return 0;
    uint32_t index = in.gnu_hash ? find_gnu(&in, name) : find_sysv(&in, name);
    if (index == STN_UNDEF) return 0;
    if (size) *size = in.symbols[index].st_size;
    return object->l_addr + in.symbols[index].st_value;
}

static const struct link_map *object_of(const void *code) {
    struct dl_find_object found;
    return _dl_find_object((void *)code, &found) ? NULL : found.dlfo_link_map;
}

/* Returns the first object of the loader's list. The list begins with the objects with which the program was started,
 * in search order. libc is one of them. These objects stay loaded, so a search from the first object to libc is safe.
 * Behind libc, the list also has objects that may be unloaded at any time. */
static const struct link_map *first_object(void) {
    const struct link_map *object = object_of((const void *)first_object);
    while (object && object->l_prev) object = object->l_prev;
    return object;
}

/* Finds libc as the object that defines gnu_get_libc_version. It does not ask which object has the address of a libc
 * function: in a program at a fixed address, this can be the address of a jump in the program itself. */
static const struct link_map *symbol_libc(void) {
    static const struct link_map *known;
    const struct link_map *object = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (likely(object)) return object;
    object = first_object();
    while (object && !symbol_find(object, "gnu_get_libc_version", NULL)) object = object->l_next;
    __atomic_store_n(&known, object, __ATOMIC_RELAXED);
    return object;
}

bool symbol_is_in_libc(const void *address) { return symbol_libc() && object_of(address) == symbol_libc(); }

void *symbol_of_libc(const char *name) { return symbol_libc() ? (void *)symbol_find(symbol_libc(), name, NULL) : NULL; }

void *symbol_next(const char *name) {
    const struct link_map *last = symbol_libc(), *object = object_of((const void *)symbol_next);
    uintptr_t found = 0;
    while (object && object != last && !found) {
        object = object->l_next;
        found = object ? symbol_find(object, name, NULL) : 0;
    }
    return (void *)found;
}

const struct link_map *symbol_before(const char *name) {
    const struct link_map *ours = object_of((const void *)symbol_before), *object = first_object();
    while (object && object != ours && !symbol_find(object, name, NULL)) object = object->l_next;
    return object == ours ? NULL : object;
}

void *symbol_known(void **known, void *(*find)(const char *name), const char *name) {
    void *found = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (unlikely(!found)) __atomic_store_n(known, found = find(name), __ATOMIC_RELAXED);
    return found;
}
