/* process.c — see process.h. */
#include "preload/shared/os.h"
#include "tools/proc/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static ssize_t read_small(const char *path, char *to, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    ssize_t got = read(fd, to, size - 1);
    int error = errno;
    close(fd);
    if (got < 0) return -error;
    to[got] = 0;
    return got;
}

bool process_can_be_seen(void) {
    char number[16];
    return readlink("/proc/self", number, sizeof number) > 0;
}

bool process_lacks_means(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

/* The line is "pid (name) state …". The name may contain parentheses, so it ends only at the last closing parenthesis
 * of the line. */
bool process_read_stat(struct process *process, char *line) {
    enum { EXITING = 4 }; /* the kernel's PF_EXITING */
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    uint64_t user, system;
    uint32_t flags;
    if (!open || !close || close < open) return false;
    *close = 0;
    snprintf(process->name, sizeof process->name, "%s", open + 1);
    if (sscanf(close + 1,
               " %c %d %d %d %*s %*s %" SCNu32 " %*s %*s %*s %*s %" SCNu64 " %" SCNu64 " %*s %*s %*s %*s %" SCNu32
               " %*s %" SCNu64 " %*s %" SCNu64,
               &process->state, &process->parent, &process->group, &process->session, &flags, &user, &system,
               &process->threads, &process->start_ticks, &process->rss_pages) != 10)
        return false;
    process->processor_ticks = user + system;
    process->is_ending = flags & EXITING;
    return true;
}

int process_look(struct process *process, pid_t pid) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t got = read_small(path, line, sizeof line);
    if (got < 0) return (int)got;
    return process_read_stat(process, line) ? 0 : -EINVAL;
}

bool process_is_alive(char state, uint32_t threads) { return (state != 'Z' && state != 'X') || threads > 1; }

static bool has_ended(pid_t thread) {
    struct process process;
    return process_look(&process, thread) < 0 || !process_is_alive(process.state, 1);
}

pid_t process_living(pid_t pid) {
    char path[64];
    pid_t living = 0;
    if (!has_ended(pid)) return pid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && !living && (entry = readdir(tasks));) {
        pid_t thread = process_parse(entry->d_name);
        if (thread && !has_ended(thread)) living = thread;
    }
    if (tasks) closedir(tasks);
    return living ? living : pid;
}

bool process_is_over(pid_t pid) {
    struct process process;
    int result = process_look(&process, pid);
    return result == -ENOENT || result == -ESRCH ||
           (result == 0 && (process.is_ending || process.state == 'Z' || process.state == 'X'));
}

pid_t process_inner_pid(pid_t pid) {
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (read_small(path, text, sizeof text) < 0) return pid;
    char *line = strstr(text, "\nNSpid:");
    if (!line) return pid;
    line++;
    line[strcspn(line, "\n")] = 0;
    char *last = strrchr(line, '\t');
    return last ? (pid_t)atoi(last + 1) : pid;
}

bool process_wrote(const struct snap_header *header) {
    uint8_t boot_id[16] = {0};
    struct process process;
    os_boot_id(boot_id);
    if (memcmp(boot_id, header->boot_id, sizeof boot_id) != 0 || header->pid == 0 || header->pid > INT32_MAX)
        return false;
    if (process_look(&process, (pid_t)header->pid) < 0) return false;
    return process.start_ticks == header->start_ticks && process_is_alive(process.state, process.threads);
}

uint64_t process_age(const struct process *process) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t since_boot = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    uint64_t start = process->start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
    return since_boot > start ? since_boot - start : 0;
}

pid_t process_parse(const char *string) {
    long value = 0;
    if (!*string || strlen(string) > 10) return 0;
    for (const char *c = string; *c; c++) {
        if (!isdigit((unsigned char)*c)) return 0;
        value = value * 10 + (*c - '0');
    }
    return value <= INT32_MAX ? (pid_t)value : 0;
}
