/* host.h — blocks of the malloc family, by address.
 * In: an address that the program says is the start of a block, or lies in a large block. Out: what the block's header
 * or the table of large blocks says. It must not trust the address: perhaps no memory is mapped there. The caller
 * knows that nobody frees the block meanwhile. */
#ifndef MEMSTOW_HOST_H
#define MEMSTOW_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/next.h"
#include "preload/base/tracked.h"
#include "preload/blocks/header.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

struct host_block {
    uintptr_t start;
    uint64_t size; /* as the program asked */
    uint32_t site;
    bool parts; /* some of its bytes belong to another owner, and are counted at another site (parts.h) */
};

/* Finds the block that begins at the address, or the large block that contains it. False: there is no such block, or
 * it is not counted. */
bool host_find(uintptr_t address, struct host_block *out);
/* As host_find, but only for a block that begins at the address. It does not search the table for a block around the
 * address. */
bool host_find_start(uintptr_t address, struct host_block *out);
/* Writes `site` and `parts` to the block's header and to its entry in the table, as far as the block has these. */
void host_change(const struct host_block *block);

/* --- for hook_host.c, which reads and writes headers itself --- */

enum { HOST_BEFORE = sizeof(struct header) };

static inline bool host_on_page(const void *p) { return (uintptr_t)p % OS_PAGE == 0; }

/* If glibc made a mapping for a large block, the block begins at one of three addresses: behind glibc's header, at the
 * next multiple of 64, or at the start of a page. After such a block was freed, the 16 bytes in front of it may be
 * unmapped. They must not be read then (gone_is_unmapped). */
enum { HOST_CHUNK_IN_PAGE = 0x10, HOST_ALIGNED_FIRST = 64 };

static inline bool host_may_be_first(const void *p) {
    return ((uintptr_t)p % OS_PAGE & ~(uintptr_t)(HOST_CHUNK_IN_PAGE | HOST_ALIGNED_FIRST)) == 0;
}

static inline bool host_on_chunk(const void *p) { return (uintptr_t)p % OS_PAGE == HOST_CHUNK_IN_PAGE; }

static inline struct header *host_header(const void *p) { return (struct header *)p - 1; }

/* The key of a block's header. It is computed from the block's address, the mark, and a secret: the address of
 * tracked_page. So a program does not write it by accident.
 *
 * - Over a foreign allocator every block has a key.
 * - Over glibc and mimalloc, plain blocks have no key, because the fast path has no time for it. All other blocks have
 *   one. If damage makes a plain block look like another kind of block, its key is missing, so the damage is noticed.
 * - Blocks that were made before the next allocator was known have a key: their mark is not plain. */
static inline uint32_t host_key_of(const void *p, uint32_t mark) {
    return header_key((uintptr_t)p, mark, (uintptr_t)&tracked_page);
}

/* The key, or 0 for a block that has none. */
static inline uint32_t host_key(const void *p, uint32_t mark) {
    bool keyed = next_found == NEXT_FOREIGN || !header_is_plain(mark);
    return keyed ? host_key_of(p, mark) : 0;
}

static inline bool host_has_key(const void *p, const struct header *header) {
    return header->site - header_site(header) == host_key(p, header_mark_in(header));
}

static inline void host_write_header(void *p, uint64_t size, uint32_t mark, uint32_t site) {
    uint32_t keyed = site | host_key(p, mark);
    *host_header(p) = (struct header){.site = keyed, .seal = header_seal(mark, keyed, size), .size = size};
}

/* What is known of a block, from the program's pointer to it. */
struct host_known {
    void *raw; /* the block as the next allocator knows it */
    uint64_t size;
    uint32_t site, mark;
    bool ours, in_table; /* ours: our hooks made the block; in_table: it has an entry in the table (blocks.h) */
};
/* Returns what is known of the block at p, a pointer that was passed to free or realloc. */
struct host_known host_look_at(void *p);
/* Whether the 16 bytes in front of p are an intact header of ours. The caller knows that they can be read. */
bool host_has_header(const void *p);

/* Whether the block was made before this process was forked off. */
static inline bool host_is_inherited(const struct host_known *block) {
    return header_generation(block->mark) != header_generation(tracked_mark);
}

#pragma GCC visibility pop

#endif
