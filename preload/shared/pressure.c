/* pressure.c — see pressure.h. */
#include "preload/shared/pressure.h"

#include <fcntl.h>
#include <string.h>

#include "preload/shared/digit.h"
#include "preload/shared/os.h"

static struct pressure_wishes wished;

/* --- reading the settings --- */

/* Reads a decimal number, and moves *text past its digits. False: there are no digits, or too many. */
static bool pressure_take_number(const char **text, uint64_t *number) {
    const char *first = *text;
    uint64_t n = 0;
    for (; digit_is_decimal(**text); (*text)++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(**text - '0'), &n)) return false;
    *number = n;
    return *text > first;
}

static bool take_text(const char **text, const char *wanted) {
    size_t length = strlen(wanted);
    if (strncmp(*text, wanted, length) != 0) return false;
    *text += length;
    return true;
}

static bool take_percent(const char **text, uint32_t *percent) {
    uint64_t number;
    if (!pressure_take_number(text, &number) || !number || number > 100 || !take_text(text, "%")) return false;
    *percent = (uint32_t)number;
    return true;
}

static bool take_bytes(const char **text, uint64_t *bytes) {
    static const char units[] = "KMGT";
    if (!pressure_take_number(text, bytes) || !*bytes) return false;
    const char *unit = **text ? strchr(units, **text) : NULL;
    if (!unit) return true;
    uint32_t shift = 10 * (uint32_t)(unit - units + 1);
    if (*bytes > UINT64_MAX >> shift) return false;
    *bytes <<= shift;
    ++*text;
    return true;
}

bool pressure_bytes(const char *text, uint64_t *bytes) {
    bool good = take_bytes(&text, bytes) && !*text;
    if (!good) *bytes = 0;
    return good;
}

static bool take_wish(const char **text, struct pressure_wishes *wishes) {
    uint32_t percent;
    const char *start = *text;
    if (take_text(text, "kept")) return wishes->take_kept = true;
    if (take_text(text, "psi:")) {
        if (!take_percent(text, &percent)) return false;
        wishes->most_stalled = 100 * percent;
        return true;
    }
    if (take_percent(text, &wishes->most_used)) return true;
    *text = start;
    return take_bytes(text, &wishes->least_left);
}

bool pressure_parse(const char *text, struct pressure_wishes *wishes) {
    struct pressure_wishes found = {.idle_ns = wishes->idle_ns};
    bool good;
    do good = take_wish(&text, &found);
    while (good && take_text(&text, ","));
    found.any = found.most_used || found.least_left || found.most_stalled;
    good = good && !*text && found.any;
    *wishes = good ? found : (struct pressure_wishes){.idle_ns = wishes->idle_ns};
    return good;
}

bool pressure_parse_idle(const char *text, struct pressure_wishes *wishes) {
    static const uint64_t second = 1000000000;
    uint64_t seconds;
    bool good = pressure_take_number(&text, &seconds) && !*text && seconds && seconds <= UINT64_MAX / second;
    wishes->idle_ns = good ? seconds * second : 0;
    return good;
}

uint32_t pressure_wish(const char *pressure, const char *idle) {
    uint32_t unreadable = 0;
    if (!pressure_parse(pressure, &wished) && *pressure) unreadable |= PRESSURE_UNREADABLE;
    if (!pressure_parse_idle(idle, &wished) && *idle) unreadable |= PRESSURE_IDLE_UNREADABLE;
    return unreadable;
}

const struct pressure_wishes *pressure_wishes(void) { return &wished; }

/* --- reading the kernel's texts --- */

bool pressure_number(const char *text, uint64_t *number) {
    *number = PRESSURE_NO_LIMIT;
    if (take_text(&text, "max")) return !*text || *text == '\n';
    if (!pressure_take_number(&text, number) || (*text && *text != '\n')) return false;
    /* Version 1 of cgroups uses the largest number of whole pages for "no limit". */
    if (*number >= (uint64_t)1 << 62) *number = PRESSURE_NO_LIMIT;
    return true;
}

