/* new_file.h — makes a file appear whole or not at all.
 * In: a path, and what is written to the stream. Out: the file, in place of one with that name; or the error, and no
 * file. It never looks at what it replaces: its callers decide that. */
#ifndef MEMSTOW_NEW_FILE_H
#define MEMSTOW_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct new_file {
    FILE *stream;
    const char *path;
    char temporary[4200]; /* beside the path; "": the stream writes to the path itself */
};

/* Opens the stream. If `for_all`, others may read the file as one that the shell makes; otherwise its owner alone.
 * Returns 0, or an errno. */
int new_file_begin(struct new_file *file, const char *path, bool for_all);
/* Closes the stream; if `keep`, and all was written, the file gets its name. Returns 0, or the errno of what failed
 * first. */
int new_file_end(struct new_file *file, bool keep);
/* The reason for people. */
const char *new_file_why(int error);

#endif
