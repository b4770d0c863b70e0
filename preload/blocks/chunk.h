/* chunk.h — notices damage of glibc's header, in front of a block that has no header of ours.
 * In: a new block, and later the 16 bytes in front of it. Out: the block's mark for the table of large blocks, with a
 * check sum of glibc's header; whether that header has changed since. It must not read in front of a block of another
 * allocator. */
#ifndef MEMSTOW_CHUNK_H
#define MEMSTOW_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Whether glibc made a mapping for a large block. Our malloc gives such a block no header of ours, so glibc's header
 * lies at the very start of the mapping, just as without memstow. */
bool chunk_is_mapped(const void *raw, uint64_t size);
/* The mark of a new block without a header of ours. If glibc made a mapping for the block, the mark holds a check sum
 * of glibc's header. */
uint32_t chunk_mark(const void *p, uint64_t size);
/* Whether `chunk`, the 16 bytes in front of a block with this mark, has changed. False if the mark holds no check
 * sum. */
bool chunk_changed(uint32_t mark, const uint64_t chunk[2]);

#pragma GCC visibility pop

#endif
