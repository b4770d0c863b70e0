/* stow_area.h — what kind of memory lies where, by /proc/self/smaps, maps and pagemap.
 * In: addresses. Out: areas with what forbids to move them, and which of their pages are in memory. It uses its
 * caller's memory only, and never touches the areas. */
#ifndef MEMSTOW_STOW_AREA_H
#define MEMSTOW_STOW_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* One mapping, as a line of maps has it; the second part from smaps. */
struct stow_area {
    uint64_t start, end, offset;
    uint64_t device, inode;
    bool read, write, execute, shared, file, stack;
    char path[512]; /* of a file; cut where it is longer, which then names none */

    uint64_t anonymous; /* bytes of private pages */
    bool locked, sealed, fork_advice, no_dump, faults_taken, special, key;
};

enum { STOW_AREA_TEXT = 65536 };

/* Visits the process's mappings in address order until `visit` is false. `detail`: with the second part, for which the
 * kernel takes about 10 ms for each GiB in memory. `text` is STOW_AREA_TEXT bytes to work in. Returns how many, or
 * -errno. */
int64_t stow_areas(bool detail, char *text, bool (*visit)(void *context, const struct stow_area *area), void *context);

/* The mapping with that address; false: there is none. */
bool stow_area_at(uint64_t address, char *text, struct stow_area *out);

/* Why the pages of a private mapping of memory may not move: enum stow_refusal. */
uint32_t stow_area_refusal(const struct stow_area *area);

/* --- pages --- */

/* Which pages. Those in the page table. Of them, those that hold memory or swap; the zero page, which the kernel gives
 * to a reader, holds none. Of those, the private ones. Those in memory now. Before Linux 6.7 the zero page looks like
 * any other. */
enum stow_pages { STOW_PAGES_MAPPED, STOW_PAGES_HELD, STOW_PAGES_OWN, STOW_PAGES_RESIDENT };

int stow_pages_open(void); /* of pagemap, or -errno */

/* The first run of such pages at or after *start and before `end`; gaps of less than `gap` pages are part of it. False
 * when there is none; also when pagemap cannot be read. *pages is how many pages of the run are such. */
bool stow_pages_run(int pagemap, uint64_t *start, uint64_t end, enum stow_pages which, uint64_t gap, uint64_t *run_end,
                    uint64_t *pages);
/* Bytes of such pages. */
uint64_t stow_pages_count(int pagemap, uint64_t start, uint64_t end, enum stow_pages which);
/* Whether the kernel holds pages of the process for io_uring or InfiniBand; also when it does not tell. */
bool stow_pages_are_pinned(void);

#pragma GCC visibility pop

#endif
