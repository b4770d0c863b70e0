/* site.h — from the caller of a hook to a site id. In: the caller. Out: the id of (tag, stack), for the block's header
 * and the counters. Never waits. A site that cannot be recorded becomes SNAP_SITE_UNKNOWN and is counted as lost. */
#ifndef MEMSTOW_SITE_H
#define MEMSTOW_SITE_H

#include <stdint.h>

#include "preload/base/ids.h"
#include "preload/base/index.h"
#include "preload/count/sample.h"
#include "preload/stacks/stack.h"
#include "preload/count/tags.h"

#pragma GCC visibility push(hidden)

/* The site of a new block. */
static inline uint32_t site_of(struct caller caller, uint64_t size) {
    bool here = sample_here && !(sample_bytes && sample_takes(size));
    uint32_t site = here ? sample_here : stack_site(caller.slot, caller.address, caller.rbp);
    return unlikely(tags_used) ? tags_site(site) : site;
}

/* The same for an event that makes a mapping: they are few, so that all are samples, and such sites stay. */
uint32_t site_of_mapping(struct caller caller);
bool site_is_of_mapping(uint32_t site);
/* The same without a tag, for events that keep their tag beside it. */
uint32_t site_of_call(struct caller caller);
/* The same of a call from `address` that was made at some other time; 0: it is not known from where. */
uint32_t site_of_place(uintptr_t address);
/* It stays, although nothing may be counted there. */
void site_keep(uint32_t site);
/* The innermost native address of a site that `skip` is false of; if there is none, the innermost of all. 0: none. */
uintptr_t site_caller(uint32_t site, bool (*skip)(const void *address));
/* The site of the same stack under a tag other than 0; that of the owner without a stack when there is no room, and at
 * last the site as it is. */
uint32_t site_tagged(uint32_t site, uint32_t tag);
/* The site of the same stack, node and run with another model or custom, or none (0). It is a mapping's, and stays, or
 * the caller is pinned. False: there is no room for it. */
bool site_of_model(uint32_t site, uint32_t model, uint32_t *other);
/* For fold.c. The one that is found by a record's tag and stack, 0: none; makes one found again; makes all that are not
 * in `stay` (NULL: those in `hidden`) not found, a little at a time: true when it is done. */
uint32_t site_known_tagged(struct snap_site record);
void site_show_tagged(uint32_t site);
bool site_hide_tagged(const struct ids *stay, struct ids *hidden, struct index_walk *walk);

enum { SITE_LIMIT = 1 << 21 };

/* False: there is no memory for free sites. */
bool site_make_ready(void);

/* A new site with a record in the ledger, or SNAP_SITE_UNKNOWN. */
uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module);
struct snap_site site_record(uint32_t site);

/* The last sites that were found, for one thread at a time, and only as long as no further site is hidden. All zero:
 * none. */
enum { SITE_OUTER_FOUND = 512 };
struct site_outer_found {
    struct {
        uint32_t place, site;
    } at[SITE_OUTER_FOUND];
};

/* The site of the stack that ends at a place (tree.h), or of the nearest outer one that has one. When none has, that of
 * the outermost frame alone gets one: of those there are few. SNAP_SITE_UNKNOWN: no room even for that. `found`: or
 * NULL. */
uint32_t site_outer(uint32_t place, struct site_outer_found *found);
/* Nothing counts there any more, whatever its counters say; and then, once they are empty, ids go to others: those of
 * 64 sites, from `first` on, whose bits are set. */
void site_close(uint32_t site);
void site_free(uint32_t first, uint64_t bits);
uint64_t site_free_count(void);

uint32_t site_count(void);

/* The program's own path must outlive the ledger. True: call stacks are recorded. */
bool site_begin(uint32_t stacks, uint64_t memory, const char *program);

#pragma GCC visibility pop

#endif
