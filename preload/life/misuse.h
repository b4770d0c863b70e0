/* misuse.h — examines a pointer that the program frees or resizes, and that has no valid header of ours in front of it.
 * In: the pointer; the table of large blocks; what was noted when blocks were freed (gone.h, header.h). Out: whether
 * the block was freed before or its header was overwritten, and what is known of the block; a record in the ledger, and
 * a line on standard error. Nothing here ends the process. After a fault that does harm, the hook (hook_host.c) gives
 * the allocator behind ours a pointer that this allocator reports as invalid, because without memstow, too, the
 * allocator would report the fault.
 *
 * The hook's fast path does not come here: it knows a block by its header alone. */
#ifndef MEMSTOW_MISUSE_H
#define MEMSTOW_MISUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/blocks/header.h"
#include "preload/shared/snapshot.h"
#include "preload/stacks/stack.h"

#pragma GCC visibility push(hidden)

#define MISUSE_UNKNOWN UINT64_MAX

struct misuse {
    uint32_t kind;   /* enum snap_misuse_kind; 0: no misuse was found */
    bool harmless;   /* without us, the allocator would not read the overwritten bytes, so the hook mends the header */
    void *raw;       /* what the allocator behind ours gets; NULL: it gets misuse_nobody() */
    uint64_t size;   /* bytes of the block, or MISUSE_UNKNOWN */
    uint32_t site;   /* SNAP_SITE_UNKNOWN: not known */
    uintptr_t freed; /* return address of the first free, or its lower half alone; 0: not known */
};

/* Examines a pointer. The 16 bytes in front of it can be read; other memory around it may be unmapped. */
struct misuse misuse_of(void *pointer);

/* Whether the word in front of p can be the size of a chunk of glibc's. */
bool misuse_may_be_chunk(const void *p);

/* Whether glibc's free or realloc would crash on p before it reports anything: it would follow the word in front of p
 * to memory that may be unmapped. */
bool misuse_leads_astray(const void *p);

/* Whether p is the start of the raw memory of a live block: glibc gave this address to memstow, and the program never
 * saw it. */
bool misuse_is_raw(const void *p);

/* A pointer that glibc's free and realloc always report as invalid. */
void *misuse_nobody(void);

/* At the end of the process: reports live large blocks whose header was overwritten. */
void misuse_find_live(void);

/* Writes a record of the misuse of p, and a line on standard error: at most 64 records and 8 lines in a process.
 * `call`: the function that p was passed to. `caller`: where that function was called. Call misuse_report before the
 * allocator gets the pointer, because the allocator may end the process. */
void misuse_report(uintptr_t p, const struct misuse *misuse, enum snap_misuse_call call, struct caller caller);

#pragma GCC visibility pop

#endif
