/* proc_table.c — see proc_table.h. */
#include "tools/proc/proc_table.h"
#include "tools/base/list.h"
#include "tools/proc/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads /proc/PID/stat. Returns 0 or -errno. If process_lacks_means() is true for the error, this command lacks
 * descriptors or memory. Any other error means that the process is gone, or is hidden from this user. */
static int proc_table_read_line(int proc, const char *pid, char *line, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "%.20s/stat", pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    ssize_t got = read(fd, line, size - 1);
    int error = got < 0 ? -errno : 0;
    close(fd);
    line[got > 0 ? got : 0] = 0;
    return error;
}

static bool parse_entry(const char *pid, char *line, struct proc_entry *entry) {
    struct process stat;
    if (!process_read_stat(&stat, line)) return false;
    *entry = (struct proc_entry){.pid = process_parse(pid),
                                 .parent = stat.parent,
                                 .group = stat.group,
                                 .session = stat.session,
                                 .state = stat.state,
                                 .start_ticks = stat.start_ticks,
                                 .rss = stat.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE),
                                 .processor_ticks = stat.processor_ticks,
                                 .threads = stat.threads};
    strcpy(entry->name, stat.name);
    return true;
}

static int read_entry(int proc, const char *pid, struct proc_entry *entry) {
    char line[1024];
    int error = proc_table_read_line(proc, pid, line, sizeof line);
    return error || parse_entry(pid, line, entry) ? error : -ESRCH;
}

/* Reads a process. If its first thread has ended, the size of its memory is read from a live thread, because an ended
 * thread shows none. Returns 0 or -errno. */
static int read_process(int proc, const char *pid, struct proc_entry *entry) {
    struct proc_entry other;
    char thread[16];
    int error = read_entry(proc, pid, entry);
    if (error || entry->state != 'Z' || entry->threads < 2) return error;
    snprintf(thread, sizeof thread, "%d", (int)process_living(entry->pid));
    if (!read_entry(proc, thread, &other)) entry->rss = other.rss;
    return 0;
}

static bool entry_add(struct proc_table *table, const struct proc_entry *entry) {
    if (!LIST_GROW(table->entries, table->count, table->capacity)) return false;
    table->entries[table->count++] = *entry;
    return true;
}

static int by_pid(const void *left, const void *right) {
    const struct proc_entry *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Whether /proc is mounted and has the pids of this PID namespace. Inside a new namespace, /proc may still be that of
 * the machine. In such a /proc, a pid of this namespace belongs to another process. */
static bool is_our_proc(void) {
    char number[16];
    ssize_t length = readlink("/proc/self", number, sizeof number - 1);
    if (length <= 0) return false;
    number[length] = 0;
    return process_parse(number) == getpid();
}

int proc_table_read(struct proc_table *table) {
    *table = (struct proc_table){0};
    DIR *proc = is_our_proc() ? opendir("/proc") : NULL;
    bool fine = proc != NULL;
    for (struct dirent *name; fine && (name = readdir(proc));) {
        struct proc_entry entry;
        if (!process_parse(name->d_name)) continue;
        int error = read_process(dirfd(proc), name->d_name, &entry);
        fine = error ? !process_lacks_means(-error) : entry_add(table, &entry);
    }
    if (proc) closedir(proc);
    if (table->count) qsort(table->entries, table->count, sizeof *table->entries, by_pid);
    return fine ? 0 : -1;
}

void proc_table_clear(struct proc_table *table) {
    free(table->entries);
    *table = (struct proc_table){0};
}

struct proc_entry *proc_table_find(const struct proc_table *table, pid_t pid) {
    struct proc_entry key = {.pid = pid};
    return table->count ? bsearch(&key, table->entries, table->count, sizeof key, by_pid) : NULL;
}
