/* last_word.h — how the process of a ledger ended, if the process itself could not record it.
 * In: the wait status of a process that is gone. Out: that status in the header of its ledger. It never writes to a
 * file that a process may still write to. */
#ifndef MEMSTOW_LAST_WORD_H
#define MEMSTOW_LAST_WORD_H

#include "tools/image/image.h"
#include "tools/base/text.h"

#include <sys/types.h>

/* Finds the ledgers of a process among the files of its run in the folder `path`, and writes `status` of waitpid into
 * the last ledger. If an earlier ledger says that its program runs, that program was replaced by exec, and the ledger
 * says so from now on. If there is no ledger, it does nothing. */
void last_word_write(const char *path, const uint8_t run_id[16], pid_t pid, int status);

/* How the process of a ledger ended, if it is gone and did not record its end: "exited with 3, by a system call that
 * memstow does not see", "was killed by SIGKILL", or that memstow knows neither a status nor a signal. */
struct text_line last_word_of_untold(const struct snap_header *header);
/* Whether the process of a ledger is gone and did not record its end. */
bool last_word_is_untold(const struct image *image);
/* "SIGTERM" */
struct text last_word_signal(int number);

#endif
