/* stow_pages.h — which pages of a range are in memory, from /proc/self/pagemap.
 * In: addresses. Out: runs of pages, and their bytes. It allocates nothing, and never touches the pages. */
#ifndef MEMSTOW_STOW_PAGES_H
#define MEMSTOW_STOW_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Kinds of pages. MAPPED: pages for which the page table has an entry. HELD: mapped pages that have memory or swap. The
 * zero page has none: the kernel maps it for reads of untouched memory. OWN: held pages that are private, and not a
 * file's. RESIDENT: held pages that are in memory now. Before Linux 6.7 the zero page cannot be told from others. */
enum stow_pages { STOW_PAGES_MAPPED, STOW_PAGES_HELD, STOW_PAGES_OWN, STOW_PAGES_RESIDENT };

int stow_pages_open(void); /* a descriptor of pagemap, or -errno */

/* Finds the first run of pages of this kind between *start and `end`, and sets *start and *run_end to its bounds. A gap
 * of fewer than `gap` other pages does not end the run. *pages: how many pages of the kind are in the run. False: there
 * are none, or pagemap cannot be read. */
bool stow_pages_run(int pagemap, uint64_t *start, uint64_t end, enum stow_pages which, uint64_t gap, uint64_t *run_end,
                    uint64_t *pages);
/* The bytes of all pages of this kind in the range. */
uint64_t stow_pages_count(int pagemap, uint64_t start, uint64_t end, enum stow_pages which);
/* Whether io_uring or InfiniBand holds pages of the process. Also true if the kernel does not say. */
bool stow_pages_are_pinned(void);

#pragma GCC visibility pop

#endif
