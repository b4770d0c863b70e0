// Call stacks through the frames of optimised code: rules by rsp.
// needs: stacks
// build: -O2 -fomit-frame-pointer
#include "stacks_frames.h"
