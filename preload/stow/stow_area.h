/* stow_area.h — the mappings (areas) in a range, and their pages, from /proc/self/smaps, maps and pagemap.
 * In: addresses. Out: areas, the reasons why they must not move, and which of their pages are in memory. It allocates
 * nothing, uses only buffers of the caller, and never touches the areas. */
#ifndef MEMSTOW_STOW_AREA_H
#define MEMSTOW_STOW_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A mapping. The members before the blank line come from its line in maps, the others from further lines in smaps. */
struct stow_area {
    uint64_t start, end, offset;
    uint64_t device, inode;
    bool read, write, execute, shared, file, stack;
    char path[512]; /* of the file; "": there is no file, or its path is too long */

    uint64_t anonymous; /* bytes of private pages */
    bool locked, sealed, fork_advice, no_dump, faults_taken, special, key;
};

enum { STOW_AREA_TEXT = 65536 };

/* Calls visit for each mapping in address order, until visit returns false. `detail`: also fills the members from
 * smaps, which takes the kernel about 10 ms for each GiB in memory. `text` is a buffer of STOW_AREA_TEXT bytes. Returns
 * how many mappings it has read, or -errno. */
int64_t stow_areas(bool detail, char *text, bool (*visit)(void *context, const struct stow_area *area), void *context);

/* The mapping that contains the address; false: there is none. */
bool stow_area_at(uint64_t address, char *text, struct stow_area *out);

/* Why the pages of a private mapping may not move: enum stow_refusal. */
uint32_t stow_area_refusal(const struct stow_area *area);

/* --- pages --- */

/* Kinds of pages. MAPPED: pages in the page table. HELD: mapped pages that have memory or swap. The zero page has none:
 * the kernel maps it for reads of untouched memory. OWN: held pages that are private, and not a file's. RESIDENT: held
 * pages that are in memory now. Before Linux 6.7 the zero page cannot be told from others. */
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
