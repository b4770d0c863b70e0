/* records.h — a record of CUPTI's, of whichever version, in one shape.
 * In: a buffer, as CUPTI handed it over. Out: each record of it, with zeros for what its version lacks. Records grow at
 * their end, and none says its length: that is how far it is to the next one. */
#ifndef MEMSTOW_CUPTI_RECORDS_H
#define MEMSTOW_CUPTI_RECORDS_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

/* CUPTI's function for it. */
typedef int records_next(uint8_t *buffer, size_t valid, void **record);

struct records_readers {
    void (*memory)(const struct cupti_memory *record);
    void (*pool)(const struct cupti_pool *record);
    void (*used)(void);             /* called before one that says how much of a pool is in use: older ones do not */
    void (*unknown)(uint32_t kind); /* also one that is shorter than any known version of its kind */
};
void records_read(uint8_t *buffer, size_t valid, records_next *next, const struct records_readers *to);

#pragma GCC visibility pop

#endif
