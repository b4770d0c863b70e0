/* heapsort.h — sorts an array in place.
 * In: an array, and a number for each record. Out: the records in ascending order of that number; records with equal
 * numbers in any order. It needs no memory of its own, and calls no function of libc. */
#ifndef MEMSTOW_HEAPSORT_H
#define MEMSTOW_HEAPSORT_H

#include <stddef.h>
#include <stdint.h>

/* Sorts `count` records of `type` by the number that `key` makes of a `const type *`. */
#define HEAPSORT(type, name, key)                                                                                      \
    static void name(type *all, size_t count) {                                                                        \
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
                if (child + 1 < end && key(&all[child]) < key(&all[child + 1])) child++;                               \
                if (key(&moved) >= key(&all[child])) break;                                                            \
                all[at] = all[child];                                                                                  \
            }                                                                                                          \
            all[at] = moved;                                                                                           \
        }                                                                                                              \
    }

#endif
