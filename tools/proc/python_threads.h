/* python_threads.h — finds the Python threads of a running process: the name of each thread, the function that it is
 * in, and whether Python waits for it at the end. It also finds out whether Python is ending.
 * In: a pid. Out: a list. It reads the memory of the process while the process runs, so data may be torn: all data are
 * checked and bounded. It works for CPython 3.11 and 3.12; for other versions the list is empty. */
#ifndef MEMSTOW_PYTHON_THREADS_H
#define MEMSTOW_PYTHON_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum python_daemon { PYTHON_MAIN, PYTHON_DAEMON, PYTHON_NOT_DAEMON, PYTHON_FOREIGN /* not made by threading.Thread */ };

struct python_thread {
    pid_t tid;
    enum python_daemon daemon;
    char name[64];      /* of the Thread object; "": not known */
    char function[160]; /* "get (queue.py)"; "": not known */
    bool at_end; /* the program's code is over: Python waits for threads, or its multiprocessing waits for processes */
};

struct python_threads {
    struct python_thread *list;
    size_t count, capacity;
};

/* Loads the threads of a process. Never fails: for a process without Python the list is empty. */
void python_threads_load(struct python_threads *threads, pid_t pid);
/* Whether the program's code is over (at_end of the main thread). Does not look at other threads. False for a process
 * without Python. */
bool python_threads_at_end(pid_t pid);
void python_threads_clear(struct python_threads *threads);
/* NULL: `tid` is not a Python thread. */
const struct python_thread *python_threads_find(const struct python_threads *threads, pid_t tid);

#endif