bool pressure_field(const char *text, const char *key, uint64_t *bytes) {
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
        const char *at = line;
        if (!take_text(&at, key) || (*at != ':' && *at != ' ')) continue;
        while (*at == ':' || *at == ' ') at++;
        if (!pressure_take_number(&at, bytes)) return false;
        if (take_text(&at, " kB")) *bytes = *bytes > UINT64_MAX >> 10 ? UINT64_MAX : *bytes << 10;
        return true;
    }
    return false;
}

uint32_t pressure_stalled(const char *text) {
    uint64_t whole, part;
    if (!take_text(&text, "some avg10=") || !pressure_take_number(&text, &whole) || whole > 100) return 0;
    const char *point = text;
    if (!take_text(&text, ".") || !pressure_take_number(&text, &part) || text - point != 3) part = 0;
    return (uint32_t)(100 * whole + part);
}

/* Whether the list of controllers, which ends at a colon, contains the memory controller. */
static bool controls_memory(const char *list) {
    static const char name[] = "memory";
    size_t length = sizeof name - 1;
    for (;; list++) {
        if (!strncmp(list, name, length) && (list[length] == ',' || list[length] == ':')) return true;
        list += strcspn(list, ",:\n");
        if (*list != ',') return false;
    }
}

bool pressure_cgroup(const char *text, char *path, size_t capacity, bool *version1) {
    bool found = false;
    *version1 = false;
    /* A line is "ID:CONTROLLERS:PATH". In version 2 of cgroups the line has ID 0 and no controllers. */
    for (const char *line = text; line && *line && !*version1; line = strchr(line, '\n'), line += line != NULL) {
        const char *list = line + strcspn(line, ":\n");
        if (*list != ':') continue;
        list++;
        const char *colon = list + strcspn(list, ":\n");
        *version1 = controls_memory(list);
        if (*colon != ':' || !(*version1 || !strncmp(line, "0::", 3))) continue;
        size_t length = strcspn(colon + 1, "\n");
        if (length >= capacity) return false;
        memcpy(path, colon + 1, length);
        path[length] = 0;
        found = true;
    }
    return found;
}

uint64_t pressure_missing(const struct pressure_wishes *wishes, uint64_t limit, uint64_t used) {
    uint64_t missing = 0, left = limit > used ? limit - used : 0;
    if (limit == PRESSURE_NO_LIMIT) return 0;
    uint64_t most = limit / 100 * wishes->most_used;
    if (wishes->most_used && used > most) missing = used - most;
    if (wishes->least_left > left && wishes->least_left - left > missing) missing = wishes->least_left - left;
    return missing;
}

/* --- reading the kernel's files --- */

enum { PATH_SIZE = 4096, TEXT_SIZE = 8192 };

/* The buffers for reading all figures once. They are too large for the stack of the thread that polls. */
struct files {
    char text[TEXT_SIZE], path[PATH_SIZE], file[PATH_SIZE + 64];
};

static bool read_text(struct files *self, const char *name) {
    int fd = os_open(name, O_RDONLY, 0);
    if (fd < 0) return false;
    long n = os_read(fd, self->text, sizeof self->text - 1);
    os_close(fd);
    self->text[n > 0 ? n : 0] = 0;
    return n > 0;
}

static bool read_in_cgroup(struct files *self, bool version1, const char *name) {
    static const char root[] = "/sys/fs/cgroup", memory[] = "/memory";
    os_copy(self->file, sizeof self->file, root);
    if (version1) os_copy(self->file + strlen(self->file), sizeof self->file - strlen(self->file), memory);
    os_copy(self->file + strlen(self->file), sizeof self->file - strlen(self->file), self->path);
    os_copy(self->file + strlen(self->file), sizeof self->file - strlen(self->file), name);
    return read_text(self, self->file);
}

