/* move_end.h — how a move learns that it is to end.
 * In: a word, and the value that ends this move and no other. Out: whether the word has that value. The word must exist
 * as long as the process. (The frame of the caller, its thread and its request do not.) */
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
