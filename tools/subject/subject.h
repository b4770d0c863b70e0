/* subject.h — FILE|PID, as report and diff take it → image.
 * In: an argument. Out: an image, with residency measured when the process is there; or a complaint. */
#ifndef MEMSTOW_SUBJECT_H
#define MEMSTOW_SUBJECT_H

#include "tools/image/image.h"

#include <sys/types.h>

struct subject {
    struct image image;
    char file[4096]; /* of the ledger; "" when it is in memory only */
    pid_t pid;       /* 0 unless the process runs */
};

/* 0, or an exit code after complaining. A number is a PID; a file of that name is ./NUMBER. */
int subject_open(struct subject *subject, const char *argument, bool with_residency);
int subject_open_pid(struct subject *subject, pid_t pid, bool with_residency);
void subject_close(struct subject *subject);

#endif
