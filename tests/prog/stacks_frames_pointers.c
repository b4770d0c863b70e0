// Call stacks through optimised code that keeps frame pointers.
// needs: stacks
// build: -O2 -fno-omit-frame-pointer
#include "stacks_frames.h"
