/* drive.h — carries out the steps of a scenario: sends a program requests, signals and lines, and waits for its output
 * and answers.
 * In: a scenario and a running program. Out: whether each step succeeded within its time, and if not, why. */
#ifndef MEMSTOW_DRIVE_H
#define MEMSTOW_DRIVE_H

#include "tools/lifecycle/scenario.h"
#include "tools/net/http.h"
#include "tools/watch/observe.h"

struct drive {
    const struct scenario *scenario;
    const char *here; /* folder of the scenario's file: relative names start there */
    struct observe *observe;
    uint16_t port;
    int output;                /* a file in memory that has the program's output */
    int input, child_input;    /* two ends of a socket: child_input is the program's standard input; -1: none */
    const struct step *step;   /* the step that is being done */
    const char *text;          /* the step's arguments after drive_expand() */
    struct http_answer answer; /* the answer to the last request */
    char prompt_id[128];
    int signal; /* the signal that was sent last */
    char error[400];
};

/* Chooses the port, and opens output and input. The caller has set the first three members. */
void drive_open(struct drive *drive);
void drive_close(struct drive *drive);
/* Returns a copy of `text` with the port in place of "{port}", and the scenario's folder in place of "{here}". NULL: no
 * memory. The caller frees the copy. */
char *drive_expand(const struct drive *drive, const char *text);
/* Does the steps of a phase. Returns 0, or -1 with error set. */
int drive_phase(struct drive *drive, enum phase phase);

#endif
