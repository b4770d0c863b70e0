/* generation.c — see generation.h. */
#include "preload/stacks/generation.h"

uint32_t generation_of_code, generation_unloading, generation_of_stacks;

void generation_end_stacks(void) { __atomic_fetch_add(&generation_of_stacks, 1, __ATOMIC_SEQ_CST); }
