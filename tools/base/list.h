/* list.h — arrays that grow.
 * In: an array that malloc made, or NULL, with its count and its capacity. Out: the array, perhaps elsewhere, with
 * capacity for more items. If there is no memory, the array stays as it is. */
#ifndef MEMSTOW_LIST_H
#define MEMSTOW_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Makes capacity for `more` items behind the first `count`. `list` is the address of the pointer to the array. False:
 * there is no memory. */
bool list_grow(void *list, size_t item_size, size_t count, size_t more, size_t *capacity);

/* Makes capacity for one more item behind the first `count`. `list` and `capacity` must be variables, because the macro
 * takes their addresses. */
#define LIST_GROW(list, count, capacity) list_grow(&(list), sizeof *(list), (count), 1, &(capacity))

#endif
