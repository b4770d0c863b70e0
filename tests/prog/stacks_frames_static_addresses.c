// Call stacks of a program at a fixed address.
// needs: stacks
// build: -O2 -no-pie -fno-pie
#include "stacks_frames.h"
