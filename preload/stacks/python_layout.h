/* python_layout.h — the offsets of the CPython data that we read, by version.
 * In: a version and, from 3.13 on, the offsets that the interpreter publishes. Out: one table. It reads nothing else of
 * a running interpreter. */
#ifndef MEMSTOW_PYTHON_LAYOUT_H
#define MEMSTOW_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Offsets in bytes. The versions differ in two ways:
 *
 * 3.11, 3.12: the thread state points to the innermost _PyCFrame. A _PyCFrame is a variable of the evaluation loop, and
 * points to the loop's innermost frame and to the next loop's _PyCFrame. From 3.13 on, the thread state points to the
 * innermost frame itself.
 *
 * 3.11: the outermost frame of a loop is marked (`frame_is_entry`). From 3.12 on, another frame follows the outermost
 * one: the loop's entry frame, which is a variable of the loop and runs nothing. The owner field of an entry frame is
 * `entry_owner` or above. */
struct python_layout {
    uint32_t thread_head;                   /* in the thread state: innermost _PyCFrame or frame */
    uint32_t thread_id;                     /* pthread_self() of the thread state's thread */
    uint32_t cframe_frame, cframe_previous; /* both 0: there is no _PyCFrame */
    uint32_t frame_code, frame_previous, frame_instruction, frame_owner;
    uint32_t frame_is_entry; /* 3.11: marks a loop's outermost frame; from 3.12 on 0, because no frame is marked */
    uint32_t code_file, code_name, code_first_line, code_lines;
    uint32_t code_first_traceable; /* the index of the first instruction at which a frame is complete */
    uint32_t code_start;           /* where the instructions begin */
    uint32_t object_type, object_size;
    uint32_t type_dealloc;
    uint32_t bytes_start;
    /* text_ascii: where the characters of an ASCII string begin; text_other: where those of any other string begin. */
    uint32_t text_length, text_state, text_ascii, text_other;
    uint32_t text_kind_shift; /* state >> this: bits 0 to 2: width of a character; bit 3: compact; bit 4: ASCII */
    uint32_t runtime_finalizing;
    uint8_t entry_owner;
    uint8_t fixed; /* the minor version if it is in one of the tables below; else 0 */
};

/* The tables of 3.11 and 3.12 are offsetof() of CPython's own headers (3.11.2, 3.11.7, 3.12.1; they do not change
 * within a minor version). tests/real/python_offsets.py compares the tables where the headers are installed. The tables
 * are constants, so that the compiler can use them in code that runs for each stack. */
static const struct python_layout python_layout_311 = {
    .thread_head = 56,
    .thread_id = 152,
    .cframe_frame = 8,
    .cframe_previous = 16,
    .frame_code = 32,
    .frame_previous = 48,
    .frame_instruction = 56,
    .frame_is_entry = 68,
    .frame_owner = 69,
    .code_file = 112,
    .code_name = 128,
    .code_first_line = 72,
    .code_lines = 136,
    .code_first_traceable = 168,
    .code_start = 184,
    .object_type = 8,
    .object_size = 16,
    .type_dealloc = 48,
    .bytes_start = 32,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 48,
    .text_other = 72,
    .text_kind_shift = 2,
    .runtime_finalizing = 24,
    .entry_owner = 3, /* does not occur */
    .fixed = 11,
};

static const struct python_layout python_layout_312 = {
    .thread_head = 56,
    .thread_id = 136,
    .cframe_frame = 0,
    .cframe_previous = 8,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_instruction = 56,
    .frame_owner = 70,
    .code_file = 112,
    .code_name = 128,
    .code_first_line = 68,
    .code_lines = 136,
    .code_first_traceable = 176,
    .code_start = 192,
    .object_type = 8,
    .object_size = 16,
    .type_dealloc = 48,
    .bytes_start = 32,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 40,
    .text_other = 56,
    .text_kind_shift = 2,
    .runtime_finalizing = 24,
    .entry_owner = 3, /* FRAME_OWNED_BY_CSTACK */
    .fixed = 12,
};

enum { PYTHON_GENERATOR_OWNER = 1 }; /* in all versions */

/* Gives the offsets of an interpreter. `version` is its Py_Version. `runtime` is its _PyRuntime, which is read only if
 * the version is 3.13 or later. False: the version or its offsets are unknown. */
bool python_layout(uint32_t version, const void *runtime, struct python_layout *out);

#pragma GCC visibility pop

#endif
