/* wire.h — messages between the memstow command and the control socket of a process. In: a struct, or bytes from any
 * sender. Out: bytes, or a struct of which every field is checked. Pure.
 *
 * One datagram is one message: a struct wire_head, and up to WIRE_TEXT bytes of UTF-8 without control characters.
 * docs/control.md explains it. */
#ifndef MEMSTOW_WIRE_H
#define MEMSTOW_WIRE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define WIRE_MAGIC 0x4357534du /* "MSWC" */
enum { WIRE_VERSION = 1, WIRE_TEXT = 255 };

enum wire_type {
    /* requests; all but the fifth and sixth as enum memstow_request_kind */
    WIRE_TRIGGER = 1, /* text: the reason */
    WIRE_STOW = 2,    /* of `owner`, as are the next two */
    WIRE_RESTORE = 3,
    WIRE_RELEASE = 4,
    WIRE_CANCEL = 5,  /* the request that this connection has made */
    WIRE_END = 6,     /* an end to the move at hand, of `owner` (0: anybody's); number: WIRE_STOW or WIRE_RESTORE */
    WIRE_COLLECT = 7, /* of the program, if it takes such requests: all garbage is to be looked at between two runs */
    WIRE_HOLDERS = 8, /* the same; text: of which call stacks it is to say what holds their blocks */
    /* answers */
    WIRE_WAITING = 16, /* the request has a ticket, nobody is at it yet */
    WIRE_WORKING = 17, /* somebody is; number: bytes moved so far; text: of how many, if it is known */
    WIRE_DONE = 18,    /* number: bytes, or -errno; the text says more, perhaps. Nothing follows */
};

struct wire_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;   /* enum wire_type */
    uint32_t length; /* of the whole message */
    uint32_t owner;
    uint64_t ticket;
    int64_t number;
};
_Static_assert(sizeof(struct wire_head) == 32, "what goes over the wire");
enum { WIRE_MOST = sizeof(struct wire_head) + WIRE_TEXT };

struct wire_message {
    uint32_t type, owner;
    uint64_t ticket;
    int64_t number;
    char text[WIRE_TEXT + 1];
};

/* The length. What does not fit of the text, or is no text, is left out. */
size_t wire_put(uint8_t to[WIRE_MOST], const struct wire_message *message);

/* 0; -EPROTO: no such message; -EPROTONOSUPPORT: of another version; -EILSEQ: the text is none. */
int wire_get_request(struct wire_message *out, const uint8_t *bytes, size_t length);
int wire_get_answer(struct wire_message *out, const uint8_t *bytes, size_t length);

/* The length of the text at the beginning of `from`: up to `most` bytes, to the end of its last whole character, and
 * not beyond a NUL or a byte that is no character. */
size_t wire_text(const char *from, size_t most);

#pragma GCC visibility pop

#endif
