/* room.h — arrays that grow.
 * In: an array, how many items it has room for, how many it needs. Out: the array, larger; what was in it is kept. Its
 * owner alone may call; in any hook. The memory before is lost, which at most doubles the use. */
#ifndef MEMSTOW_ROOM_H
#define MEMSTOW_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* `items` points to the pointer to the array. False: there is no memory, or it would be larger than is allowed. */
bool room_grow(void *items, uint32_t *room, uint32_t need, size_t each);

#define ROOM_FOR(self, name, size, need)                                                                               \
    (likely((need) <= (self)->size) || room_grow(&(self)->name, &(self)->size, need, sizeof *(self)->name))

#pragma GCC visibility pop

#endif
