/* leftovers.h — who is still there though the program should be gone, in words for people.
 * In: a family that was marked when it should have ended, and its traces. Out: text. */
#ifndef MEMSTOW_LEFTOVERS_H
#define MEMSTOW_LEFTOVERS_H

#include "tools/watch/family.h"
#include "tools/watch/traces.h"

#include <stdio.h>

/* Each process: memory, growth and where that comes from, threads and what they wait in, what it has open. */
void leftovers_print(FILE *to, struct family *family);
/* How many threads Python waits for at its end, in all that are there. */
size_t leftovers_python_threads(const struct family *family);
/* "left alive, as asked: server (pid 12)", and an end of line; nothing when nobody is spared that is alive. */
void leftovers_print_spared(FILE *to, const struct family *family);
/* What outlives the processes; after traces_settle. */
void leftovers_print_traces(FILE *to, const struct traces *traces);

#endif
