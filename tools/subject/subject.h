/* subject.h — loads an image from the argument FILE|PID of a subcommand.
 * In: an argument. Out: an image, with measured residency if the process runs; or an error message. */
#ifndef MEMSTOW_SUBJECT_H
#define MEMSTOW_SUBJECT_H

#include "tools/image/image.h"

#include <sys/types.h>

struct subject {
    struct image image;
    char file[4096]; /* path of the ledger; "": it is in memory only */
    pid_t pid;       /* 0 unless the process runs */
};

/* Loads a file or a process. An argument that is a number is a PID; ./NUMBER is a file of that name. Returns 0, or an
 * exit code after an error message. */
int subject_open(struct subject *subject, const char *argument, bool with_residency);
int subject_open_pid(struct subject *subject, pid_t pid, bool with_residency);
/* Like subject_open_pid with residency, but loads only the figures of the ledger (image_load_figures). */
int subject_open_figures(struct subject *subject, pid_t pid);
/* subject_check_order is called for several files of one process, one after the other. It checks that each file
 * continues the previous file, and notes the file in `before` for the next call. Before the first call, `before` is all
 * zeros. Returns 0, or an exit code after an error message of the command. */
struct subject_before {
    struct snap_header header;
    uint64_t taken_ns; /* 0: there is no file before it */
};
int subject_check_order(const char *command, const struct subject *subject, const char *argument,
                        struct subject_before *before);
void subject_close(struct subject *subject);

#endif
