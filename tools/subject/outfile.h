/* outfile.h — files that memstow writes: which existing ones may be replaced, and how a new one appears at once
 * and whole. In: a path. Out: a refusal in words, or an open temporary file beside it. It never follows a symbolic
 * link and never leaves half a file behind. */
#ifndef MEMSTOW_OUTFILE_H
#define MEMSTOW_OUTFILE_H

#include <stddef.h>
#include <stdio.h>

/* 0, or -1 with "PATH: why" in error: it is not ours, not a memstow file, in use, or its directory is no good. */
int outfile_check(const char *path, char *error, size_t error_size);

struct outfile {
    FILE *stream;
    const char *path;
    char temporary[4200];
};

int outfile_begin(struct outfile *file, const char *path, char *error, size_t error_size);
int outfile_commit(struct outfile *file, char *error, size_t error_size);
void outfile_abandon(struct outfile *file);

#endif
