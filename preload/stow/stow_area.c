/* stow_area.c — see stow_area.h. */
#include "preload/stow/stow_area.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"

enum { ENTRIES = 512, MPOL_F_ADDR = 2 };

static const uint64_t PRESENT = (uint64_t)1 << 63, SWAPPED = (uint64_t)1 << 62, FILE_OR_SHARED = (uint64_t)1 << 61;

/* --- mappings --- */

static void parse_path(const char *path, struct stow_area *out) {
    out->file = path[0] == '/';
    out->stack = !strncmp(path, "[stack", 6);
    out->path[0] = 0;
    if (out->file && strlen(path) < sizeof out->path) strcpy(out->path, path);
}

/* "start-end rwxp offset major:minor inode      path" */
static bool parse_header(const char *line, struct stow_area *out) {
    *out = (struct stow_area){.start = os_take_hexadecimal(&line)};
    if (*line++ != '-') return false;
    out->end = os_take_hexadecimal(&line);
    if (*line++ != ' ' || strlen(line) < 5) return false;
    out->read = line[0] == 'r', out->write = line[1] == 'w', out->execute = line[2] == 'x',
    out->shared = line[3] == 's';
    line += 5;
    out->offset = os_take_hexadecimal(&line);
    if (*line++ != ' ') return false;
    out->device = os_take_hexadecimal(&line) << 32;
    if (*line++ != ':') return false;
    out->device |= os_take_hexadecimal(&line);
    if (*line++ != ' ') return false;
    out->inode = os_take_decimal(&line);
    parse_path(line + strspn(line, " "), out);
    return true;
}

static bool has_flag(const char *flags, const char *flag) {
    for (; (flags = strstr(flags, flag)); flags++)
        if (flags[-1] == ' ' && flags[2] == ' ') return true;
    return false;
}

static void parse_flags(const char *line, struct stow_area *out) {
    out->locked = has_flag(line, "lo");
    out->sealed = has_flag(line, "sl");
    out->fork_advice = has_flag(line, "wf") || has_flag(line, "dc");
    out->no_dump = has_flag(line, "dd");
    out->faults_taken = has_flag(line, "um") || has_flag(line, "uw") || has_flag(line, "ui");
    out->special = has_flag(line, "ht") || has_flag(line, "pf") || has_flag(line, "io") || has_flag(line, "mm") ||
                   has_flag(line, "ss");
    out->stack |= has_flag(line, "gd");
}

static bool stow_area_starts(const char *line, const char *word) { return !strncmp(line, word, strlen(word)); }

static void parse_detail(const char *line, struct stow_area *out) {
    const char *value = strchr(line, ':');
    if (!value) return;
    value += 1 + strspn(value + 1, " ");
    if (stow_area_starts(line, "Anonymous:"))
        out->anonymous = os_take_decimal(&value) * 1024;
    else if (stow_area_starts(line, "ProtectionKey:"))
        out->key = os_take_decimal(&value) != 0;
    else if (stow_area_starts(line, "VmFlags:"))
        parse_flags(line, out);
}

struct reading {
    struct stow_area area;
    bool held; /* `area` is begun; the rest of its lines may follow */
    int64_t count;
    bool (*visit)(void *context, const struct stow_area *area);
    void *context;
};

static bool stow_area_deliver(struct reading *self) {
    bool held = self->held;
    self->held = false;
    return !held || self->visit(self->context, &self->area);
}

static bool stow_area_read_line(struct reading *self, const char *line) {
    if (*line >= 'A' && *line <= 'Z') {
        if (self->held) parse_detail(line, &self->area);
        return true;
    }
    if (!stow_area_deliver(self)) return false;
    self->held = parse_header(line, &self->area);
    self->count += self->held;
    return true;
}

