/* proc_table.h — a table of all processes, from one pass through /proc.
 * In: /proc. Out: a table sorted by pid. */
#ifndef MEMSTOW_PROC_TABLE_H
#define MEMSTOW_PROC_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/PID/stat. */
struct proc_entry {
    pid_t pid, parent, group, session;
    char state, name[32];
    uint64_t start_ticks, rss, processor_ticks; /* rss: bytes */
    uint32_t threads;
    signed char mark; /* for the caller's use; 0 at first */
};

struct proc_table {
    struct proc_entry *entries;
    size_t count, capacity;
};

/* Reads all processes. Returns 0, or -1: /proc cannot be read or is of another PID namespace, or this command lacks
 * memory or descriptors. */
int proc_table_read(struct proc_table *table);
void proc_table_clear(struct proc_table *table);
/* NULL: there is no such process. */
struct proc_entry *proc_table_find(const struct proc_table *table, pid_t pid);

#endif
