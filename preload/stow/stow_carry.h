/* stow_carry.h — carries out a plan for moving memory out (stow_plan.h): memory goes to a file, and clean pages of
 * files are dropped.
 * In: a plan. Out: bytes that moved, and refusals, in the session's pieces. At each moment a range has its old or its
 * new mapping, whatever fails. */
#ifndef MEMSTOW_STOW_CARRY_H
#define MEMSTOW_STOW_CARRY_H

#include <stdint.h>

#include "preload/stow/stow_plan.h"

#pragma GCC visibility push(hidden)

/* Moves the memory in the plan. If memory of a piece stays where it is, the piece's refusal says why. If the next
 * chunk would be refused for the same reason, the move ends, and this function returns the reason. Otherwise it
 * returns STOW_DONE. */
uint32_t stow_carry_out(struct stow_plan *plan);

#pragma GCC visibility pop

#endif
