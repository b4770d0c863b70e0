/* proc.h — what /proc says about a process: is it there, since when, by what name.
 * In: a pid. Out: facts about it. It never attaches to anything. */
#ifndef MEMSTOW_PROC_H
#define MEMSTOW_PROC_H

#include "preload/shared/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
    char name[32];
    char state;     /* as in /proc/PID/stat: R, S, Z … */
    bool is_ending; /* on its way out: its memory may be gone before it is a zombie */
    uint32_t threads;
    uint64_t start_ticks; /* since boot */
};

/* 0 or -errno. A zombie is found, in state Z. */
int process_look(struct process *process, pid_t pid);
/* The pid that the process has inside its own namespace. */
pid_t process_inner_pid(pid_t pid);
/* Not ended. A zombie has, unless it is only the first thread that has, by pthread_exit: the others run on. */
bool process_is_alive(char state, uint32_t threads);
/* The thread through which /proc shows the memory and the descriptors of a process, as /proc/THREAD: the first, and
 * another that lives where that has ended. The pid where there is none. */
pid_t process_living(pid_t pid);
/* It is not there any more, a zombie, or on its way to be one. */
bool process_is_over(pid_t pid);
/* True when the process that wrote this header, on this machine and since this boot, still runs. */
bool process_wrote(const struct snap_header *header);
/* Seconds since it started, in nanoseconds. */
uint64_t process_age(const struct process *process);
/* "123" → 123; 0 when it is anything else. */
pid_t process_parse(const char *string);

#endif
