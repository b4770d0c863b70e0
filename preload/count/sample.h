/* sample.h — --stacks=sample: chooses the blocks whose call stack is recorded. In: the size of each new block. Out:
 * whether it is a sample. Each allocated byte has the same chance to be picked, whichever bytes were picked before, and
 * a block is a sample when one of its bytes is: a block of s bytes with probability 1 - exp(-s/sample_bytes).
 * docs/stacks.md says how estimates are made of that. */
#ifndef MEMSTOW_SAMPLE_H
#define MEMSTOW_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/count/thread.h"

#pragma GCC visibility push(hidden)

/* Mean distance between picked bytes; 0: stacks are not sampled. Set before any thread has a slot. */
extern uint64_t sample_bytes;

/* Without call stacks there is one site a tag, and no look-up; while they are sampled, it is that of all other blocks.
 * 0 when each has its stack. Set before any thread has a slot. */
extern uint32_t sample_here;

enum { SAMPLE_DEFAULT = 512 * 1024 };

/* At the time when a thread gets its slot: how far it is to the first byte that is picked. */
void sample_begin(struct thread *self);

/* Whether the calling thread's next block, which is this large, is a sample. */
bool sample_takes(uint64_t size);

/* How far it is to the next byte that is picked, 1 or more: exponentially distributed, 37 times the mean at most. */
uint64_t sample_distance(uint64_t *random, uint64_t mean);

#pragma GCC visibility pop

#endif
