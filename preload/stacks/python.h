/* python.h — the Python functions that run on the calling thread, read inside malloc.
 * In: native frames of CPython's evaluation loops, as the unwinder meets them. Out: the Python frames that each loop
 * runs, and a ledger record for each Python frame. To find the Python frames, it calls two functions of the interpreter
 * that return a thread state. When it adds an interpreter, it also calls PyObject_GetArenaAllocator. It never takes the
 * GIL, and keeps errno.
 *
 * It supports CPython 3.11 and later, and several interpreters in one process, linked or loaded in any way. An
 * interpreter is found when its code is first seen on a stack, so dlopen needs no hook. */
#ifndef MEMSTOW_PYTHON_H
#define MEMSTOW_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/ledger/series.h"

#pragma GCC visibility push(hidden)

/* Whether the native frame in [slot, cfa) belongs to an evaluation loop. `pc` is the return address into it, which is
 * the word at `slot`. The answer is true in two cases:
 * - `pc` is in the range of the symbol of the loop's function.
 * - `pc` is elsewhere in the interpreter's library or program, and the frame holds the variable of an evaluation
 *   loop. This finds parts of the function that the compiler has moved out of the range.
 * The answer holds for every frame with that pc until code is unloaded, so ask once per address and generation
 * (generation_of_code). */
bool python_is_eval(uintptr_t pc, uintptr_t slot, uintptr_t cfa);

/* Whether `caller` lies in the function with which an interpreter maps arenas for small objects. False also if the
 * interpreter was never seen on a stack. */
bool python_maps_arenas(uintptr_t caller);

/* A Python frame, as addresses in the interpreter. The lowest bits of `code` hold the interpreter's index. Only compare
 * the addresses: when the stack has changed, the objects there may be gone. */
struct python_frame {
    uintptr_t frame, code, instruction;
};

/* The progress of a walk over the thread's Python frames, from the innermost outwards. Set it to zero before each
 * stack. */
struct python_walk {
    uintptr_t at;
    uint16_t interpreter; /* 1 + the interpreter's index; 0: the walk has not begun */
    uint16_t attempt;
};

/* The frames that the evaluation loop in [slot, cfa) runs, innermost first. Returns their number, and stores the first
 * `capacity` of them. Use one walk for all loops of a stack, and ask for them from the innermost outwards. You may
 * leave out loops. *anchor identifies the loop's variable in its native frame, for python_same. If the frames cannot be
 * found, the number is 0, *anchor is 0, and SNAP_LOST_PYTHON counts it. */
size_t python_frames(struct python_walk *walk, uintptr_t slot, uintptr_t cfa, uintptr_t *anchor,
                     struct python_frame *out, size_t capacity);

enum { PYTHON_AHEAD = 6 };
/* Whether a loop still runs exactly the frames that python_frames gave with `anchor`. `inner`: the nearest anchor other
 * than 0 of a loop further in on the present stack; 0: there is none. Loops may be asked about in any order.
 * If `anchor` is 0, the answer is whether `count` is 0.
 *
 * Before the call, check the remembered words of the native stack, from the outermost frame to both loops (that of
 * `anchor` and that of `inner`). Call the function only if all these words are unchanged. Then the native frames of
 * both loops still exist, and the anchors in them can be read. From the anchors the function follows the interpreter's
 * present chain of frames. A remembered frame that is not in the chain may have died, and is not read.
 *
 * The array is read up to PYTHON_AHEAD frames beyond `count`, to prefetch the frames that the caller will ask about
 * next. */
bool python_same(uintptr_t inner, uintptr_t anchor, const struct python_frame *frames, size_t count);

/* The SNAP_FRAME record of a frame on this thread's present stack. If there is none yet, makes it, with the function's
 * name, file and line. UINT32_MAX: it cannot be made. When a recorded code object dies, its address may get another
 * meaning. Then threads forget what they remember (generation_end_stacks). */
uint32_t python_frame_record(const struct python_frame *frame);

/* Sets the series in which the records of frames (SNAP_FRAME) are stored. Before this call, no records are made. */
void python_record_begin(struct series *of_frames);
/* In a forked child: resets the lock that another thread of the parent may have held. */
void python_abandon(void);

#pragma GCC visibility pop

#endif
