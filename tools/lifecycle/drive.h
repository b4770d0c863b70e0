/* drive.h — uses a program as a scenario says: waits for what it writes or answers, sends requests, signals, lines.
 * In: a scenario and a running program. Out: whether each step came to pass, within its time; else why not. */
#ifndef MEMSTOW_DRIVE_H
#define MEMSTOW_DRIVE_H

#include "tools/watch/observe.h"
#include "tools/lifecycle/scenario.h"

struct drive {
    const struct scenario *scenario;
    const char *here; /* folder of the scenario's file: names in it begin there */
    struct observe *observe;
    uint16_t port;
    int output, input; /* what the program writes, and a socket to its standard input, or -1 */
    char prompt_id[128];
    int signal; /* the last that was sent */
    char error[400];
};

/* "{port}" and "{here}" replaced; NULL: no memory. free() */
char *drive_expand(const char *text, uint16_t port, const char *here);
/* 0, or -1 with error set. */
int drive_phase(struct drive *drive, enum phase phase);

#endif
