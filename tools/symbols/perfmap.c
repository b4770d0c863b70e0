/* perfmap.c — see perfmap.h.
 *
 * A line of the file is "START SIZE NAME", both numbers in hexadecimal. Lines are added when code is made, even while
 * this command reads the file. */
#include "preload/shared/os.h"
#include "tools/symbols/perfmap.h"
#include "tools/base/list.h"
#include "tools/proc/process.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BYTES_MAX = 64 << 20, /* most bytes of the file that are read */
    LINE_MAX_BYTES = 8000,
    RANGES_MAX = 1 << 20,
    /* how many ranges are looked at: the last range that begins at or before the address, and ranges before it */
    RANGES_BACK = 64,
    SLACK_NS = 100000000 /* file times come from a coarser clock */
};

struct range {
    uint64_t start, end;
    size_t name; /* position in the text: a name at a later position is newer */
};

struct perfmap {
    char *text;
    size_t length;
    struct range *ranges;
    size_t count, capacity;
};

/* ---- checking that the file is the process's */

static bool is_from_here(const struct snap_header *header) {
    uint8_t boot_id[16] = {0};
    os_boot_id(boot_id);
    return memcmp(boot_id, header->boot_id, sizeof boot_id) == 0;
}

/* Whether the file was written while the process ran. Otherwise it may be the file of another process, which had the
 * same pid before or after. If the process was killed, the time of its end is not known. Then the file must not be
 * older than the process, and no process may have the pid now. */
static bool is_of_its_time(const struct stat *st, const struct snap_header *header, pid_t pid) {
    uint64_t written = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
    struct process other;
    if (written + SLACK_NS < header->start_wall_ns) return false;
    if (pid || process_wrote(header)) return true;
    if (header->end_ns) return written <= header->start_wall_ns + (header->end_ns - header->start_ns) + SLACK_NS;
    return process_look(&other, (pid_t)header->pid) < 0;
}

/* Whether the file belongs to us or to the process's user. The user id in the ledger is valid in the process's user
 * namespace. So for a running process, the user id that is valid here is read from /proc. */
static bool is_owned(const struct stat *st, const struct snap_header *header, pid_t pid) {
    char path[64];
    struct stat process;
    if (st->st_uid == geteuid()) return true;
    if (!pid) return st->st_uid == header->uid;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &process) == 0 && st->st_uid == process.st_uid;
}

static int open_map(const struct snap_header *header, pid_t pid) {
    char root[64] = "", path[128];
    struct stat st;
    if (pid) snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    snprintf(path, sizeof path, "%s/tmp/perf-%u.map", root, header->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_owned(&st, header, pid) && is_from_here(header) &&
        is_of_its_time(&st, header, pid))
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* ---- parsing the file */

/* Reads the file from its beginning, up to the limit, and appends a NUL. Returns false if there is no memory. */
static bool read_text(struct perfmap *map, int fd) {
    size_t capacity = 1 << 15;
    ssize_t got;
    do {
        if (map->length == capacity || !map->text) {
            capacity *= 2;
            char *grown = realloc(map->text, capacity + 1);
            if (!grown) return false;
            map->text = grown;
        }
        got = read(fd, map->text + map->length, capacity - map->length);
        if (got > 0) map->length += (size_t)got;
    } while (got > 0 && map->length < BYTES_MAX);
    map->text[map->length] = 0;
    return true;
}

static const char *parse_hex(const char *at, uint64_t *value) {
    char *end;
    if (!isxdigit((unsigned char)*at)) return NULL;
    *value = strtoull(at, &end, 16);
    return *end == ' ' ? end + 1 : NULL;
}

static bool add_range(struct perfmap *map, struct range range) {
    if (map->count == RANGES_MAX || !LIST_GROW(map->ranges, map->count, map->capacity)) return false;
    map->ranges[map->count++] = range;
    return true;
}

/* Adds the range of a line. A malformed line is skipped. Returns false if there is no memory. */
static bool add_line(struct perfmap *map, const char *line) {
    struct range range;
    uint64_t size;
    const char *name = parse_hex(line, &range.start);
    if (name) name = parse_hex(name, &size);
    if (!name || !*name || !size || size > UINT64_MAX - range.start) return true;
    range.end = range.start + size;
    range.name = (size_t)(name - map->text);
    return add_range(map, range);
}

/* Parses all lines. A last line without a newline is left out, because it may still be incomplete. */
static void perfmap_parse(struct perfmap *map) {
    char *end, *line = map->text, *all = map->text + map->length;
    for (; (end = memchr(line, '\n', (size_t)(all - line))); line = end + 1) {
        *end = 0;
        if (end - line < LINE_MAX_BYTES && !add_line(map, line)) return;
    }
}

static int by_start(const void *left, const void *right) {
    const struct range *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

struct perfmap *perfmap_open(const struct snap_header *header, pid_t pid) {
    int fd = open_map(header, pid);
    if (fd < 0) return NULL;
    struct perfmap *map = calloc(1, sizeof *map);
    if (map && read_text(map, fd)) perfmap_parse(map);
    close(fd);
    if (map && map->count) qsort(map->ranges, map->count, sizeof *map->ranges, by_start);
    return map;
}

void perfmap_close(struct perfmap *map) {
    if (!map) return;
    free(map->ranges);
    free(map->text);
    free(map);
}

const char *perfmap_name(const struct perfmap *map, uint64_t address) {
    const struct range *found = NULL;
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (int back = 0; low-- && back < RANGES_BACK; back++) {
        const struct range *range = &map->ranges[low];
        if (address < range->end && (!found || range->name > found->name)) found = range;
    }
    return found ? map->text + found->name : NULL;
}
