/* shutdown_file.h — the files of a shutdown: its log, and the list of its processes.
 * In: a name, or a descriptor. Out: an absolute path, and whether the file may grow. It makes only system calls. */
#ifndef MEMSTOW_SHUTDOWN_FILE_H
#define MEMSTOW_SHUTDOWN_FILE_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

enum { SHUTDOWN_PATH = 4096 };

/* Writes `name` as an absolute path to `to`, which has room for SHUTDOWN_PATH bytes. A relative `name` begins in the
 * present folder. Returns false if the path is too long. The log and the list have such paths. */
bool shutdown_file_path(char *to, const char *name);
/* Whether RLIMIT_FSIZE allows `by` more bytes in the file. */
bool shutdown_file_may_grow(int fd, size_t by);

#pragma GCC visibility pop

#endif
