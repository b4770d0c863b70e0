/* stow_pages.c — see stow_pages.h. */
#include "preload/stow/stow_pages.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"

enum { ENTRIES = 512 };

static const uint64_t PRESENT = (uint64_t)1 << 63, SWAPPED = (uint64_t)1 << 62, FILE_OR_SHARED = (uint64_t)1 << 61;

int stow_pages_open(void) { return os_open("/proc/self/pagemap", O_RDONLY, 0); }

/* The request PAGEMAP_SCAN of Linux 6.7. The headers of Debian 12 lack it. */
struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_length, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scanned {
    uint64_t start, end, categories;
};
#define SCAN _IOWR('f', 16, struct scan)
enum { SCANNED = 64 << 20 }; /* bytes per call; during a call the kernel holds the lock of the program's mappings */
enum { PAGE_FILE = 4, PAGE_PRESENT = 8, PAGE_SWAPPED = 16, PAGE_ZERO = 32 };

/* Gets a run of pages of the same categories. If it returns false, the walk ends. */
typedef bool visit_pages(void *context, uint64_t start, uint64_t end, uint64_t categories);

/* Walks through the pages with PAGEMAP_SCAN. False: the kernel lacks this request. */
static bool walk_scanned(int pagemap, uint64_t start, uint64_t end, visit_pages *visit, void *context) {
    struct scanned found[ENTRIES / 4];
    while (start < end) {
        uint64_t part = end - start < SCANNED ? end - start : SCANNED;
        struct scan scan = {.size = sizeof scan,
                            .start = start,
                            .end = start + part,
                            .vec = (uint64_t)found,
                            .vec_length = sizeof found / sizeof *found,
                            .category_anyof_mask = PAGE_PRESENT | PAGE_SWAPPED,
                            .return_mask = PAGE_FILE | PAGE_PRESENT | PAGE_SWAPPED | PAGE_ZERO};
        long count = os_call(SYS_ioctl, pagemap, SCAN, &scan);
        if (count < 0) return false;
        for (long i = 0; i < count; i++)
            if (!visit(context, found[i].start, found[i].end, found[i].categories)) return true;
        start = scan.walk_end;
    }
    return true;
}

static uint64_t categories_of(uint64_t entry) {
    return (entry & PRESENT ? PAGE_PRESENT : 0) | (entry & SWAPPED ? PAGE_SWAPPED : 0) |
           (entry & FILE_OR_SHARED ? PAGE_FILE : 0);
}

static void walk_entries(int pagemap, uint64_t start, uint64_t end, visit_pages *visit, void *context) {
    uint64_t entries[ENTRIES];
    while (start < end) {
        uint64_t want = (end - start) / OS_PAGE < ENTRIES ? (end - start) / OS_PAGE : ENTRIES;
        long got = os_pread(pagemap, entries, want * sizeof *entries, start / OS_PAGE * sizeof *entries);
        if (got < (long)sizeof *entries) return;
        for (uint64_t i = 0; i < (uint64_t)got / sizeof *entries; i++, start += OS_PAGE)
            if (entries[i] & (PRESENT | SWAPPED) && !visit(context, start, start + OS_PAGE, categories_of(entries[i])))
                return;
    }
}

struct run {
    uint64_t start, end, gap, pages;
    enum stow_pages which;
};

static bool is_one_of(uint64_t categories, enum stow_pages which) {
    switch (which) {
    case STOW_PAGES_OWN:
        return !(categories & (PAGE_FILE | PAGE_ZERO));
    case STOW_PAGES_RESIDENT:
        return categories & PAGE_PRESENT && !(categories & PAGE_ZERO);
    case STOW_PAGES_HELD:
        return !(categories & PAGE_ZERO);
    default:
        return true;
    }
}

static bool grow_run(void *context, uint64_t start, uint64_t end, uint64_t categories) {
    struct run *self = context;
    if (!is_one_of(categories, self->which)) return true;
    if (!self->pages)
        self->start = start;
    else if (start - self->end >= self->gap * OS_PAGE)
        return false;
    self->pages += (end - start) / OS_PAGE;
    self->end = end;
    return true;
}

/* Walks through pages with PAGEMAP_SCAN, or, if the kernel lacks it, by reading pagemap. If PAGEMAP_SCAN fails, it does
 * so at its first step, so no page is visited twice. */
static void stow_pages_walk(int pagemap, uint64_t start, uint64_t end, struct run *run) {
    if (!walk_scanned(pagemap, start, end, grow_run, run)) walk_entries(pagemap, start, end, grow_run, run);
}

bool stow_pages_run(int pagemap, uint64_t *start, uint64_t end, enum stow_pages which, uint64_t gap, uint64_t *run_end,
                    uint64_t *pages) {
    struct run run = {.gap = gap, .which = which};
    stow_pages_walk(pagemap, *start, end, &run);
    *start = run.start, *run_end = run.end, *pages = run.pages;
    return run.pages != 0;
}

uint64_t stow_pages_count(int pagemap, uint64_t start, uint64_t end, enum stow_pages which) {
    struct run run = {.gap = UINT64_MAX / OS_PAGE, .which = which};
    stow_pages_walk(pagemap, start, end, &run);
    return run.pages * OS_PAGE;
}

/* True unless the kernel gives VmPin as 0. VmPin counts pages that io_uring and InfiniBand hold. The kernel does not
 * tell whether a system call with O_DIRECT is in progress. */
bool stow_pages_are_pinned(void) {
    char text[4096];
    int fd = os_open("/proc/self/status", O_RDONLY, 0);
    long n = fd < 0 ? -1 : os_read(fd, text, sizeof text - 1);
    if (fd >= 0) os_close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, "\nVmPin:");
    for (at = at ? at + 7 : "1"; *at == ' ' || *at == '\t'; at++) continue;
    return *at != '0';
}
