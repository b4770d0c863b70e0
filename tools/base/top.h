/* top.h — the first few of many, in order. In: an array and a comparison as for qsort_r. Out: the same elements, of
 * which only the first `most` are sorted: a screen of a million sites needs no more. */
#ifndef MEMSTOW_TOP_H
#define MEMSTOW_TOP_H

#include <stdbool.h>
#include <stddef.h>

enum { TOP_DEFAULT = 10 };

/* A number, as --top takes it. */
bool top_parse(const char *string, size_t *most);

void top_sort(void *base, size_t count, size_t size, size_t most,
              int (*compare)(const void *left, const void *right, void *context), void *context);

#endif
