/* account.h — counts an event for its thread and its site (one call stack and its owners, as one number).
 * In: allocations and frees, from the hooks. Out: counters in the ledger that only grow, the running totals, the peak.
 * Most events take no lock and make no system call. Rare steps may, for example to make a slot (a thread's entry in the
 * table of threads) or a counter. What malloc and free need is in account_fast.h. */
#ifndef MEMSTOW_ACCOUNT_H
#define MEMSTOW_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* account_alloc counts a block that now exists, account_free a block that is about to be freed. account_alloc returns
 * the site at which it counted. That site belongs in the block's header. */
uint32_t account_alloc(uint32_t site, uint64_t bytes);
void account_free(uint32_t site, uint64_t bytes);

/* Moves a count of allocations (of frees, if `freed`) from one site to another. False: there is no memory, and nothing
 * has changed. The caller is pinned (pin.h). */
bool account_shift(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed);
/* Makes counters for account_shift at this site. Call it for `from` and for `to`; then account_shift on this thread
 * does not fail. */
bool account_shift_reserve(uint32_t site);

/* Counts the free or realloc of a block that existed before this process was forked off. */
void account_free_inherited(uint64_t bytes);

/* account_map counts memory that was mapped, account_unmap memory that was unmapped. Only the thread that holds the
 * table of mappings calls them. These counts are in a slot of their own (SNAP_THREAD_MAPPINGS). */
void account_map(uint32_t site, uint64_t bytes, uint64_t blocks);
void account_unmap(uint32_t site, uint64_t bytes, uint64_t blocks);
/* As account_shift, for mapped memory. */
bool account_shift_mapped(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks);

/* Call it after ledger_begin: from then on, ends of threads are noticed. */
void account_begin(void);
/* The highest running total, in bytes, since the latest call with `anew`, or since the start. */
uint64_t account_peak(bool anew);
/* Sums the running total and the bytes that threads have not added to it yet (thread_inside.h). Raises the peak if the
 * sum is higher. */
void account_raise_peak(void);
/* The live host bytes that a forked child has inherited. Call it in the child before forked_forget. */
uint64_t account_inherited(void);

/* Call it at the calling thread's end: adds the thread's remaining bytes to the running total, and gives its slot
 * up. */
void account_thread_end(void);
/* At the end of the process: adds the calling thread's remaining bytes to the running total, and notes the names of
 * threads that still run. */
void account_finish(void);

#pragma GCC visibility pop

#endif
