/* capacity.h — arrays that grow.
 * In: an array, how many items it has memory for (its capacity), how many it needs. Out: the same items in a larger
 * array. Only the thread that changes the array may call this; it may do so inside a hook. The old memory is never
 * freed. All old arrays together take less memory than the present one. */
#ifndef MEMSTOW_CAPACITY_H
#define MEMSTOW_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* Makes the array larger, so that it can hold `need` items. `items` points to the pointer to the array. `each` is the
 * size of an item in bytes. False: there is no memory, or `need` is more than 2^20 items. */
bool capacity_grow(void *items, uint32_t *capacity, uint32_t need, size_t each);

/* Makes sure that the array `name` of *self, whose capacity is the member `size`, can hold `need` items. False: as in
 * capacity_grow. */
#define CAPACITY_FOR(self, name, size, need)                                                                           \
    (likely((need) <= (self)->size) || capacity_grow(&(self)->name, &(self)->size, need, sizeof *(self)->name))

#pragma GCC visibility pop

#endif
