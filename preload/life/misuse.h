/* misuse.h — examines a pointer that the program frees or resizes, and whose header does not fit.
 * In: the pointer; and large blocks, when they are freed. Out: whether the block was freed before, or its header was
 * overwritten, and the known facts about the block; a record in the ledger, and a line on standard error. It must never
 * end the process: it gives the allocator behind us a pointer with which that allocator itself reports the fault, as
 * without us.
 *
 * All of this is off the fast path, which knows a block by its header and looks at nothing else. */
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
    bool harmless;   /* without us the overwritten bytes would not be the allocator's, so the block can be freed */
    void *raw;       /* the pointer to pass to the allocator behind ours; NULL: pass nothing */
    uint64_t size;   /* bytes of the block, or MISUSE_UNKNOWN */
    uint32_t site;   /* SNAP_SITE_UNKNOWN: not known */
    uintptr_t freed; /* return address of the first free, or its lower half alone; 0: not known */
};

/* Examines a pointer. The 16 bytes in front of it can be read; other memory around it may be unmapped. */
struct misuse misuse_of(void *pointer);

/* Whether the word in front of p can be the size of a chunk of glibc's. */
bool misuse_may_be_chunk(const void *p);

/* Whether glibc, before it reports anything, would follow the word in front of p to memory that may be unmapped. */
bool misuse_leads_astray(const void *p);

/* Whether p is the start of the raw memory of a live block: glibc gave it out, and the program never saw it. */
bool misuse_is_raw(const void *p);

/* A pointer that glibc's free and realloc always report as invalid. */
void *misuse_nobody(void);

/* At the end of the process: reports live large blocks whose header was overwritten. */
void misuse_find_live(void);

/* Writes a record of the misuse, and a line on standard error. Call it before the allocator gets the pointer: the
 * allocator may end the process. */
void misuse_report(uintptr_t p, const struct misuse *misuse, enum snap_misuse_call call, struct caller caller);

#pragma GCC visibility pop

#endif
