/* outfile.h — files that memstow writes: checks which existing file may be replaced, and makes a new one appear whole.
 * In: a path. Out: a refusal with its reason, or an open temporary file beside the path. It never follows a symbolic
 * link and never leaves half a file behind. */
#ifndef MEMSTOW_OUTFILE_H
#define MEMSTOW_OUTFILE_H

#include "tools/base/new_file.h"

#include <stddef.h>

/* Checks whether memstow may write a file at the path. Returns 0, or -1 with "PATH: why" in error. Reasons are, for
 * example: the directory is not writable; the file at the path belongs to another user, has another format, or is in
 * use. */
int outfile_check(const char *path, char *error, size_t error_size);

/* outfile_begin() checks the path, and opens a temporary file. outfile_end() moves that file to the path, or removes it
 * if `keep` is false. Both return 0, or -1 with "PATH: why" in error. */
int outfile_begin(struct new_file *file, const char *path, char *error, size_t error_size);
int outfile_end(struct new_file *file, bool keep, char *error, size_t error_size);

#endif
