/* generation.h — says when memories of code and of stacks are no longer good. In: code that goes, ids of stacks that
 * may get another meaning. Out: two numbers. A thread notes them with what it remembers, and compares them later. It
 * must not wait for any thread to have seen them. */
#ifndef MEMSTOW_GENERATION_H
#define MEMSTOW_GENERATION_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Counts the dlclose calls: code addresses may mean something else after one. */
extern uint32_t generation_of_code;

/* Changes when what threads remember of their stacks is no longer good: code has gone, native or Python, or the ids of
 * stacks may come to mean others. */
extern uint32_t generation_of_stacks;
void generation_end_stacks(void);

#pragma GCC visibility pop

#endif