int64_t stow_areas(bool detail, char *text, bool (*visit)(void *context, const struct stow_area *area), void *context) {
    struct reading reading = {.visit = visit, .context = context};
    size_t held = 0;
    bool more = true;
    int fd = os_open(detail ? "/proc/self/smaps" : "/proc/self/maps", O_RDONLY, 0);
    if (fd < 0) return fd;
    while (more) {
        long got = os_call(SYS_read, fd, text + held, (long)(STOW_AREA_TEXT - 1 - held));
        if (got <= 0) break;
        held += (size_t)got;
        text[held] = 0;
        char *line = text, *end;
        for (; more && (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            more = stow_area_read_line(&reading, line);
        }
        held -= (size_t)(line - text);
        if (held == STOW_AREA_TEXT - 1) held = 0; /* no line is that long */
        memmove(text, line, held);
    }
    os_close(fd);
    if (more) stow_area_deliver(&reading);
    return reading.count;
}

struct search {
    uint64_t address;
    struct stow_area *out;
    bool found;
};

static bool is_it(void *context, const struct stow_area *area) {
    struct search *self = context;
    if (area->end <= self->address) return true;
    self->found = area->start <= self->address;
    if (self->found) *self->out = *area;
    return false;
}

bool stow_area_at(uint64_t address, char *text, struct stow_area *out) {
    struct search search = {.address = address, .out = out};
    return stow_areas(false, text, is_it, &search) >= 0 && search.found;
}

static bool has_memory_policy(uint64_t address) {
    int mode = 0;
    return os_call(SYS_get_mempolicy, &mode, NULL, 0, address, MPOL_F_ADDR) == 0 && mode != 0;
}

uint32_t stow_area_refusal(const struct stow_area *area) {
    if (area->shared) return STOW_NOT_PRIVATE;
    if (area->stack) return STOW_STACK;
    if (area->special || area->file) return STOW_SPECIAL;
    if (area->locked) return STOW_LOCKED;
    if (area->sealed) return STOW_SEALED;
    if (area->fork_advice) return STOW_FORK_ADVICE;
    if (area->no_dump) return STOW_NO_DUMP;
    if (area->faults_taken) return STOW_FAULTS_TAKEN;
    if (area->key) return STOW_KEY;
    if (!area->read || !area->write || area->execute) return STOW_NO_ACCESS;
    return has_memory_policy(area->start) ? STOW_MEMORY_POLICY : STOW_DONE;
}

/* --- pages --- */

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
enum { SCANNED = 64 << 20 }; /* bytes per call: the kernel holds the lock of the program's mappings meanwhile */
enum { PAGE_FILE = 4, PAGE_PRESENT = 8, PAGE_SWAPPED = 16, PAGE_ZERO = 32 };

/* Gets a run of pages of the same categories. If it returns false, the walk ends. */
typedef bool visit_pages(void *context, uint64_t start, uint64_t end, uint64_t categories);

/* False: the kernel lacks the call. */
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

/* Walks through pages with PAGEMAP_SCAN, or, if the kernel lacks it, by reading pagemap. PAGEMAP_SCAN fails at its
 * first step or never, so no page is seen twice. */
static void stow_area_walk(int pagemap, uint64_t start, uint64_t end, struct run *run) {
    if (!walk_scanned(pagemap, start, end, grow_run, run)) walk_entries(pagemap, start, end, grow_run, run);
}

bool stow_pages_run(int pagemap, uint64_t *start, uint64_t end, enum stow_pages which, uint64_t gap, uint64_t *run_end,
                    uint64_t *pages) {
    struct run run = {.gap = gap, .which = which};
    stow_area_walk(pagemap, *start, end, &run);
    *start = run.start, *run_end = run.end, *pages = run.pages;
    return run.pages != 0;
}

uint64_t stow_pages_count(int pagemap, uint64_t start, uint64_t end, enum stow_pages which) {
    struct run run = {.gap = UINT64_MAX / OS_PAGE, .which = which};
    stow_area_walk(pagemap, start, end, &run);
    return run.pages * OS_PAGE;
}

/* VmPin counts pages that io_uring and InfiniBand hold. Nothing shows a system call with O_DIRECT in progress. */
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
