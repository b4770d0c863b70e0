/* leftovers.h — describes the remains of a program that should be gone.
 * In: the program's family and its traces. family_mark was called when the program should have ended. Out: text. */
#ifndef MEMSTOW_LEFTOVERS_H
#define MEMSTOW_LEFTOVERS_H

#include "tools/watch/family.h"
#include "tools/watch/traces.h"

#include <stdio.h>

/* Prints for each process: memory, growth by call stack, threads and what they wait for, open files and the like. */
void leftovers_print(FILE *to, struct family *family);
/* The number of threads that Python waits for at its end, in all live processes. */
size_t leftovers_python_threads(const struct family *family);
/* Prints a line such as "left alive, as asked: server (pid 12)". Prints nothing if no exempt process is alive. */
void leftovers_print_exempt(FILE *to, const struct family *family);
/* Prints things that outlive the processes; call it after traces_settle. */
void leftovers_print_traces(FILE *to, const struct traces *traces);

#endif
