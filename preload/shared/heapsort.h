/* heapsort.h — sorts an array in place.
 * In: an array, and an order: a number for each record, or a function that compares two records. Out: the records in
 * that order. Equal records come in any order. It needs no memory of its own, and calls no function of libc. */
#ifndef MEMSTOW_HEAPSORT_H
#define MEMSTOW_HEAPSORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Defines the function `name`, which sorts `count` records of `type`. precedes(a, b, context): whether a comes before
 * b. */
#define HEAPSORT_BY(type, name, context_type, precedes)                                                                \
    static void name(type *all, size_t count, context_type *context) {                                                 \
        for (size_t start = count / 2, end = count; end > 1;) {                                                        \
            type moved;                                                                                                \
            if (start) {                                                                                               \
                moved = all[--start];                                                                                  \
            } else {                                                                                                   \
                moved = all[--end];                                                                                    \
                all[end] = all[0];                                                                                     \
            }                                                                                                          \
            size_t at = start;                                                                                         \
            for (size_t child; (child = 2 * at + 1) < end; at = child) {                                               \
                if (child + 1 < end && precedes(&all[child], &all[child + 1], context)) child++;                       \
                if (!precedes(&moved, &all[child], context)) break;                                                    \
                all[at] = all[child];                                                                                  \
            }                                                                                                          \
            all[at] = moved;                                                                                           \
        }                                                                                                              \
    }
/* Defines the function `name`, which sorts records by a number. key(record) gives the number of a record; its argument
 * is a `const type *`. */
#define HEAPSORT(type, name, key)                                                                                      \
    static inline bool name##_precedes(const type *a, const type *b, const void *none) {                               \
        (void)none;                                                                                                    \
        return key(a) < key(b);                                                                                        \
    }                                                                                                                  \
    HEAPSORT_BY(type, name##_by_key, const void, name##_precedes)                                                      \
    static void name(type *all, size_t count) { name##_by_key(all, count, NULL); }

#endif
