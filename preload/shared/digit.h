/* digit.h — digits of numbers in text.
 * In: a character. Out: the digit's value. It calls nothing, so hooks may use it. */
#ifndef MEMSTOW_DIGIT_H
#define MEMSTOW_DIGIT_H

#include <stdbool.h>

static inline bool digit_is_decimal(char c) { return c >= '0' && c <= '9'; }

/* The value of a hexadecimal digit (0-9, a-f, A-F); -1: the character is no such digit. */
static inline int digit_value(char c) {
    char small = (char)(c | 32);
    if (digit_is_decimal(c)) return c - '0';
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

#endif
