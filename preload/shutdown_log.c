/* shutdown_log.c — the two files of a shutdown; see shutdown_log.h. */
#include "shutdown_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os.h"
#include "stow_work.h"

static char log_path[SHUTDOWN_PATH], registry_path[SHUTDOWN_PATH];
static uint64_t begun_ns;
static bool list_written;

/* --- paths --- */

static bool set_path(char *to, const char *name) {
    char folder[SHUTDOWN_PATH] = "/";
    size_t length = 0;
    if (name[0] != '/') {
        long got = os_call(SYS_readlink, "/proc/self/cwd", folder, sizeof folder - 1);
        length = got > 0 ? (size_t)got : 1;
        if (length > 1) folder[length++] = '/';
    }
    if (length + strlen(name) >= SHUTDOWN_PATH) return false;
    memcpy(to, folder, length);
    os_copy(to + length, SHUTDOWN_PATH - length, name);
    return true;
}

bool shutdown_log_files(const char *log, const char *registry) {
    return (!log || !log[0] || set_path(log_path, log)) &&
           (!registry || !registry[0] || set_path(registry_path, registry));
}

/* --- the log --- */

void shutdown_log_ready(void) {
    if (!log_path[0]) set_path(log_path, "shutdown.log");
}

void shutdown_log_begin(void) {
    begun_ns = os_now();
    shutdown_log_ready();
}

void shutdown_log_line(struct line *line, const char *step) {
    line_begin(line, "SHUTDOWN");
    line_string(line, "step", step);
    line_number(line, "wall_ms", os_wall_now() / 1000000);
    line_number(line, "ms", begun_ns ? (os_now() - begun_ns) / 1000000 : 0);
    line_number(line, "pid", os_pid());
}

static bool may_grow(int fd, size_t by) {
    struct stat now;
    return os_stat_fd(fd, &now) == 0 && (uint64_t)now.st_size + by <= os_file_limit();
}

/* Part of a line, where the disk is full, must not spoil the next. */
static void append(int fd, const struct line *line) {
    static bool torn;
    if (!may_grow(fd, line->used + 1)) return;
    if (__atomic_exchange_n(&torn, false, __ATOMIC_RELAXED)) os_write(fd, "\n", 1);
    if (os_write(fd, line->text, line->used) < 0) __atomic_store_n(&torn, true, __ATOMIC_RELAXED);
}

/* Opened each time: the program may close what it finds open. */
static int open_and_append(const struct line *line) {
    int fd = os_open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return fd;
    append(fd, line);
    os_close(fd);
    return 0;
}

static void append_apart(void *line) { open_and_append(line); }

void shutdown_log_write(struct line *line) {
    bool own_files;
    line_close(line);
    shutdown_log_ready();
    if (open_and_append(line) == -EMFILE) work_apart(append_apart, line, &own_files);
}

void shutdown_log_step(const char *step, const char *name, int64_t result, uint64_t took_ns) {
    struct line line;
    shutdown_log_line(&line, step);
    if (name && name[0]) line_string(&line, "name", name);
    line_signed(&line, "result", result);
    if (took_ns) line_number(&line, "took_ms", took_ns / 1000000);
    shutdown_log_write(&line);
}

/* --- the list of processes --- */

static void put(struct shutdown_list *list, const char *text, size_t length) {
    if (!list->failed && (!may_grow(list->fd, length) || os_write(list->fd, text, length) < 0)) list->failed = true;
}

static void put_text(struct shutdown_list *list, const char *text) { put(list, text, strlen(text)); }

static void hex_of(char *to, const uint8_t *bytes, size_t count) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * count] = 0;
}

static void put_process(struct shutdown_list *list, uint32_t pid, uint64_t start_ticks, const char *name) {
    struct line line;
    line_begin(&line, "PROCESS");
    line_number(&line, "pid", pid);
    line_number(&line, "start_ticks", start_ticks);
    line_string(&line, "name", name);
    put(list, line.text, line.used);
}

bool shutdown_list_begin(struct shutdown_list *list) {
    uint8_t boot_id[16] = {0};
    char boot[33];
    if (!registry_path[0]) set_path(registry_path, "process_registry.json");
    os_copy(list->path, sizeof list->path, registry_path);
    os_copy(list->path + strlen(list->path), 8, ".new");
    list->some = list->failed = false;
    os_call(SYS_unlink, list->path);
    list->fd = os_open(list->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (list->fd < 0) return false;
    os_boot_id(boot_id);
    hex_of(boot, boot_id, sizeof boot_id);
    put_text(list, "{\"format\": \"memstow-processes\", \"version\": 1, \"boot_id\": \"");
    put_text(list, boot);
    put_text(list, "\",\n \"parent\": ");
    put_process(list, os_pid(), os_start_ticks(0), "");
    put_text(list, "},\n \"processes\": [");
    return true;
}

void shutdown_list_add(struct shutdown_list *list, uint32_t pid, uint64_t start_ticks, const char *name, bool keep) {
    if (list->fd < 0) return;
    put_text(list, list->some ? ",\n  " : "\n  ");
    put_process(list, pid, start_ticks, name);
    put_text(list, keep ? ", \"keep\": true}" : ", \"keep\": false}");
    list->some = true;
}

bool shutdown_list_end(struct shutdown_list *list) {
    if (list->fd < 0) return false;
    put_text(list, "\n ]}\n");
    os_close(list->fd);
    if (!list->failed && os_call(SYS_rename, list->path, registry_path) == 0) return list_written = true;
    os_call(SYS_unlink, list->path);
    return false;
}

void shutdown_list_remove(void) {
    if (list_written) os_call(SYS_unlink, registry_path);
    list_written = false;
}

void shutdown_list_reset(void) { list_written = false; }
