/* top.c — see top.h. */
#include "tools/base/top.h"
#include "tools/base/size.h"

#include <stdint.h>
#include <stdlib.h>

bool top_parse(const char *string, size_t *most) { return size_parse_count(string, 0, SIZE_MAX, most); }

static void top_swap(char *a, char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        char byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* While the loop runs, the first `most` elements are the leaders, in order. Behind them come candidates: elements that
 * belong before the last leader. Once there are `most` candidates, leaders and candidates are sorted together. The
 * first `most` of them are the new leaders, and candidates are collected anew. */
void top_sort(void *base, size_t count, size_t size, size_t most,
              int (*compare)(const void *left, const void *right, void *context), void *context) {
    if (count == 0 || most == 0) return;
    if (most >= count / 8) { /* if `most` is a large part of `count`, sorting everything is cheaper */
        qsort_r(base, count, size, compare, context);
        return;
    }
    char *last = (char *)base + (most - 1) * size, *at = last + size;
    size_t taken = most;
    qsort_r(base, most, size, compare, context);
    for (size_t i = most; i < count; i++, at += size) {
        if (compare(at, last, context) >= 0) continue;
        top_swap(at, (char *)base + taken++ * size, size);
        if (taken < 2 * most) continue;
        qsort_r(base, taken, size, compare, context);
        taken = most;
    }
    qsort_r(base, taken, size, compare, context);
}
