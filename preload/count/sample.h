/* sample.h — --stacks=sample: chooses the blocks whose call stack is recorded.
 * In: the size of each new block. Out: whether it is a sample. Each allocated byte has the same chance to be picked,
 * independent of all others. A block is a sample when one of its bytes is picked: for a block of s bytes the
 * probability is 1 - exp(-s/sample_bytes). docs/stacks.md says how the report makes estimates from samples. */
#ifndef MEMSTOW_SAMPLE_H
#define MEMSTOW_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/count/thread.h"

#pragma GCC visibility push(hidden)

/* The mean distance between picked bytes; 0: stacks are not sampled. It is set before any thread has a slot. */
extern uint64_t sample_bytes;

/* The site of all blocks without a recorded stack: of every block when stacks are off, or of every block that is not a
 * sample. Tags still apply. 0: the stack of every block is recorded. It is set before any thread has a slot. */
extern uint32_t sample_here;

enum { SAMPLE_DEFAULT = 512 * 1024 };

/* When a thread gets its slot: draws the distance to the first picked byte. */
void sample_begin(struct thread *self);

/* Whether the next block of the calling thread, of this size, is a sample. */
bool sample_takes(uint64_t size);

/* The distance to the next picked byte, 1 or more. It is exponentially distributed, and at most 37 times the mean. */
uint64_t sample_distance(uint64_t *random, uint64_t mean);

#pragma GCC visibility pop

#endif
