/* process.h — facts about a process from /proc, such as its name, its parent and its age.
 * In: a pid. Out: these facts. It never attaches to a process. */
#ifndef MEMSTOW_TOOLS_PROCESS_H
#define MEMSTOW_TOOLS_PROCESS_H

#include "preload/shared/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A process or a thread, by its line of /proc/PID/stat. */
struct process {
    char name[32];
    char state;     /* R, S, Z … */
    bool is_ending; /* the process is exiting: its memory may be gone before it is a zombie */
    pid_t parent, group, session;
    uint32_t threads;
    uint64_t start_ticks; /* start time, in ticks since boot */
    uint64_t processor_ticks, rss_pages;
};

/* Whether /proc is mounted and shows this command. If not, no process can be seen. */
bool process_can_be_seen(void);
/* Whether the error (errno) means that this command lacks descriptors or memory. Such an error says nothing about the
 * process. */
bool process_lacks_means(int error);
/* Parses a line of /proc/PID/stat or /proc/PID/task/TID/stat, and changes the line. False: the line has another
 * form. */
bool process_read_stat(struct process *process, char *line);
/* Reads the facts about a process. Returns 0 or -errno. A zombie is found, too: its state is Z. */
int process_look(struct process *process, pid_t pid);
/* The pid of the process inside its own namespace. */
pid_t process_inner_pid(pid_t pid);
/* Whether a process lives. A zombie lives if it has several threads: then only the first thread has ended, by
 * pthread_exit, and others still run. */
bool process_is_alive(char state, uint32_t threads);
/* The thread whose /proc/THREAD shows the memory and descriptors of a process: the first thread, or another live one if
 * the first has ended. If no thread lives, the pid. */
pid_t process_living(pid_t pid);
/* Whether the process is gone, a zombie, or exiting. */
bool process_is_over(pid_t pid);
/* Whether the process that keeps the ledger with this header still runs. False also if the process belongs to another
 * machine or to an earlier boot. */
bool process_wrote(const struct snap_header *header);
/* The time since the process started, in nanoseconds. */
uint64_t process_age(const struct process *process);
/* Parses "123" as 123; 0 for anything else. */
pid_t process_parse(const char *string);

#endif
