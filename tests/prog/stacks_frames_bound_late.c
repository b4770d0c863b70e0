// Call stacks through a procedure linkage table that is bound as it is used.
// needs: stacks
// build: -O2 -fplt -Wl,-z,lazy
#include "stacks_frames.h"
