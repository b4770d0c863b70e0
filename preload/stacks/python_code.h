/* python_code.h — reads CPython's objects: lines of instructions, and text.
 * In: the address of a live object, and the layout of its version. Out: numbers, and UTF-8. It only reads. */
#ifndef MEMSTOW_PYTHON_CODE_H
#define MEMSTOW_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/stacks/python_layout.h"

#pragma GCC visibility push(hidden)

/* The line of code unit `unit` (instruction offset / 2), from a location table (co_linetable, 3.11 and later). 0: the
 * code unit has no line. The function never reads beyond `length`. */
uint32_t python_code_line(const uint8_t *table, size_t length, uint32_t first_line, uint32_t unit);

/* As python_code_line, for several look-ups in one table in ascending order: each search continues where the search
 * before it stopped. Code that runs once, such as a module's, is looked up in this order. The cursor begins as {.line =
 * first_line}. */
struct python_cursor {
    int64_t line;
    size_t at;        /* offset of the next entry in the table */
    uint32_t covered; /* code units of all entries before the next one */
};
uint32_t python_code_line_from(const uint8_t *table, size_t length, struct python_cursor *cursor, uint32_t unit);

/* Writes `count` characters of `width` bytes each (1, 2 or 4) as UTF-8 and a NUL. If `capacity` is too small, the text
 * is cut between characters. Returns the length without the NUL. Bytes that Python holds as lone surrogates (in
 * file names) come out unchanged. A NUL character becomes '?', because it would end the text. */
size_t python_code_utf8(const void *characters, size_t count, unsigned width, char *to, size_t capacity);

/* As python_code_utf8, for a str object. "": `object` is NULL, or a str of an unsupported kind. */
size_t python_code_text(const struct python_layout *layout, uintptr_t object, char *to, size_t capacity);

/* A word, a half-word and a byte of the interpreter's memory, at `base` + `offset`. */
static inline uintptr_t python_word(uintptr_t base, uint32_t offset) { return *(const uintptr_t *)(base + offset); }
static inline uint32_t python_half(uintptr_t base, uint32_t offset) { return *(const uint32_t *)(base + offset); }
static inline uint8_t python_byte(uintptr_t base, uint32_t offset) { return *(const uint8_t *)(base + offset); }

/* The pointer in a frame's f_executable. From 3.14 on its lowest bits are a tag; in a plain pointer they are 0. */
static inline uintptr_t python_untagged(uintptr_t reference) { return reference & ~(uintptr_t)7; }

#pragma GCC visibility pop

#endif
