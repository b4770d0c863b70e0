/* next.h — the allocator behind ours: glibc's, another that the program brought, or the built-in mimalloc.
 * In: whether mimalloc is wanted, once at the start. Out: six functions that serve raw memory (blocks without our
 * header). These functions count nothing. */
#ifndef MEMSTOW_NEXT_H
#define MEMSTOW_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct next_allocator {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    size_t (*usable)(void *);
};

/* The functions that serve raw memory. Until next_find has made its choice, these are the functions of next_libc. */
extern struct next_allocator next;

/* The functions __libc_malloc, __libc_free and so on, whatever next_find chooses. They are glibc's, unless the
 * program's allocator defines these names. Blocks that were made before next_find, or by __libc_malloc, are freed with
 * next_libc.free. */
extern const struct next_allocator next_libc;

/* next_is_glibc: raw blocks are chunks of glibc, except the raw blocks of owners' heaps (heaps.h). next_spares:
 * next_is_glibc is true, and owners have no heaps. If next_spares is true, each raw block has at least 8 usable bytes
 * behind our header, even if the program asked for fewer. */
extern bool next_is_glibc, next_spares;

enum next_kind { NEXT_GLIBC, NEXT_FOREIGN, NEXT_MIMALLOC };

/* The allocator that serves raw memory. NEXT_FOREIGN: the program brought it. A block that is not ours can look like
 * one of ours only if the allocator is NEXT_FOREIGN. */
extern enum next_kind next_found;

/* Chooses the allocator. Falls back to the program's or glibc's allocator when mimalloc is wanted but not built in. */
void next_find(bool want_mimalloc);

/* Does the work of mimalloc's constructor, which was taken out of the build. Call it before the first use of mimalloc,
 * from one thread at a time. */
void next_begin_mimalloc(void);

/* Calls the aligned_alloc behind ours, for an alignment that is no power of two. NULL: there is none, or it failed. */
void *next_aligned_alloc(size_t alignment, size_t size);

/* Tells LeakSanitizer to ignore a raw block that the loader asked for. LeakSanitizer never reports the loader's blocks
 * as leaks. But it recognises them by the caller of malloc, and under memstow our hook is that caller. `caller`: an
 * address in the code that asked for the block. The block must be from a foreign allocator. */
void next_exempt(const void *raw, uintptr_t caller);
/* Whether next_exempt does anything. */
bool next_exempts(void);

/* Whether the code at `address` is our library's (which has mimalloc in it) or a foreign allocator's. Mappings that
 * such code makes are not the program's. */
bool next_is_allocator_code(uintptr_t address);

#pragma GCC visibility pop

#endif
