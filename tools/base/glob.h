/* glob.h — patterns for names. '*' matches any text, '?' one character, and '\' makes the next character literal.
 * In: a pattern and a text. Out: whether they match. Brackets are literal, because names of C++ are full of them. The
 * time for a match is limited by the product of both lengths. */
#ifndef MEMSTOW_GLOB_H
#define MEMSTOW_GLOB_H

#include <stdbool.h>

/* Whether the pattern matches the whole text. */
bool glob_matches(const char *pattern, const char *text);

#endif
