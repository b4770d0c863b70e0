/* changes.c — see changes.h. The loops are simple, so that the compiler vectorises them. */
#include "tools/top/changes.h"

enum { LOW_BITS = 48 };

struct changes_sum changes_of_chunk(const uint64_t words[SNAP_CHUNK_SITES]) {
    const uint64_t mask = ((uint64_t)1 << LOW_BITS) - 1;
    struct changes_sum sum = {0, 0};
    for (size_t i = 0; i < SNAP_CHUNK_SITES; i++) {
        sum.low += words[i] & mask;
        sum.high += words[i] >> LOW_BITS;
    }
    return sum;
}

bool changes_same(struct changes_sum a, struct changes_sum b) { return a.low == b.low && a.high == b.high; }

uint64_t changes_of_wide(const uint64_t *words, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += words[i];
    return sum;
}
