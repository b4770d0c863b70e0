/* drive.h — uses a program as a scenario says: sends requests, signals and lines, and waits for output and answers.
 * In: a scenario and a running program. Out: whether each step succeeded within its time; otherwise the reason. */
#ifndef MEMSTOW_DRIVE_H
#define MEMSTOW_DRIVE_H

#include "tools/watch/observe.h"
#include "tools/lifecycle/scenario.h"

struct drive {
    const struct scenario *scenario;
    const char *here; /* folder of the scenario's file: relative names start there */
    struct observe *observe;
    uint16_t port;
    int output, input; /* the program's output, and a socket to its standard input, or -1 */
    char prompt_id[128];
    int signal; /* the last signal that was sent */
    char error[400];
};

/* Replaces "{port}" and "{here}". NULL: no memory. The caller frees it. */
char *drive_expand(const char *text, uint16_t port, const char *here);
/* Returns 0, or -1 with error set. */
int drive_phase(struct drive *drive, enum phase phase);

#endif
