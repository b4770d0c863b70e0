// Call stacks through the frames of unoptimised code. Their callers are found by rbp.
// needs: stacks
// build: -O0
#include "stacks_frames.h"
