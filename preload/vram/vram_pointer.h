/* vram_pointer.h — answers attribute queries for addresses of served memory: as cudaMalloc's, or a pool's, would be.
 * In: an address, and an attribute (CUpointer_attribute). Out: the answer, where the driver's own would be that of one
 * mapped piece, or of nothing while the block is out. Any thread. docs/moving.md has the list. */
#ifndef MEMSTOW_VRAM_POINTER_H
#define MEMSTOW_VRAM_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The block that an address lies in, as it was asked for; false: it is none of ours. */
bool vram_pointer_range(uint64_t address, uint64_t *start, uint64_t *bytes);

struct vram_answer {
    uint64_t value;
    uint32_t bytes; /* so wide is it; 0: as wide as the driver writes it: it has done so, or can be made to write 0 */
    bool is_out;    /* the driver knows nothing of the address */
};
/* False: the driver's answer holds. */
bool vram_pointer_ask(int which, uint64_t address, struct vram_answer *answer);

/* A program that asks for this, or sets it, is about to tell a network card where the memory is. */
bool vram_pointer_registers(int which, bool sets);

#pragma GCC visibility pop

#endif
