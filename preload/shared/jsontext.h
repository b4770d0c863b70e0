/* jsontext.h — checks JSON text strictly by RFC 8259, and reads it in place.
 * In: bytes from any source. Out: whether they are one JSON object, and its members. Pure: no memory, no recursion
 * deeper than JSONTEXT_DEPTH. The library checks the lines that the program adds to the trace, and the command reads
 * these lines. */
#ifndef MEMSTOW_JSONTEXT_H
#define MEMSTOW_JSONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { JSONTEXT_DEPTH = 32 };

/* A value as it is written, without white space around it. */
struct jsontext {
    const char *at;
    size_t length;
};

/* Whether the text is valid UTF-8, and one JSON object with nothing but white space around it. */
bool jsontext_is_object(const char *text, size_t length);
/* The offset of the first wrong byte. JSONTEXT_FINE: the text is one JSON object. */
size_t jsontext_fault(const char *text, size_t length);
#define JSONTEXT_FINE SIZE_MAX

/* Goes through the members of an object or the elements of an array. Its text must have been checked before. Begin with
 * *next = 0. False: there are no more. `key` gets a member's key as it is written, with its quotes; it may be NULL. */
bool jsontext_next(struct jsontext in, size_t *next, struct jsontext *key, struct jsontext *value);

/* Finds a member of an object by its name. The object must have been checked before. False: no member has the name. If
 * several members have it, the last one in the text counts, as in Python. */
bool jsontext_member(struct jsontext object, const char *name, struct jsontext *value);

/* Read a number or a string. False: the value is of another form. A number must be without sign, point and exponent,
 * and fit into 64 bits. A string is unescaped, cut between characters to fit into `capacity`, and ended with NUL. */
bool jsontext_number(struct jsontext value, uint64_t *number);
bool jsontext_string(struct jsontext value, char *to, size_t capacity);

#pragma GCC visibility pop

#endif
