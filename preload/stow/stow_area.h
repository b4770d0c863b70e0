/* stow_area.h — the process's mappings (areas), from /proc/self/smaps and maps.
 * In: a function that is called for each area, or an address. Out: areas, and the reasons why they must not move. It
 * allocates nothing, uses only buffers of the caller, and never touches the areas. */
#ifndef MEMSTOW_STOW_AREA_H
#define MEMSTOW_STOW_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A mapping. The members before the blank line come from the mapping's line in /proc/self/maps. A flag in smaps may set
 * `stack`, too. The members after the blank line come from smaps. */
struct stow_area {
    uint64_t start, end, offset;
    uint64_t device, inode;
    bool read, write, execute, shared, file, stack;
    char path[512]; /* the path of the file, or "" if there is no file or its path is too long */

    uint64_t anonymous; /* bytes of pages that are the process's own */
    bool locked, sealed, fork_advice, no_dump, faults_taken, special, key;
};

enum { STOW_AREA_TEXT = 65536 };

/* Calls visit for each mapping in address order, until visit returns false. If `detail` is true, also fills the
 * members that come from smaps. For this the kernel needs about 10 ms for each GiB in memory. `text` is a buffer of
 * STOW_AREA_TEXT bytes. Returns how many mappings were read, or -errno. */
int64_t stow_areas(bool detail, char *text, bool (*visit)(void *context, const struct stow_area *area), void *context);

/* Finds the mapping that contains the address. Returns false if there is none. */
bool stow_area_at(uint64_t address, char *text, struct stow_area *out);

/* Why the pages of a mapping must not move (enum stow_refusal). STOW_DONE: they may move. */
uint32_t stow_area_refusal(const struct stow_area *area);

#pragma GCC visibility pop

#endif
