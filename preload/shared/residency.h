/* residency.h — which pages of a process are in memory, from /proc/PID/maps and /proc/PID/pagemap.
 * In: the directory of a process in /proc. Out: regions, and how many bytes of an address range are in memory. The
 * library uses it at exit, the command for any PID. It never allocates. Its buffers are static, because a signal
 * handler on a small stack may call _exit; so only one thread at a time may call these functions. They never hold up
 * the examined process for long: they ask about few pages at a time, and do not read smaps. */
#ifndef MEMSTOW_RESIDENCY_H
#define MEMSTOW_RESIDENCY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct residency {
    int directory; /* descriptor of /proc/PID */
    int pagemap;   /* descriptor of /proc/PID/pagemap */
    uint64_t page_size;
};

struct residency_region {
    uint64_t start, end;
    uint32_t flags;   /* enum snap_region_flag */
    int readable;     /* 0: PROT_NONE or execute-only */
    const char *path; /* as /proc/PID/maps has it; "" if there is none; valid only during the visit */
};

/* Opens /proc/<pid>; pid 0 is the caller. 0 or -errno. */
int residency_open(struct residency *self, int pid);
void residency_close(struct residency *self);

/* The bytes in memory of all pages that overlap [start, end). If `anonymous` is not NULL, *anonymous gets how many of
 * these bytes no file backs. Absent and unreadable pages do not count. Nor does the kernel's zero page, as in RSS.
 * (The kernel maps this page when a program reads anonymous memory that it has never written to.) Before Linux 6.7, two
 * things are different: the zero page counts, and the result for a range of over 64 GiB is 0. */
uint64_t residency_count(const struct residency *self, uint64_t start, uint64_t end, uint64_t *anonymous);

/* Calls visit for each line of maps, in address order, until visit returns non-zero. Returns visit's
 * non-zero value, 0 after all lines were visited, or -errno if maps cannot be opened. A line of over 8 KiB is left
 * out. */
int residency_regions(const struct residency *self, int (*visit)(void *context, const struct residency_region *region),
                      void *context);

/* The resident set size in bytes, from /proc/PID/statm; 0: it cannot be read. */
uint64_t residency_rss(const struct residency *self);

#pragma GCC visibility pop

#endif
