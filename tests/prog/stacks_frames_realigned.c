// Call stacks through frames that each realign the stack.
// needs: stacks
// build: -O2 -mstackrealign -mpreferred-stack-boundary=6 -mincoming-stack-boundary=4
#include "stacks_frames.h"
