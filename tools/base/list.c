/* list.c — see list.h. */
#include "tools/base/list.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 16 };

bool list_grow(void *list, size_t item_size, size_t count, size_t more, size_t *capacity) {
    void *array;
    if (count + more <= *capacity) return true;
    size_t wanted = *capacity ? 2 * *capacity : LEAST;
    while (wanted < count + more) wanted *= 2;
    memcpy(&array, list, sizeof array); /* a pointer of another type must not be read as a void * */
    array = reallocarray(array, wanted, item_size);
    if (!array) return false;
    memcpy(list, &array, sizeof array);
    *capacity = wanted;
    return true;
}
