/* residency.h — which pages of a process are in memory, by /proc/PID/maps and /proc/PID/pagemap.
 * In: a process directory. Out: regions, and bytes present in an address range. Linked into the library (at
 * exit) and into the tools (for a PID). It never allocates, and works in static memory, one caller at a
 * time: _exit may be called by a handler on a small signal stack. It never holds the target for long: it
 * asks for few pages at a time, and smaps is not read at all. */
#ifndef MEMSTOW_RESIDENCY_H
#define MEMSTOW_RESIDENCY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct residency {
    int directory; /* descriptor of /proc/PID */
    int pagemap;
    uint64_t page_size;
};

struct residency_region {
    uint64_t start, end;
    uint32_t flags;   /* enum snap_region_flag */
    int readable;     /* 0: PROT_NONE or execute-only */
    const char *path; /* as in maps, "" when there is none; valid during the visit only */
};

/* Opens /proc/<pid>; pid 0 is the caller. 0 or -errno. */
int residency_open(struct residency *self, int pid);
void residency_close(struct residency *self);

/* Bytes present in [start, end), counted in whole pages that overlap it; *anonymous, when not NULL, receives
 * how many of them no file backs. Absent and unreadable pages count as not present; so do pages of zeros that were
 * only read, which RSS leaves out. Before Linux 6.7 these count, and of more than 64 GiB of address space nothing
 * does. */
uint64_t residency_count(const struct residency *self, uint64_t start, uint64_t end, uint64_t *anonymous);

/* Calls visit for each line of maps, in address order, until it returns non-zero; that value is returned, or 0,
 * or -errno. Lines of over 4 KiB are cut. */
int residency_regions(const struct residency *self, int (*visit)(void *context, const struct residency_region *region),
                      void *context);

/* Resident set size in bytes by /proc/PID/statm, or 0. */
uint64_t residency_rss(const struct residency *self);

#pragma GCC visibility pop

#endif
