/* account.h — from one event to the counters of its thread and site. In: allocations and frees from the hooks. Out:
 * growing counters in the ledger, the running totals, the peak. It takes no lock and makes no system call. The part
 * that malloc and free need is in account_fast.h. */
#ifndef MEMSTOW_ACCOUNT_H
#define MEMSTOW_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Counts a block that now exists, and one that is about to be given back. account_alloc returns the site that it was
 * counted at, which belongs in the block's header. */
uint32_t account_alloc(uint32_t site, uint64_t bytes);
void account_free(uint32_t site, uint64_t bytes);

/* Moves a count from site `from`, as allocated or as freed, to site `to`. False: no memory; then nothing has changed.
 * The caller is pinned. */
bool account_shift(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed);
/* Makes room for that at one of the two. Where there is, at both, account_shift of this thread's does not fail. */
bool account_shift_room(uint32_t site);

/* A block that existed before this process was forked off is freed (or, by realloc, taken over). */
void account_free_inherited(uint64_t bytes);

/* Mapped memory: counted in a slot of its own by the thread that holds the table of mappings. */
void account_map(uint32_t site, uint64_t bytes, uint64_t blocks);
void account_unmap(uint32_t site, uint64_t bytes, uint64_t blocks);
bool account_shift_mapped(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks);

/* After ledger_begin. */
void account_begin(void);
/* The highest running total since the last call that began anew. */
uint64_t account_peak(bool anew);
/* Adds to the peak what threads hold back, when the total is higher with it. */
void account_raise_peak(void);
/* In a forked child, before anything is forgotten: the bytes that it inherited. */
uint64_t account_inherited(void);

/* At a thread's end. */
void account_thread_end(void);
/* At the end of the process: adds what threads still hold back, notes their names. */
void account_finish(void);

#pragma GCC visibility pop

#endif
