/* last_word.h — how the process of a ledger ended, if the process itself could not record it.
 * In: the wait status of a process that is gone. Out: that status in the header of its ledger. It never writes to a
 * file that a process may still write to. */
#ifndef MEMSTOW_LAST_WORD_H
#define MEMSTOW_LAST_WORD_H

#include "tools/image/image.h"
#include "tools/base/text.h"

#include <sys/types.h>

/* Finds the ledgers of the process `pid` of the run `run_id` in the folder `path`. Writes `status`, which waitpid gave,
 * into the newest of them. The older ones are of programs that the process replaced by exec. If an older one still says
 * that its program runs, gives it the state SNAP_EXECED. Does nothing if there is no ledger. */
void last_word_write(const char *path, const uint8_t run_id[16], pid_t pid, int status);

/* Says in words how the process of a ledger ended. Meaningful only if the process is gone and did not record its end.
 * Returns for example "exited with 3, by a system call that memstow does not see", or "was killed by SIGKILL". If
 * neither a status nor a signal is known, returns "ended unseen, by a raw exit or a signal". */
struct text_line last_word_of_untold(const struct snap_header *header);
/* Whether the process of a ledger is gone and did not record its end. */
bool last_word_is_untold(const struct image *image);
/* The name of a signal, such as "SIGTERM". If the signal has no name, the result is its number, as in "signal 40". */
struct text last_word_signal(int number);

#endif
