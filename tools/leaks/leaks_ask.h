/* leaks_ask.h — requests of memstow leaks to a running program: to collect all garbage, or to find the holders of some
 * memory. The program does so between two runs.
 * In: a pid, the path of its socket, call stacks by their numbers in the process, and the seconds to wait for answers.
 * Out: the number that the program answers, or the reason why it did nothing. The program writes the holders that it
 * finds into its trace. On a terminal, the wait is shown. */
#ifndef MEMSTOW_LEAKS_ASK_H
#define MEMSTOW_LEAKS_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct leaks_ask {
    pid_t pid;
    char path[4096];   /* path of the socket; "": the process has none */
    uint64_t until_ns; /* by CLOCK_MONOTONIC */
    char text[256];    /* the text of the program's last answer */
};

void leaks_ask_begin(struct leaks_ask *self, pid_t pid, const char *path, double seconds);

/* leaks_ask_collect() and leaks_ask_holders() return the program's answer: the number of garbage objects, or the number
 * of paths whose holders it looked for. Or they return -errno. -ENOTSUP: the program does not take such requests, or
 * has no socket. -ETIMEDOUT: the program did not answer in time. -EAGAIN: the program looks for holders only if a
 * person asks (`meant`). */
int leaks_ask_collect(struct leaks_ask *self);

/* The most paths in one search. The number is limited because the program has a time limit for each search
 * (memstow_looks.py). */
enum { LEAKS_ASK_PATHS = 64 };

/* A call stack. path: the hash of its frames, which is its name in the trace. place: its number in the process
 * (tree.h). order: paths with lower numbers are asked for first. */
struct leaks_ask_stack {
    uint64_t path;
    uint32_t place, order;
};
/* Asks for the holders of blocks that the stacks allocated. Stacks of one path must follow each other. If `before` is
 * not 0, it is the id of a run, and blocks of later runs are left out. `meant`: a person asked for this and waits.
 * With `meant`, one search follows another until all stacks were asked for, a search has looked at no path, or the time
 * is over. Without `meant`, there is one search. Returns the sum of the answers. If no search was answered, returns
 * -errno, as leaks_ask_collect() does. */
int leaks_ask_holders(struct leaks_ask *self, const struct leaks_ask_stack *stacks, size_t count, uint32_t before,
                      bool meant);

#endif
