/* move_end.h — how a move learns that it must stop early.
 * In: the address of a word, and a value that no other move has. Out: whether the word has this value. If it does,
 * the move must stop. The word must exist as long as the process, so it cannot be in a stack frame, in a thread's
 * storage or in a request. */
#ifndef MEMSTOW_MOVE_END_H
#define MEMSTOW_MOVE_END_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/shared/os.h"

struct move_end {
    const uint64_t *word; /* NULL: nothing ends the move early */
    uint64_t value;
};

static inline bool move_is_ended(struct move_end end) { return end.word && os_load(end.word) == end.value; }

#endif
