/* stow_carry.h — carries a plan out: memory goes to a file, clean pages of files are dropped.
 * In: a plan. Out: bytes that moved, and refusals, in the session's pieces. At each moment a range has its old or its
 * new mapping, whatever fails. */
#ifndef MEMSTOW_STOW_CARRY_H
#define MEMSTOW_STOW_CARRY_H

#include <stdint.h>

#include "preload/stow/stow_plan.h"

#pragma GCC visibility push(hidden)

/* Moves what the plan says. Some pieces have their own reasons to stay. Returns the reason why others stayed, or
 * STOW_DONE. */
uint32_t stow_carry_out(struct stow_plan *plan);

#pragma GCC visibility pop

#endif
