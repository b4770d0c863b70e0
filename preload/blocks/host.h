/* host.h — blocks of the malloc family, by address. In: an address that the program says is a block's, or in a large
 * one. Out: the contents of its header, or of the table of large blocks. It must not believe the address: it can read
 * where there is no memory. The caller knows that nobody frees the block meanwhile. */
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
    bool parts; /* some are counted elsewhere (parts.h) */
};

/* False: it is no block that is counted. */
bool host_find(uintptr_t address, struct host_block *out);
/* The same of a block that begins at the address: no table is searched. */
bool host_find_start(uintptr_t address, struct host_block *out);
/* Writes site and parts to its header, or where it is listed. */
void host_change(const struct host_block *block);

/* --- for hook_host.c, which reads and writes headers itself --- */

enum { HOST_BEFORE = sizeof(struct header) };

static inline bool host_on_page(const void *p) { return (uintptr_t)p % OS_PAGE == 0; }

/* Where a block lies that glibc made a mapping of: behind glibc's header and ours, aligned to up to 64 bytes; larger
 * alignments are on a page. In front of such an address memory may be gone, if it was freed before. */
enum { HOST_FIRST_IN_PAGE = 0x20 | 0x40, HOST_ALIGNED_FIRST = 64 };

static inline bool host_may_be_first(const void *p) {
    return ((uintptr_t)p % OS_PAGE & ~(uintptr_t)HOST_FIRST_IN_PAGE) == 0;
}

static inline struct header *host_header(const void *p) { return (struct header *)p - 1; }

/* The secret lies in no place that a program writes to by accident: addresses of ours, mixed. Early blocks have it
 * always: they are made before it is known which allocator comes next, and freed after. */
static inline uint32_t host_key(const void *p, uint32_t mark) {
    return next_found == NEXT_FOREIGN || mark & HEADER_EARLY ? header_key((uintptr_t)p, (uintptr_t)&tracked_page) : 0;
}

static inline void host_write_header(void *p, uint64_t size, uint32_t mark, uint32_t site) {
    uint32_t keyed = site | host_key(p, mark);
    *host_header(p) = (struct header){.site = keyed, .seal = header_seal(mark, keyed, size), .size = size};
}

/* What is known of a block of the program. */
struct host_known {
    void *raw; /* as the next allocator has it */
    uint64_t size;
    uint32_t site, mark;
    bool ours, in_table;
};
/* Of a pointer that was passed to free or realloc. */
struct host_known host_look_at(void *p);

/* It was made before this process was forked off. */
static inline bool host_is_inherited(const struct host_known *block) {
    return header_generation(block->mark) != header_generation(tracked_mark);
}

#pragma GCC visibility pop

#endif
