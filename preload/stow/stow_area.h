/* stow_area.h — the kinds of memory in a range, from /proc/self/smaps, maps and pagemap.
 * In: addresses. Out: areas, the reasons that forbid to move them, and which of their pages are in memory. It uses only
 * the caller's memory, and never touches the areas. */
#ifndef MEMSTOW_STOW_AREA_H
#define MEMSTOW_STOW_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A mapping. The first part comes from its line in maps, the second from smaps. */
struct stow_area {
    uint64_t start, end, offset;
    uint64_t device, inode;
    bool read, write, execute, shared, file, stack;
    char path[512]; /* of a file; a longer path is cut, and then leads to no file */

    uint64_t anonymous; /* bytes of private pages */
    bool locked, sealed, fork_advice, no_dump, faults_taken, special, key;
};

enum { STOW_AREA_TEXT = 65536 };

/* Calls visit for each mapping in address order, until it returns false. `detail`: fills the second part, too, which
 * takes the kernel about 10 ms for each GiB in memory. `text` is a buffer of STOW_AREA_TEXT bytes. Returns their
 * number, or -errno. */
int64_t stow_areas(bool detail, char *text, bool (*visit)(void *context, const struct stow_area *area), void *context);

/* The mapping that contains the address; false: there is none. */
bool stow_area_at(uint64_t address, char *text, struct stow_area *out);

/* Why the pages of a private mapping may not move: enum stow_refusal. */
uint32_t stow_area_refusal(const struct stow_area *area);

/* --- pages --- */

/* MAPPED: pages in the page table. HELD: those of them that have memory or swap; the zero page, which the kernel gives
 * to a reader, has none. OWN: those of them that are private. RESIDENT: pages in memory now. Before Linux 6.7 the zero
 * page cannot be told from others. */
enum stow_pages { STOW_PAGES_MAPPED, STOW_PAGES_HELD, STOW_PAGES_OWN, STOW_PAGES_RESIDENT };

int stow_pages_open(void); /* a descriptor of pagemap, or -errno */

/* The first run of such pages from *start on, before `end`. Gaps of less than `gap` pages belong to it. False: there is
 * none, or pagemap cannot be read. *pages: how many pages in the run are such. */
bool stow_pages_run(int pagemap, uint64_t *start, uint64_t end, enum stow_pages which, uint64_t gap, uint64_t *run_end,
                    uint64_t *pages);
/* Bytes of such pages. */
uint64_t stow_pages_count(int pagemap, uint64_t start, uint64_t end, enum stow_pages which);
/* Whether io_uring or InfiniBand holds pages of the process. Also true if the kernel does not say. */
bool stow_pages_are_pinned(void);

#pragma GCC visibility pop

#endif
