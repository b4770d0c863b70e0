/* python_threads.h — what Python says of the threads of a running process: names, which it waits for at its end, and
 * the function that each is in; and whether it is at its end. In: a pid. Out: a list. It reads the memory of the
 * process, which goes on meanwhile: what is read may be torn, and is bounded and checked for that. CPython 3.11
 * and 3.12; of others there is no list. */
#ifndef MEMSTOW_PYTHON_THREADS_H
#define MEMSTOW_PYTHON_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum python_daemon { PYTHON_MAIN, PYTHON_DAEMON, PYTHON_NOT_DAEMON, PYTHON_FOREIGN /* not made by threading.Thread */ };

struct python_thread {
    pid_t tid;
    enum python_daemon daemon;
    char name[64];      /* of the Thread object; "" */
    char function[160]; /* "get (queue.py)"; "" */
    bool at_end;        /* the program is over: Python waits for threads, or multiprocessing for its processes */
};

struct python_threads {
    struct python_thread *list;
    size_t count;
};

/* Never fails: a process that has no Python has no such threads. */
void python_threads_load(struct python_threads *threads, pid_t pid);
/* Of its main thread only; false also where there is no Python. */
bool python_is_at_end(pid_t pid);
void python_threads_clear(struct python_threads *threads);
/* NULL: not one of Python's. */
const struct python_thread *python_threads_find(const struct python_threads *threads, pid_t tid);

#endif
