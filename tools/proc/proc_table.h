/* proc_table.h — all processes at one look. In: /proc. Out: a table in the order of pids. */
#ifndef MEMSTOW_PROC_TABLE_H
#define MEMSTOW_PROC_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/PID/stat. */
struct proc_entry {
    pid_t pid, parent, group, session;
    char state, name[32];
    uint64_t start_ticks, rss, processor_ticks;
    uint32_t threads;
    signed char mark; /* whoever looks may write here: 0 at first */
};

struct proc_table {
    struct proc_entry *entries;
    size_t count, capacity;
};

/* 0, or -1: /proc cannot be read, or is of another PID namespace; or no memory. */
int proc_table_read(struct proc_table *table);
void proc_table_clear(struct proc_table *table);
/* NULL: not there. */
struct proc_entry *proc_table_find(const struct proc_table *table, pid_t pid);

#endif
