/* top.c — see top.h. A heap holds the first `most` elements found so far. Its top is the last of them in order. */
#include "tools/base/top.h"
#include "tools/base/size.h"

#include <stdint.h>
#include <stdlib.h>

bool top_parse(const char *string, size_t *most) { return size_parse_count(string, 0, SIZE_MAX, most); }

struct heap {
    char *base;
    size_t count, size;
    int (*compare)(const void *left, const void *right, void *context);
    void *context;
};

static char *at(const struct heap *heap, size_t index) { return heap->base + index * heap->size; }

static void swap(char *a, char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        char byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

static void sift_down(const struct heap *heap, size_t index) {
    for (size_t child; (child = 2 * index + 1) < heap->count; index = child) {
        if (child + 1 < heap->count && heap->compare(at(heap, child), at(heap, child + 1), heap->context) < 0) child++;
        if (heap->compare(at(heap, index), at(heap, child), heap->context) >= 0) return;
        swap(at(heap, index), at(heap, child), heap->size);
    }
}

void top_sort(void *base, size_t count, size_t size, size_t most,
              int (*compare)(const void *left, const void *right, void *context), void *context) {
    struct heap heap = {base, most, size, compare, context};
    if (count == 0 || most == 0) return;
    if (most >= count / 8) { /* if few would be left out, sorting all is cheaper */
        qsort_r(base, count, size, compare, context);
        return;
    }
    for (size_t i = most / 2; i-- > 0;) sift_down(&heap, i);
    for (size_t i = most; i < count; i++) {
        if (compare(at(&heap, i), base, context) >= 0) continue;
        swap(at(&heap, i), base, size);
        sift_down(&heap, 0);
    }
    qsort_r(base, most, size, compare, context);
}
