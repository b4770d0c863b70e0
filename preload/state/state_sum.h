/* state_sum.h — the checksum of a value that outlives the process in a file (below a prefix).
 * In: the bytes of the value, in order, in pieces of whole pages. Out: the checksum. A change of the bytes almost
 * certainly changes the checksum; another division into pieces does not. */
#ifndef MEMSTOW_STATE_SUM_H
#define MEMSTOW_STATE_SUM_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { STATE_SUM_LANES = 16 };

struct state_sum {
    uint64_t lanes[STATE_SUM_LANES];
};

void state_sum_add(struct state_sum *self, const void *pages, uint64_t length);
uint64_t state_sum_value(const struct state_sum *self);

#pragma GCC visibility pop

#endif
