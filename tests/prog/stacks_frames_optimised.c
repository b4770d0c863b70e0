// Call stacks through the frames of optimised code. Their callers are found by rsp.
// needs: stacks
// build: -O2 -fomit-frame-pointer
#include "stacks_frames.h"
