/* generation.h — numbers that change when data that threads remember about code and stacks is no longer valid.
 * In: code that is unloaded, ids of stacks that may get another meaning. Out: two numbers. A thread notes the numbers
 * with the data that it remembers, and compares them later. The thread that changes a number never waits until other
 * threads have seen the change. */
#ifndef MEMSTOW_GENERATION_H
#define MEMSTOW_GENERATION_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Changes before and after each dlclose, because a code address may then get another meaning. */
extern uint32_t generation_of_code;

/* How many dlcloses are under way. */
extern uint32_t generation_unloading;

/* Changes when data that threads remember about their stacks is no longer valid: native or Python code is gone, or ids
 * of stacks may now mean other stacks. */
extern uint32_t generation_of_stacks;
void generation_end_stacks(void);

#pragma GCC visibility pop

#endif
