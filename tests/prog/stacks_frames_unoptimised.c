// Call stacks through the frames of unoptimised code: rules by rbp.
// needs: stacks
// build: -O0
#include "stacks_frames.h"
