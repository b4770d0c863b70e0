/* residency.c — see residency.h. */
#include "preload/shared/residency.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

enum { ENTRIES = 512 }; /* entries of pagemap in one read, for 2 MiB of address space */

static const uint64_t PRESENT = (uint64_t)1 << 63, FILE_OR_SHARED = (uint64_t)1 << 61;
static const uint64_t WALK_AT_MOST = (uint64_t)64 << 30;

/* PAGEMAP_SCAN, an ioctl of Linux 6.7. It walks page tables, so it is fast even for AddressSanitizer's shadow of 16
 * TiB, most of which has no page tables. The headers of Debian 12 lack these definitions. */
enum { SCAN_FILE = 1 << 2, SCAN_PRESENT = 1 << 3, SCAN_ZERO = 1 << 5, SCAN_PAGES = 4096, SCAN_REGIONS = 256 };

struct scan_region {
    uint64_t start, end, categories;
};

struct scan {
    uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages;
    uint64_t inverted, wanted, wanted_any, returned;
};

#define SCAN_CALL _IOWR('f', 16, struct scan)

/* Bytes in memory: `all` of them, and those that no file backs (`private`). */
struct present {
    uint64_t all, private;
};

/* Opens /proc/PID/`file`; pid 0 is this process. Returns a descriptor or -errno. */
static int open_in_proc(int pid, const char *file, int flags) {
    char path[64] = "/proc/", *end = path + strlen(path);
    if (pid)
        end = os_decimal(end, (uint32_t)pid);
    else
        end = strcpy(end, "self") + 4;
    *end = '/';
    strcpy(end + 1, file);
    return os_open(path, flags, 0);
}

int residency_open(struct residency *self, int pid) {
    self->page_size = OS_PAGE;
    self->pagemap = -1;
    self->directory = open_in_proc(pid, "", O_RDONLY | O_DIRECTORY);
    if (self->directory < 0) return self->directory;
    self->pagemap = open_in_proc(pid, "pagemap", O_RDONLY);
    if (self->pagemap >= 0) return 0;
    os_close(self->directory);
    return self->pagemap;
}

void residency_close(struct residency *self) {
    os_close(self->directory);
    os_close(self->pagemap);
}

/* Counts the present bytes of [start, end), in whole pages, by PAGEMAP_SCAN. False: PAGEMAP_SCAN failed, for example
 * because the kernel is older than 6.7. */
static bool residency_scan(const struct residency *self, uint64_t start, uint64_t end, struct present *out) {
    static struct scan_region found[SCAN_REGIONS];
    *out = (struct present){0};
    while (start < end) {
        struct scan scan = {sizeof scan,
                            .start = start,
                            .end = end,
                            .regions = (uintptr_t)found,
                            .region_count = SCAN_REGIONS,
                            .most_pages = SCAN_PAGES,
                            .inverted = SCAN_ZERO,
                            .wanted = SCAN_PRESENT | SCAN_ZERO,
                            .returned = SCAN_FILE};
        long got = os_call(SYS_ioctl, self->pagemap, SCAN_CALL, &scan);
        if (got < 0 || scan.walk_end <= start) return false;
        for (long i = 0; i < got; i++) {
            uint64_t bytes = found[i].end - found[i].start;
            out->all += bytes;
            out->private += found[i].categories & SCAN_FILE ? 0 : bytes;
        }
        start = scan.walk_end;
    }
    return true;
}

static struct present residency_walk(const struct residency *self, uint64_t start, uint64_t end) {
    static uint64_t entries[ENTRIES];
    uint64_t present = 0, private = 0, page = start / self->page_size, last = end / self->page_size;
    while (page < last && end - start <= WALK_AT_MOST) {
        uint64_t want = last - page < ENTRIES ? last - page : ENTRIES;
        long got = os_pread(self->pagemap, entries, want * sizeof *entries, page * sizeof *entries);
        if (got < (long)sizeof *entries) break;
        for (uint64_t i = 0; i < (uint64_t)got / sizeof *entries; i++) {
            present += (entries[i] & PRESENT) != 0;
            private += (entries[i] & PRESENT) && !(entries[i] & FILE_OR_SHARED);
        }
        page += (uint64_t)got / sizeof *entries;
    }
    return (struct present){present * self->page_size, private * self->page_size};
}

uint64_t residency_count(const struct residency *self, uint64_t start, uint64_t end, uint64_t *anonymous) {
    struct present present;
    start -= start % self->page_size;
    end = os_round_up(end, self->page_size);
    if (!residency_scan(self, start, end, &present)) present = residency_walk(self, start, end);
    if (anonymous) *anonymous = present.private;
    return present.all;
}

/* Reads a line "start-end rwxp offset device inode   path" of maps. False: the line has another form. */
static bool parse_line(const char *line, struct residency_region *out) {
    out->start = os_take_hexadecimal(&line);
    if (*line++ != '-') return false;
    out->end = os_take_hexadecimal(&line);
    if (*line++ != ' ' || strlen(line) < 4 || out->end <= out->start) return false;
    out->readable = line[0] == 'r';
    out->flags = (line[1] == 'w' ? SNAP_REGION_WRITE : 0u) | (line[2] == 'x' ? SNAP_REGION_EXEC : 0u) |
                 (line[3] == 's' ? SNAP_REGION_SHARED : 0u);
    for (int field = 0; field < 4 && line; field++) {
        line = strchr(line, ' ');
        line = line ? line + 1 : NULL;
    }
    out->path = line ? line + strspn(line, " ") : "";
    return true;
}

int residency_regions(const struct residency *self, int (*visit)(void *context, const struct residency_region *region),
                      void *context) {
    static char text[8192];
    size_t held = 0;
    int result = 0;
    int fd = (int)os_call(SYS_openat, self->directory, "maps", (long)(O_RDONLY | O_CLOEXEC), 0);
    if (fd < 0) return fd;
    for (;;) {
        long got = os_call(SYS_read, fd, text + held, (long)(sizeof text - 1 - held));
        if (got <= 0) break;
        held += (size_t)got;
        text[held] = 0;
        char *line = text, *end;
        while (!result && (end = strchr(line, '\n'))) {
            struct residency_region region;
            *end = 0;
            if (parse_line(line, &region)) result = visit(context, &region);
            line = end + 1;
        }
        held -= (size_t)(line - text);
        if (held == sizeof text - 1) held = 0; /* drops a line that is longer than the buffer */
        memmove(text, line, held);
        if (result) break;
    }
    os_close(fd);
    return result;
}

uint64_t residency_rss(const struct residency *self) {
    char text[128] = {0};
    int fd = (int)os_call(SYS_openat, self->directory, "statm", (long)(O_RDONLY | O_CLOEXEC), 0);
    if (fd < 0) return 0;
    os_read(fd, text, sizeof text - 1);
    os_close(fd);
    const char *at = strchr(text, ' ');
    at = at ? at + 1 : "";
    return os_take_decimal(&at) * self->page_size;
}
