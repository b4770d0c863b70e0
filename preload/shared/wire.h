/* wire.h — messages between the memstow command and the control socket of a process.
 * In: a struct, or bytes from any sender. Out: bytes, or a struct with every field checked. Pure.
 *
 * One datagram is one message: a struct wire_head, and up to WIRE_TEXT bytes of UTF-8 without control characters.
 * docs/control.md explains the messages. */
#ifndef MEMSTOW_WIRE_H
#define MEMSTOW_WIRE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define WIRE_MAGIC 0x4357534du /* "MSWC" */
enum { WIRE_VERSION = 1, WIRE_TEXT = 255 };

enum wire_type {
    /* requests; all but CANCEL and END have the numbers of enum memstow_request_kind */
    WIRE_TRIGGER = 1, /* text: the reason */
    WIRE_STOW = 2,    /* moves out the memory of `owner` */
    WIRE_RESTORE = 3, /* brings the stowed memory of `owner` back */
    WIRE_RELEASE = 4, /* gives free memory of `owner` back to the system */
    WIRE_CANCEL = 5,  /* takes back the request that came on this connection */
    /* ends a move that runs now. owner: the owner of the move; 0: any owner. number: the kind of the move, WIRE_STOW or
     * WIRE_RESTORE */
    WIRE_END = 6,
    WIRE_COLLECT = 7, /* asks the program to run its garbage collector between two runs, if it takes such requests */
    WIRE_HOLDERS = 8, /* like COLLECT, and the program also says what holds the blocks of the call stacks in the text */
    /* answers */
    WIRE_WAITING = 16, /* the request has a number (ticket), and nobody works on it yet */
    WIRE_WORKING = 17, /* somebody works on the request; number: bytes moved so far; text: total bytes, if known */
    WIRE_DONE = 18,    /* no message comes after this one; number: bytes, or -errno; the text may say more */
};

struct wire_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;   /* enum wire_type */
    uint32_t length; /* bytes of the whole message */
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

/* Writes a message, and returns its length. The message gets the first wire_text(text, WIRE_TEXT) bytes of the text. */
size_t wire_put(uint8_t to[WIRE_MOST], const struct wire_message *message);

/* Read a request or an answer, and check every field. Return 0 on success, -EPROTO if the bytes are no such message,
 * -EPROTONOSUPPORT if the message has another version, and -EILSEQ if its text is invalid. */
int wire_get_request(struct wire_message *out, const uint8_t *bytes, size_t length);
int wire_get_answer(struct wire_message *out, const uint8_t *bytes, size_t length);

/* Returns the length in bytes of the text at `from`. The text ends before the first NUL, control character or invalid
 * byte of UTF-8, and after `most` bytes at the latest. A character is never cut in two. */
size_t wire_text(const char *from, size_t most);

#pragma GCC visibility pop

#endif
