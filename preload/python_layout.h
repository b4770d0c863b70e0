/* python_layout.h — where CPython keeps what we read, by version.
 * In: a version and, from 3.13, the offsets that the interpreter publishes about itself. Out: one table. It reads
 * nothing of a running interpreter but those. */
#ifndef MEMSTOW_PYTHON_LAYOUT_H
#define MEMSTOW_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Offsets in bytes. Where the versions differ in kind:
 *
 * 3.11, 3.12: the thread state points to the innermost _PyCFrame, a variable of the evaluation loop that leads to the
 * loop's innermost frame and to the next loop's _PyCFrame. From 3.13 it points to the innermost frame itself.
 *
 * 3.11: the outermost frame of a loop is marked (`frame_is_entry`). From 3.12 another frame follows it that runs
 * nothing, is a variable of the loop, and says so by its owner: `entry_owner` or above. */
struct python_layout {
    uint32_t thread_head;                   /* in the thread state: innermost _PyCFrame or frame */
    uint32_t thread_id;                     /* pthread_self() of the thread state's thread */
    uint32_t cframe_frame, cframe_previous; /* both 0: there is none */
    uint32_t frame_code, frame_previous, frame_instruction, frame_owner;
    uint32_t frame_is_entry; /* 0: the entry is a frame of its own */
    uint32_t code_file, code_name, code_first_line, code_lines;
    uint32_t code_first_traceable; /* index of the instruction before which a frame is not yet complete */
    uint32_t code_start;           /* the instructions */
    uint32_t object_type, object_size;
    uint32_t type_dealloc;
    uint32_t bytes_start;
    uint32_t text_length, text_state, text_ascii, text_other; /* characters: of pure ASCII, of other strings */
    uint32_t text_kind_shift; /* in the state: width of a character (3 bits), then compact, then ASCII (1 bit each) */
    uint32_t runtime_finalizing;
    uint8_t entry_owner;
};

enum { PYTHON_GENERATOR_OWNER = 1 }; /* in all versions */

/* `version` is Py_Version; `runtime` the interpreter's _PyRuntime, which is read from 3.13 on. False: not a version, or
 * not offsets, that we know. */
bool python_layout(uint32_t version, const void *runtime, struct python_layout *out);

#pragma GCC visibility pop

#endif
