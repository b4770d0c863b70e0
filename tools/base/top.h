/* top.h — sorts only the first few of many.
 * In: an array and a comparison as for qsort_r. Out: the same elements; only the first `most` are sorted. A screen
 * that shows some of a million sites needs no more. */
#ifndef MEMSTOW_TOP_H
#define MEMSTOW_TOP_H

#include <stdbool.h>
#include <stddef.h>

enum { TOP_DEFAULT = 10 };

/* Parses a number for --top. False: the text is not one. */
bool top_parse(const char *string, size_t *most);

/* Sorts the first `most` of `count` elements of `size` bytes each; the others follow in any order. */
void top_sort(void *base, size_t count, size_t size, size_t most,
              int (*compare)(const void *left, const void *right, void *context), void *context);

#endif
