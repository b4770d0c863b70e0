/* glob.h — patterns for names. '*' is any text, '?' one character, '\' takes the next one as it is; brackets are
 * themselves, because names of C++ are full of them. Pure, and its time is bounded by the product of both lengths. */
#ifndef MEMSTOW_GLOB_H
#define MEMSTOW_GLOB_H

#include <stdbool.h>

/* The whole text has to match. */
bool glob_matches(const char *pattern, const char *text);

#endif
