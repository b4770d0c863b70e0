/* errand.h — a command of memstow that runs beside top: a snapshot, or a request to the process.
 * In: the words of the command. Out: the last line that the command writes. The command is a process of its own, so the
 * screen goes on, and a fault of the command does not end top. */
#ifndef MEMSTOW_TOP_ERRAND_H
#define MEMSTOW_TOP_ERRAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct errand {
    pid_t pid; /* 0: none is under way */
    int from;  /* a pipe from its standard output and standard error */
    char said[1024];
    size_t length;
};

/* `words` ends with NULL, and begins with the name of the command. False: it could not be started; errno says why. */
bool errand_start(struct errand *errand, const char *const *words);
/* Reads the command's output. True: the command has just ended, and `said` has its last line, made printable. */
bool errand_poll(struct errand *errand);
/* Forgets the command, which goes on by itself. */
void errand_leave(struct errand *errand);

#endif
