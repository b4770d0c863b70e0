/* move_end.h — how a move learns that it is to end.
 * In: a word, and the value that ends this move and no other. Out: whether it has come. The word stays where it is for
 * as long as the process lives: neither the frame of who asks for a move, nor its thread, nor its request does. */
#ifndef MEMSTOW_MOVE_END_H
#define MEMSTOW_MOVE_END_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/shared/os.h"

struct move_end {
    const uint64_t *word; /* NULL: it ends when it is done */
    uint64_t value;
};

static inline bool move_is_ended(struct move_end end) { return end.word && os_load(end.word) == end.value; }

#endif
