/* live.c — see live.h. Nothing lists the ledgers of processes. The ledger is found among the files that the process
 * maps shared and writable, by its magic, and by the pid and start time in its header. */
#include "tools/subject/live.h"
#include "tools/proc/process.h"
#include "tools/base/program.h"
#include "tools/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* One line of /proc/PID/maps. */
struct mapped_file {
    uint64_t start, end, offset, inode;
    unsigned major, minor;
    char permissions[8];
    const char *path;
};

struct search {
    pid_t pid, inner_pid;
    struct process process;
    struct live *live;
    bool found, library_seen, foreign_ledger;
    uint32_t foreign_pid;
    int denied; /* errno of a candidate that could not be opened */
};

static bool parse_line(char *line, struct mapped_file *map) {
    int path = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &map->start, &map->end,
               map->permissions, &map->offset, &map->major, &map->minor, &map->inode, &path) < 7)
        return false;
    map->path = line + path;
    return true;
}

static bool strip_deleted(char *path) {
    static const char mark[] = " (deleted)";
    size_t length = strlen(path), tail = sizeof mark - 1;
    if (length < tail || strcmp(path + length - tail, mark) != 0) return false;
    path[length - tail] = 0;
    return true;
}

/* Opens a path as the process sees it: inside the process's root, and without following links. A kernel without openat2
 * follows links in the path's folders. */
static int open_inside(pid_t pid, const char *path) {
    char root[64];
    snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -1;
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS)
        fd = openat(directory, *path == '/' ? path + 1 : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    int error = errno;
    close(directory);
    errno = error;
    return fd;
}

static bool same_file(int fd, const struct mapped_file *map) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == map->inode;
}

static int open_by_path(const struct search *search, const struct mapped_file *map, const char *path) {
    int fd = open_inside(search->pid, path);
    if (fd >= 0 && !same_file(fd, map)) {
        close(fd);
        errno = ENOENT;
        fd = -1;
    }
    return fd;
}

static int open_by_range(const struct search *search, const struct mapped_file *map) {
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)search->pid, map->start, map->end);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && !same_file(fd, map)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int open_memory(const struct search *search, const struct mapped_file *map, struct source *source) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)search->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    source_process(source, fd, map->start, map->end - map->start);
    return 0;
}

/* Opens a mapped file that is perhaps the ledger. Three ways are tried in turn: the file's path (unless the file was
 * deleted), its address range (/proc/PID/map_files), and the memory of the process. Returns 0 or -errno. */
static int open_candidate(const struct search *search, const struct mapped_file *map, const char *path, bool deleted,
                          struct source *source) {
    int fd = deleted ? -1 : open_by_path(search, map, path);
    if (fd < 0) fd = open_by_range(search, map);
    return fd >= 0 ? source_file(source, fd) : open_memory(search, map, source);
}

static void live_consider(struct search *search, const struct mapped_file *map) {
    struct source source;
    struct snap_header header;
    char path[4096], error[160];
    snprintf(path, sizeof path, "%s", map->path);
    bool deleted = strip_deleted(path);
    int result = open_candidate(search, map, path, deleted, &source);
    if (result < 0) {
        search->denied = -result;
        return;
    }
    bool ours = reader_header(&header, &source, error, sizeof error) == 0 && header.kind == SNAP_LEDGER;
    bool his = ours && header.start_ticks == search->process.start_ticks &&
               (header.pid == (uint32_t)search->pid || header.pid == (uint32_t)search->inner_pid);
    if (ours && !his) {
        search->foreign_ledger = true;
        search->foreign_pid = header.pid;
    }
    if (!his) {
        source_close(&source);
        return;
    }
    search->found = true;
    search->live->source = source;
    search->live->unlinked = deleted;
    bool memory = strncmp(path, "/memfd:", 7) == 0;
    snprintf(search->live->path, sizeof search->live->path, "%s", memory ? "" : path);
}

