/* room.c — see room.h. */
#include "preload/base/room.h"

#include <string.h>

#include "preload/base/arena.h"

enum { FIRST_ITEMS = 128, LAST_ITEMS = 1 << 20 };

bool room_grow(void *items, uint32_t *room, uint32_t need, size_t each) {
    uint32_t larger = *room ? *room : FIRST_ITEMS;
    while (larger < need && larger < LAST_ITEMS) larger *= 2;
    void *before = *(void **)items, *memory = larger < need ? NULL : arena_take(larger * each);
    if (!memory) return false;
    if (*room) memcpy(memory, before, *room * each);
    *(void **)items = memory;
    /* A handler may leave by longjmp here: `room` must never be more than there is. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *room = larger;
    arena_note_grown();
    return true;
}
