/* program.h — can this program be preloaded? What its file says before it runs.
 * In: a command or a path. Out: a verdict and a sentence for people. It never runs anything. */
#ifndef MEMSTOW_PROGRAM_H
#define MEMSTOW_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum program_verdict {
    PROGRAM_FINE,
    PROGRAM_STATIC,         /* static, 32-bit: the loader that would load us is not there */
    PROGRAM_MUSL,           /* its loader does load us, and then refuses to start the program */
    PROGRAM_PRIVILEGED,     /* setuid, setgid or with capabilities: the loader ignores LD_PRELOAD */
    PROGRAM_NO_INTERPRETER, /* a script whose interpreter is not there: it cannot run at all */
};

/* Finds a command as execvp does: 0 and its path, or ENOENT, EACCES. */
int program_find(const char *command, char *path, size_t size);

/* note: "is a static program …", to follow the program's name; the interpreter that is not there. */
enum program_verdict program_look(const char *path, char *note, size_t size);

/* Whether a library whose name begins so is among those that the program is linked with. */
bool program_is_linked_with(const char *path, const char *library);

#endif