/* Reads the limit and the used bytes of the cgroup at self->path. Memory that the kernel can take back at any time does
 * not count as used. False: the limit or the used bytes cannot be read. */
static bool look_at_cgroup(struct files *self, bool version1, uint64_t *limit, uint64_t *used) {
    uint64_t inactive;
    if (!read_in_cgroup(self, version1, version1 ? "/memory.limit_in_bytes" : "/memory.max") ||
        !pressure_number(self->text, limit))
        return false;
    if (!read_in_cgroup(self, version1, version1 ? "/memory.usage_in_bytes" : "/memory.current") ||
        !pressure_number(self->text, used))
        return false;
    if (read_in_cgroup(self, version1, "/memory.stat") &&
        pressure_field(self->text, version1 ? "total_inactive_file" : "inactive_file", &inactive))
        *used -= inactive < *used ? inactive : *used;
    return true;
}

/* Makes self->path the path of the parent cgroup. False: there is no parent. If the path has "..", our cgroup is
 * outside of our cgroup namespace, and the next parent that can be seen is the mount itself. */
static bool go_outwards(struct files *self) {
    char *slash = strrchr(self->path, '/');
    if (!slash) return false;
    *(strstr(self->path, "/..") ? self->path : slash) = 0;
    return true;
}

struct reading {
    uint64_t missing, used, left;
    uint32_t stalled;
};

/* Reads the cgroup and its parents, each of which may have a limit. The figure for stalled tasks comes from the
 * innermost cgroup that has this figure. If no cgroup has it, the figure comes from the machine. */
static void read_cgroups(struct files *self, struct reading *reading) {
    bool version1 = false, told = false;
    if (!read_text(self, "/proc/self/cgroup") || !pressure_cgroup(self->text, self->path, sizeof self->path, &version1))
        self->path[0] = 0;
    if (!strcmp(self->path, "/")) self->path[0] = 0;
    do {
        uint64_t limit, used;
        if (!version1 && !told && read_in_cgroup(self, false, "/memory.pressure")) {
            reading->stalled = pressure_stalled(self->text);
            told = true;
        }
        if (!look_at_cgroup(self, version1, &limit, &used)) continue;
        uint64_t missing = pressure_missing(&wished, limit, used), left = limit > used ? limit - used : 0;
        if (missing > reading->missing) reading->missing = missing;
        if (limit != PRESSURE_NO_LIMIT && left < reading->left) reading->left = left;
        if (!reading->used) reading->used = used;
    } while (go_outwards(self));
    if (!told && read_text(self, "/proc/pressure/memory")) reading->stalled = pressure_stalled(self->text);
}

static void read_machine(struct files *self, struct reading *reading) {
    uint64_t total, available;
    if (!read_text(self, "/proc/meminfo") || !pressure_field(self->text, "MemTotal", &total) ||
        !pressure_field(self->text, "MemAvailable", &available))
        return;
    uint64_t used = total > available ? total - available : 0, missing = pressure_missing(&wished, total, used);
    if (missing > reading->missing) reading->missing = missing;
    if (available < reading->left) reading->left = available;
    if (!reading->used) reading->used = used;
}

static struct reading pressure_read_all(void) {
    struct reading reading = {.left = PRESSURE_NO_LIMIT};
    struct files *files = os_map(sizeof *files);
    if (!files) return (struct reading){0};
    read_cgroups(files, &reading);
    read_machine(files, &reading);
    os_unmap(files, sizeof *files);
    return reading;
}

uint64_t pressure_left(void) { return pressure_read_all().left; }

uint64_t pressure_needed(const char **text) {
    struct reading reading = pressure_read_all();
    *text = "too much memory is in use";
    if (reading.missing || !wished.most_stalled || reading.stalled < wished.most_stalled) return reading.missing;
    *text = "tasks wait for memory";
    return reading.used / 20 + 1;
}
