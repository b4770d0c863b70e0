/* position.h — turns an offset in a text into line and column.
 * In: a text and an offset. Out: line and column, both counted from 1; each byte of a line is a column. */
#ifndef MEMSTOW_POSITION_H
#define MEMSTOW_POSITION_H

#include <stddef.h>

struct position {
    size_t line, column;
};

static inline struct position position_of(const char *text, size_t length, size_t offset) {
    struct position position = {1, 1};
    for (size_t i = 0; i < offset && i < length; i++) {
        position.column++;
        if (text[i] == '\n') position = (struct position){position.line + 1, 1};
    }
    return position;
}

#endif
