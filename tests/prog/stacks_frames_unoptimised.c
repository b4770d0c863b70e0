// Call stacks through the frames of code that is not optimised: rules by rbp.
// needs: stacks
// build: -O0
#include "stacks_frames.h"
