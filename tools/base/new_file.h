/* new_file.h — makes a file appear whole or not at all.
 * In: a path, and the text that the caller writes to the stream. Out: the file, which replaces an existing one; or an
 * error, and no change. The caller decides whether a file may be replaced. */
#ifndef MEMSTOW_NEW_FILE_H
#define MEMSTOW_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct new_file {
    FILE *stream;
    const char *path;
    char temporary[4200]; /* the file that is written, beside `path`; "": the stream writes to `path` itself */
};

/* Opens the stream. With `for_all`, the file gets the mode that a shell would give it; otherwise only its owner can
 * read it. Returns 0, or an errno. */
int new_file_begin(struct new_file *file, const char *path, bool for_all);
/* Closes the stream. If `keep` is true and everything was written, renames the temporary file to `path`; otherwise
 * removes it. Returns 0, or the errno of the first failure. */
int new_file_end(struct new_file *file, bool keep);
/* Whether the path has a file that memstow wrote, such as a ledger. A command must not replace such a file by a file of
 * another format. */
bool new_file_is_memstow(const char *path);
/* The errno as text for people. */
const char *new_file_why(int error);

#endif