static bool is_candidate(const struct mapped_file *map) {
    return map->permissions[1] == 'w' && map->permissions[3] == 's' && map->offset == 0 && *map->path == '/' &&
           strncmp(map->path, "/dev/", 5) != 0 && strncmp(map->path, "/SYSV", 5) != 0 &&
           map->end - map->start >= SNAP_HEADER_SIZE;
}

static int scan_maps(struct search *search) {
    char path[64], *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)search->pid);
    FILE *maps = fopen(path, "re");
    if (!maps) return -errno;
    errno = 0;
    while (!search->found && getline(&line, &size, maps) > 0) {
        struct mapped_file map;
        if (!parse_line(line, &map)) continue;
        if (strstr(map.path, "/libmemstow.so") || strstr(map.path, "/libmemstow_cupti.so")) search->library_seen = true;
        if (is_candidate(&map)) live_consider(search, &map);
    }
    int error = ferror(maps) ? errno : 0;
    free(line);
    fclose(maps);
    return -error;
}

static void live_explain(const struct search *search, char *error, size_t size) {
    char path[64], note[128];
    enum program_verdict verdict;
    int pid = (int)search->pid;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    if (search->foreign_ledger)
        snprintf(error, size,
                 "process %d is not tracked by memstow yet: forked from process %u, it has not allocated since", pid,
                 search->foreign_pid);
    else if (search->denied && search->library_seen)
        snprintf(error, size, "process %d: its ledger cannot be read: %s", pid, strerror(search->denied));
    else if (search->library_seen)
        snprintf(error, size, "process %d is not tracked by memstow: libmemstow.so is loaded but keeps no ledger", pid);
    else if ((verdict = program_look(path, note, sizeof note)) == PROGRAM_STATIC || verdict == PROGRAM_MUSL)
        snprintf(error, size, "process %d is not tracked by memstow: %s", pid, note);
    else
        snprintf(error, size,
                 "process %d is not tracked by memstow: libmemstow.so is not loaded in it (see 'memstow ps')", pid);
}

/* Describes an error whose cause is this command or the system, and not the process. Returns `cause`. */
static int not_its_fault(pid_t pid, int cause, char *error, size_t size) {
    if (cause == -ENOSYS)
        snprintf(error, size, "process %d cannot be looked at: /proc is not mounted", (int)pid);
    else
        snprintf(error, size, "process %d cannot be looked at: %s", (int)pid, strerror(-cause));
    return cause;
}

int live_open(struct live *live, pid_t pid, char *error, size_t error_size) {
    if (!process_can_be_seen()) return not_its_fault(pid, -ENOSYS, error, error_size);
    struct search search = {.pid = process_living(pid), .live = live};
    int result = process_look(&search.process, pid);
    if (process_lacks_means(-result)) return not_its_fault(pid, result, error, error_size);
    if (result < 0 || (search.pid == pid && !process_is_alive(search.process.state, 1))) {
        snprintf(error, error_size,
                 result < 0 && result != -ENOENT && result != -ESRCH ? "process %d: permission denied"
                 : result < 0                                        ? "no such process: %d"
                                                                     : "process %d has ended",
                 (int)pid);
        return -1;
    }
    search.inner_pid = process_inner_pid(pid);
    result = scan_maps(&search);
    if (search.found) return 0;
    if (process_lacks_means(search.denied)) result = -search.denied;
    if (process_lacks_means(-result)) return not_its_fault(pid, result, error, error_size);
    if (result == -EACCES || result == -EPERM)
        snprintf(error, error_size, "process %d: permission denied", (int)pid);
    else if (process_is_over(pid)) /* it ended in the meantime */
        snprintf(error, error_size, "process %d has ended", (int)pid);
    else if (result < 0)
        snprintf(error, error_size, "process %d: %s", (int)pid, strerror(-result));
    else
        live_explain(&search, error, error_size);
    return -1;
}
