/* whole_file.h — reads a small file whole.
 * In: a path that is not trusted. Out: the bytes, followed by a NUL; or the reason why it cannot be read. It never
 * waits for a pipe or a terminal. */
#ifndef MEMSTOW_WHOLE_FILE_H
#define MEMSTOW_WHOLE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

struct whole_file {
    char *text; /* whole_file_read allocates it; the caller frees it */
    size_t length;
    struct stat st;
    char why[80];
};

/* Reads a file of at most this many MiB. Returns 0, or -1 with `why` set: the file is not regular, is longer, or cannot
 * be read. */
int whole_file_read(struct whole_file *file, const char *path, size_t most_mib);

#endif
