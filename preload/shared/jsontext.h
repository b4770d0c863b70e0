/* jsontext.h — JSON, strictly by RFC 8259, checked and read where it stands.
 * In: bytes that nobody vouches for. Out: whether they are one object, and its members. Pure: no memory, no recursion
 * deeper than JSONTEXT_DEPTH. The library checks what programs say with it, and the tools read the same lines. */
#ifndef MEMSTOW_JSONTEXT_H
#define MEMSTOW_JSONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { JSONTEXT_DEPTH = 32 };

/* A value as it is written, without blanks around it. */
struct jsontext {
    const char *at;
    size_t length;
};

/* One object and nothing else but blanks; text in it is UTF-8. */
bool jsontext_is_object(const char *text, size_t length);
/* The same, and where the fault is: the offset of the first wrong byte. JSONTEXT_FINE: it is one object. */
size_t jsontext_fault(const char *text, size_t length);
#define JSONTEXT_FINE SIZE_MAX

/* Goes through the members of an object or the elements of an array, which have been checked: false at the end. `key`
 * is that of a member, as it is written, and may be NULL. Begin with *next = 0. */
bool jsontext_next(struct jsontext in, size_t *next, struct jsontext *key, struct jsontext *value);

/* The member of that name; of several the last, as Python has it. */
bool jsontext_member(struct jsontext object, const char *name, struct jsontext *value);

/* False: it is no such thing. The first wants a number without sign, point and exponent that fits into 64 bits. The
 * second wants a string; its text is cut at `room`, between characters, and ends in NUL. */
bool jsontext_number(struct jsontext value, uint64_t *number);
bool jsontext_string(struct jsontext value, char *to, size_t room);

/* Length of the UTF-8 character that the text begins with; 0: it is none. */
enum { JSONTEXT_CHARACTER = 4 /* at most */ };
size_t jsontext_character(const char *text, size_t length);

#pragma GCC visibility pop

#endif
