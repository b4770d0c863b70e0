/* program.h — tells from a program's file whether the program can be preloaded.
 * In: a command or a path. Out: a verdict and a sentence for people. It never runs anything. */
#ifndef MEMSTOW_PROGRAM_H
#define MEMSTOW_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum program_verdict {
    PROGRAM_FINE,
    PROGRAM_STATIC,         /* static, or for another machine: it does not use the loader that would load memstow */
    PROGRAM_MUSL,           /* its loader loads memstow's library, and then refuses to start the program */
    PROGRAM_PRIVILEGED,     /* setuid, setgid or with capabilities: the loader ignores LD_PRELOAD */
    PROGRAM_NO_INTERPRETER, /* a script that cannot run, because its interpreter does not exist */
};

/* Finds a command as execvp does. Returns 0 and its path, or an errno, such as ENOENT or EACCES. */
int program_find(const char *command, char *path, size_t size);

/* Judges the program at `path`. note: what a message says behind the program's name, such as "is a static program …".
 * For PROGRAM_NO_INTERPRETER, note is the path of the missing interpreter; for PROGRAM_FINE, it is "". */
enum program_verdict program_look(const char *path, char *note, size_t size);

/* Whether the program is linked with a library whose name begins with `library`. */
bool program_is_linked_with(const char *path, const char *library);

#endif
