// Call stacks through a procedure linkage table that is bound at the first use.
// needs: stacks
// build: -O2 -fplt -Wl,-z,lazy
#include "stacks_frames.h"
