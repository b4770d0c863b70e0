/* records.h — records of any version of CUPTI, in one form.
 * In: a buffer, as CUPTI handed it over. Out: each record in it, with zeros for fields that its version lacks. Records
 * of newer versions are longer. No record tells its length, so the length is taken from the distance to the next
 * record. */
#ifndef MEMSTOW_CUPTI_RECORDS_H
#define MEMSTOW_CUPTI_RECORDS_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

/* CUPTI's function that finds the next record. */
typedef int records_next(uint8_t *buffer, size_t valid, void **record);

struct records_readers {
    void (*memory)(const struct cupti_memory *record);
    void (*pool)(const struct cupti_pool *record);
    /* Called before each record that has a field for how much of a pool is in use. Older records have none. */
    void (*used)(void);
    /* Called for a record of an unknown kind, and for a record that is shorter than any known version. */
    void (*unknown)(uint32_t kind);
};
void records_read(uint8_t *buffer, size_t valid, records_next *next, const struct records_readers *to);

#pragma GCC visibility pop

#endif
