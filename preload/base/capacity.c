/* capacity.c — see capacity.h. */
#include "preload/base/capacity.h"

#include <string.h>

#include "preload/base/arena.h"

enum { FIRST_ITEMS = 128, LAST_ITEMS = 1 << 20 };

bool capacity_grow(void *items, uint32_t *capacity, uint32_t need, size_t each) {
    uint32_t larger = *capacity ? *capacity : FIRST_ITEMS;
    while (larger < need && larger < LAST_ITEMS) larger *= 2;
    void *before = *(void **)items, *memory = larger < need ? NULL : arena_take(larger * each);
    if (!memory) return false;
    if (*capacity) memcpy(memory, before, *capacity * each);
    *(void **)items = memory;
    /* `capacity` is written last. A signal handler may leave by longjmp here, and `capacity` must never exceed the
     * memory that is there. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *capacity = larger;
    arena_note_grown();
    return true;
}
