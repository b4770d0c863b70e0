/* place_in.h — turns an offset in a text into line and column.
 * In: a text and an offset. Out: line and column, both from 1; a column is a byte. */
#ifndef MEMSTOW_PLACE_IN_H
#define MEMSTOW_PLACE_IN_H

#include <stddef.h>

struct place_in {
    size_t line, column;
};

static inline struct place_in place_in(const char *text, size_t length, size_t offset) {
    struct place_in place = {1, 1};
    for (size_t i = 0; i < offset && i < length; i++) {
        place.column++;
        if (text[i] == '\n') place = (struct place_in){place.line + 1, 1};
    }
    return place;
}

#endif
