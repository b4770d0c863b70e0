/* shutdown_log.c — see shutdown_log.h. */
#include "preload/shutdown/shutdown_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/os.h"
#include "preload/shutdown/shutdown_file.h"
#include "preload/stow/stow_work.h"

static char log_path[SHUTDOWN_PATH];
static uint64_t begun_ns;

bool shutdown_log_file(const char *path) { return !path[0] || shutdown_file_path(log_path, path); }

void shutdown_log_ready(void) {
    if (!log_path[0]) shutdown_file_path(log_path, "shutdown.log");
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

/* Appends a line to the open log. If the write fails, for example because the disk is full, half a line may be in the
 * log. In this case the next call first writes a newline. */
static void shutdown_log_append(int fd, const struct line *line) {
    static bool torn;
    if (!shutdown_file_may_grow(fd, line->used + 1)) return;
    if (__atomic_exchange_n(&torn, false, __ATOMIC_RELAXED)) os_write(fd, "\n", 1);
    if (os_write(fd, line->text, line->used) < 0) __atomic_store_n(&torn, true, __ATOMIC_RELAXED);
}

/* The file is opened for each line, because the program may close any descriptor. */
static int open_and_append(const struct line *line) {
    int fd = os_open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return fd;
    shutdown_log_append(fd, line);
    os_close(fd);
    return 0;
}

static void append_apart(void *line) { open_and_append(line); }

void shutdown_log_write(struct line *line) {
    bool own_files;
    line_close(line);
    shutdown_log_ready();
    if (open_and_append(line) == -EMFILE) stow_work_apart(append_apart, line, &own_files);
}

void shutdown_log_step(const char *step, const char *name, int64_t result, uint64_t took_ns) {
    struct line line;
    shutdown_log_line(&line, step);
    if (name && name[0]) line_string(&line, "name", name);
    line_signed(&line, "result", result);
    if (took_ns) line_number(&line, "took_ms", took_ns / 1000000);
    shutdown_log_write(&line);
}

uint64_t shutdown_log_age_ms(uint64_t start_ticks) {
    enum { TICK_MS = 10 }; /* USER_HZ is 100 */
    struct timespec now = {0};
    os_call(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    uint64_t since_boot = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return start_ticks && since_boot > start_ticks * TICK_MS ? since_boot - start_ticks * TICK_MS : 0;
}
