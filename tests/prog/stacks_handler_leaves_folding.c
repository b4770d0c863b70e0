// stacks_handler_leaves.c while stacks make room for each other: there are 32768 stacks, and memory for some 20,000.
// env: MEMSTOW_STACK_MEMORY=3000000
// needs: stacks
// timeout: 300
#define DEPTH 4
#define FOLDED_LEAST 10000
#include "stacks_handler_leaves.c"
