/* serve_pointer.h — answers queries for attributes of an address in served memory as if it were memory of cudaMalloc or
 * of a pool.
 * In: an address, and an attribute (CUpointer_attribute). Out: the answer, where the driver's own answer would be about
 * one mapped piece of the block, or would fail because the block is off its device. Any thread may call. docs/moving.md
 * lists the attributes. */
#ifndef MEMSTOW_SERVE_POINTER_H
#define MEMSTOW_SERVE_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Finds the block that contains an address: its start, and its size as requested. False: memstow serves no such
 * block. */
bool serve_pointer_range(uint64_t address, uint64_t *start, uint64_t *bytes);

struct serve_answer {
    uint64_t value;
    /* The width of the answer in bytes. 0: only the driver knows the width. In this case the caller first lets the
     * driver write an answer, and then overwrites the first byte of that answer with `value` (0 or 1). */
    uint32_t bytes;
    bool is_out; /* the block is off its device, so the driver does not know the address */
};
/* Finds our answer for an attribute of an address. False: the driver's answer is right. */
bool serve_pointer_ask(int which, uint64_t address, struct serve_answer *answer);

/* Whether a program that asks for this attribute is about to tell a network card where the memory is. If `sets` is
 * true, the program sets the attribute instead of asking for it. */
bool serve_pointer_registers(int which, bool sets);

#pragma GCC visibility pop

#endif
