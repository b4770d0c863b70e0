// A hundred million operations of random_operations.c.
// long
// run:
// run: --allocator=mimalloc
// env: OPERATIONS=100000000
// timeout: 3600
#include "random_operations.c"
