/* python.h — the Python functions that run on the calling thread, read inside malloc.
 * In: native frames that lie in a CPython evaluation loop, as the unwinder meets them. Out: the interpreter frames that
 * each of them runs, and a ledger record for each. Nothing of the interpreter is called but the two functions that read
 * its thread-local thread state: no GIL, no lock, no memory of the program's; errno is kept.
 *
 * CPython 3.11 and later, several interpreters in one process, linked in or loaded in any way. An interpreter is found
 * when its code is first seen on a stack, so that nothing needs to be done at dlopen. */
#ifndef MEMSTOW_PYTHON_H
#define MEMSTOW_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/ledger/ledger.h"

#pragma GCC visibility push(hidden)

/* Whether the native frame that occupies the stack [slot, cfa) belongs to an evaluation loop; `pc` is the return
 * address into it, which is the word at `slot`. The answer holds for every frame with that pc, until code is unloaded:
 * ask once per code address and generation (generation_of_code). Also right for parts that a compiler moved out of
 * line, which no symbol tells, because this frame is asked whether it holds the loop's variables. */
bool python_is_eval(uintptr_t pc, uintptr_t slot, uintptr_t cfa);

/* Whether what is mapped by the call that returns to `caller` is an arena of small objects. Only of an interpreter that
 * was seen on a stack before. */
bool python_maps_arenas(uintptr_t caller);

/* A Python frame: addresses in the interpreter (`code` with the interpreter's index in its lowest bits). To be compared
 * only: what they point to may be gone when the stack has changed. */
struct python_frame {
    uintptr_t frame, code, instruction;
};

/* How far a look at the thread's Python frames has come, from the innermost outwards. Zeroed before each stack. */
struct python_walk {
    uintptr_t at;
    uint16_t interpreter; /* 1 + its index; 0: not begun */
    uint16_t attempt;
};

/* The frames that the evaluation loop in [slot, cfa) runs, innermost first. Returns how many there are, and stores the
 * first `room` of them. Evaluation loops must be asked for from the innermost outwards with one walk; some may be left
 * out. *anchor names the loop's variable in its native frame, for python_same. Where the frames cannot be told there
 * are none, *anchor is 0, and SNAP_LOST_PYTHON counts it. */
size_t python_frames(struct python_walk *walk, uintptr_t slot, uintptr_t cfa, uintptr_t *anchor,
                     struct python_frame *out, size_t room);

/* Whether a loop's frames are exactly those that python_frames gave with `anchor`. `inner` is the anchor of the next
 * loop further in on the present stack, 0 when there is none; a loop whose anchor is 0 is passed over. Loops may be
 * asked about in any order.
 *
 * Nothing is read at a remembered address but the anchors, and they are on the native stack. So the one thing that must
 * have been checked before is that the loop's native frame and the inner one's are still frames of evaluation loops at
 * the same place: the words at their slots are the remembered ones, and so are all from the top of the stack up to
 * there. From the anchors on, the interpreter's present chain is followed. A frame that died, and whose memory may be
 * gone, is merely no longer in it. */
/* So many frames behind the loop's are read of the array, and where they lie is prefetched: the caller will ask about
 * them next. */
enum { PYTHON_AHEAD = 6 };
bool python_same(uintptr_t inner, uintptr_t anchor, const struct python_frame *frames, size_t count);

/* The SNAP_FRAME record of a frame that this thread's present stack holds; made at first sight, with the function's
 * name, file and line. UINT32_MAX when it cannot be. When a recorded function (its code object) dies, its address may
 * come to mean another: then threads forget what they remember (generation_end_stacks). */
uint32_t python_frame_record(const struct python_frame *frame);

/* Where records of frames go: the one series of SNAP_FRAME. Until then there are no records. */
void python_begin(struct series *frames);
/* In a forked child, before ledger_abandon: forgets all records. */
void python_abandon(void);

#pragma GCC visibility pop

#endif
