/* stow_area.c — see stow_area.h. */
#include "preload/stow/stow_area.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"

enum { MPOL_F_ADDR = 2 };

static void parse_path(const char *path, struct stow_area *out) {
    out->file = path[0] == '/';
    out->stack = !strncmp(path, "[stack", 6);
    out->path[0] = 0;
    if (out->file && strlen(path) < sizeof out->path) strcpy(out->path, path);
}

/* Reads the first line of a mapping: "start-end rwxp offset major:minor inode   path". False: the line has another
 * form. */
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
        if (held == STOW_AREA_TEXT - 1) held = 0; /* no line of smaps is that long */
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
