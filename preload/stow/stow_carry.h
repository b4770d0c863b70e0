/* stow_carry.h — carries a plan out: memory goes to a file, clean pages of files are dropped.
 * In: a plan. Out: bytes that moved, and refusals, in the session's pieces. A range is its old self or its new self at
 * each moment, whatever fails. */
#ifndef MEMSTOW_STOW_CARRY_H
#define MEMSTOW_STOW_CARRY_H

#include <stdint.h>

#include "preload/stow/stow_plan.h"

#pragma GCC visibility push(hidden)

/* Returns the reason why memory stays that has none of its own, or STOW_DONE. */
uint32_t stow_carry_out(struct stow_plan *plan);

#pragma GCC visibility pop

#endif
