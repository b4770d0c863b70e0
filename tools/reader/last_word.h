/* last_word.h — how the process of a ledger ended, as far as the ledger cannot know it itself.
 * In: the wait status of a process that is gone. Out: the same in the header of its ledger, beside what the process
 * said. It never writes to a file that a process may still be writing to. */
#ifndef MEMSTOW_LAST_WORD_H
#define MEMSTOW_LAST_WORD_H

#include "tools/image/image.h"
#include "tools/base/text.h"

#include <sys/types.h>

/* Looks for the ledger of the program among the files of its run in a folder; where there is none, nothing happens.
 * `status` is what waitpid said. */
void last_word_write(const char *directory, const uint8_t run_id[16], pid_t pid, int status);

/* "exited with 3, by a system call that memstow does not see", "was killed by SIGKILL", or that neither is known: of a
 * ledger whose process is gone and did not say that it ends. */
struct text_line last_word_of_untold(const struct snap_header *header);
/* Whether the process of a ledger is gone and did not say that it ends. */
bool last_word_is_untold(const struct image *image);
/* "SIGTERM" */
struct text last_word_signal(int number);

#endif
