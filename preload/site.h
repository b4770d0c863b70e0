/* site.h — where an allocation comes from → site id.
 * In: who called a hook. Out: the id of (tag, stack), for the block's header and the counters.
 * Never waits; what cannot be recorded becomes SNAP_SITE_UNKNOWN and is counted as lost. */
#ifndef MEMSTOW_SITE_H
#define MEMSTOW_SITE_H

#include <stdint.h>

#include "account.h"
#include "stack.h"

#pragma GCC visibility push(hidden)

/* Counts the dlclose calls: code addresses may mean something else after one. */
extern uint32_t site_code_generation;
void site_forget_code(void);

/* The site of an event. */
static inline uint32_t site_of(struct caller caller) {
    return account_here ? account_here : stack_site(caller.slot, caller.address, caller.rbp);
}

/* The site of an untagged stack (tree.h) that ends with a call from `address`. */
uint32_t site_for_node(uint32_t node, uintptr_t address);

/* 1 + id of the module that holds the code; 0 when no file is mapped there. */
uint32_t site_module(uintptr_t address);

/* Whether call stacks, sites and counters together have all the memory that they may take: then there are no new ones,
 * and an event counts at the nearest outer stack that is there. */
bool site_memory_full(void);

/* A new site with a record in the ledger, or SNAP_SITE_UNKNOWN. */
uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module);

/* The node of its stack. */
uint32_t site_stack(uint32_t site);

struct snap_peak *site_peak(uint32_t site);
uint32_t site_count(void);

/* The program's own path must outlive the ledger. */
void site_begin(uint32_t stacks, uint64_t memory, const char *program);
void site_abandon(void);

#pragma GCC visibility pop

#endif
