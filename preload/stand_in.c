/* stand_in.c — until memory can be moved: owners that are to be stowed stay as they are. Weak, so that whoever moves
 * takes its place. */
#include <errno.h>

#include "trigger.h"

__attribute__((weak)) int64_t owners_stow(uint32_t owner) { return owner ? -ENOTSUP : -ENOENT; }

__attribute__((weak)) int64_t owners_release(uint32_t owner) { return owner ? 0 : -ENOENT; }
