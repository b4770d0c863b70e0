/* moving_device.h — moves the part of an owner's device memory that memstow serves (makes in place of the driver).
 * In: an owner whose memory is being moved. Out: bytes that moved, and lines in the trace about memory that stays. Any
 * thread may call. */
#ifndef MEMSTOW_MOVING_DEVICE_H
#define MEMSTOW_MOVING_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* `result` is an error that the calling thread's latest move returned. If device memory was the cause of the error,
 * returns the reason in words. Returns NULL if the error had another cause, or if device memory was not moved since
 * moving_device_forget_why. */
const char *moving_device_why(int64_t result);
void moving_device_forget_why(void);
/* Move an owner's device memory out and back. Return the bytes that moved, or 0 if there is nothing to move. If there
 * is something to move but nothing moved, return -errno, and the trace says why. `idle` says whether the owner was
 * declared idle; if it was not, nothing moves out. If `at_once` is set while another move is in progress, nothing
 * moves. `end` says what ends the move early. */
int64_t moving_device_out(uint32_t owner, bool idle, bool at_once, struct move_end end);
int64_t moving_device_in(uint32_t owner);
/* The number of the trigger that acts on this thread now; 0: none does. */
extern __thread uint64_t moving_device_trigger __attribute__((tls_model("initial-exec")));
/* The owner's bytes that were moved off devices and are not back. */
uint64_t moving_device_stowed(uint32_t owner);

#pragma GCC visibility pop

#endif
