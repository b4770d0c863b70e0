/* site.h — from the caller of a hook to the id of a site: its call stack under the present owners (a tag).
 * In: the caller. Out: the id, for the block's header and the counters. A call waits for a lock no longer than
 * lock_wait does. If a site cannot be recorded, the answer is the site of an outer stack, the owner's site without a
 * stack, or SNAP_SITE_UNKNOWN, and a loss is counted. */
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

/* The site of an event that makes a mapping. Such events are few, so the stack of each is recorded, even with
 * --stacks=sample. The site stays: fold.c does not take its id. */
uint32_t site_of_mapping(struct caller caller);
bool site_is_of_mapping(uint32_t site);
/* As site_of_mapping, but without a tag: for events that keep their tag elsewhere. */
uint32_t site_of_call(struct caller caller);
/* As site_of_call, if only the address of the call is known. 0: there is no site for the call's stack. */
uint32_t site_of_address(uintptr_t address);
/* Makes the site stay from now on, even if nothing is counted there. */
void site_keep(uint32_t site);
/* The innermost native address in a site's stack that `skip` does not reject. If `skip` rejects all native addresses:
 * the innermost of them. 0: the stack has no native address. */
uintptr_t site_caller(uint32_t site, bool (*skip)(const void *address));
/* The site of the same stack under a tag other than 0. If there is no memory for it: the tag's site without a stack. If
 * there is no memory for that either: `site`. */
uint32_t site_tagged(uint32_t site, uint32_t tag);
/* The site of the same stack, node and run under another model or custom owner (0: none). Call it for a site of a
 * mapping, or while the caller is pinned. False: there is no memory for it. */
bool site_of_model(uint32_t site, uint32_t model, uint32_t *other);
/* --- for fold.c --- */

/* The site that look-ups find for a record's tag and stack; 0: none. */
uint32_t site_known_tagged(struct snap_site record);
/* Makes look-ups find a hidden site again. */
void site_show_tagged(uint32_t site);
/* Hides tagged sites from look-ups. If `stay` is not NULL, it hides all sites that are not in `stay`, and adds them to
 * `hidden`. If `stay` is NULL, it hides the sites that are in `hidden` already. It does a part at each call. It returns
 * true when all is done. */
bool site_hide_tagged(const struct ids *stay, struct ids *hidden, struct index_walk *walk);

enum { SITE_LIMIT = 1 << 21 };

/* Makes the set of free sites. False: there is no memory for it. */
bool site_make_ready(void);

/* A new site with a record in the ledger, or SNAP_SITE_UNKNOWN. */
uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module);
/* The record of a site, as it is now. */
struct snap_site site_record(uint32_t site);

/* The sites that site_outer found most recently, by place in the tree of stacks (tree.h), modulo SITE_OUTER_FOUND. Only
 * one thread at a time uses such a struct. The struct is valid only until another site is hidden, and it is all zero at
 * the beginning. */
enum { SITE_OUTER_FOUND = 512 };
struct site_outer_found {
    struct {
        uint32_t place, site;
    } at[SITE_OUTER_FOUND];
};

/* The site of the stack that ends at a place (tree.h), or of the nearest outer stack that has one. If none has one, the
 * stack of the outermost frame alone gets a site: there are few such stacks. SNAP_SITE_UNKNOWN: there is no memory even
 * for that. `found` may be NULL. */
uint32_t site_outer(uint32_t place, struct site_outer_found *found);
/* After site_close, the record of the site says that the site is free, so its counters mean nothing. After site_free,
 * other stacks may have the freed ids. `bits` has a bit for each of the 64 ids from `first` on; a bit that is 1 frees
 * its id. Call site_free when the counters of these ids are empty. */
void site_close(uint32_t site);
void site_free(uint32_t first, uint64_t bits);
/* How many ids are free. */
uint64_t site_free_count(void);

/* The highest id so far, plus one. */
uint32_t site_count(void);

/* Call it after ledger_begin. `stacks`: enum snap_stacks; `memory`: bytes that stacks, sites and counters may take.
 * `program`, the program's own path, must outlive the ledger. True: call stacks are recorded. */
bool site_begin(uint32_t stacks, uint64_t memory, const char *program);

#pragma GCC visibility pop

#endif
