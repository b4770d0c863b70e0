/* leaks_ask.h — what memstow leaks asks of a running program: to look at all its garbage, and what holds some memory.
 * In: a pid, where its socket is, and call stacks by their places in the ledger. Out: the program has done so, between
 * two runs, or why not. What it found stands in its trace. It waits no longer than it is told to, and says on a
 * terminal what it waits for. */
#ifndef MEMSTOW_LEAKS_ASK_H
#define MEMSTOW_LEAKS_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct leaks_ask {
    pid_t pid;
    char path[4096];   /* of the socket; "": it has none */
    uint64_t until_ns; /* by CLOCK_MONOTONIC */
    char text[256];    /* what the program said last */
};

void leaks_ask_begin(struct leaks_ask *self, pid_t pid, const char *path, double seconds);

/* What the program answers: of garbage how many objects it was, of holders of how many paths it said something; or
 * -errno: -ENOTSUP: the program does not take such requests, or has no socket; -ETIMEDOUT: it did not come to it
 * in time; -EAGAIN: it does so only where somebody asks for that alone. */
int leaks_ask_collect(struct leaks_ask *self);

/* A call stack: what it is called in the trace, and where it lies in the ledger. */
struct leaks_ask_stack {
    uint64_t path;
    uint32_t place;
};
/* Stacks of one path follow each other. Of blocks of runs after `before` nothing is asked (0: of any run). `meant`:
 * a person wants to know, and waits. Otherwise as above. */
int leaks_ask_holders(struct leaks_ask *self, const struct leaks_ask_stack *stacks, size_t count, uint32_t before,
                      bool meant);

#endif
