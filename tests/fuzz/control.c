/* control.c — fuzz target: the parser of the control socket ends without harm for any input. Messages that it accepts
 * follow the protocol, and come back the same after being written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shared/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition) {
    if (!condition) abort();
}

static void check_text(const struct wire_message *message) {
    size_t length = strnlen(message->text, sizeof message->text);
    must(length <= WIRE_TEXT && wire_text(message->text, length) == length);
    for (size_t i = 0; i < length; i++) must((uint8_t)message->text[i] >= 0x20 && message->text[i] != 0x7f);
}

static void check_round_trip(const struct wire_message *message,
                             int (*get)(struct wire_message *, const uint8_t *, size_t)) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message again;
    size_t length = wire_put(bytes, message);
    must(length <= sizeof bytes && get(&again, bytes, length) == 0);
    must(memcmp(&again, message, sizeof again) == 0);
}

/* A program may put any text into an answer. */
static void check_any_text(const uint8_t *data, size_t size) {
    struct wire_message message = {.type = WIRE_DONE, .number = -EIO}, again;
    uint8_t bytes[WIRE_MOST];
    memcpy(message.text, data, size < WIRE_TEXT ? size : WIRE_TEXT);
    size_t length = wire_put(bytes, &message);
    must(wire_get_answer(&again, bytes, length) == 0);
    check_text(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wire_message message;
    memset(&message, 0, sizeof message);
    if (wire_get_request(&message, data, size) == 0) {
        must(message.type >= WIRE_TRIGGER && message.type <= WIRE_HOLDERS);
        if (message.type == WIRE_END)
            must(message.number == WIRE_STOW || message.number == WIRE_RESTORE);
        else
            must((message.owner != 0) == (message.type >= WIRE_STOW && message.type <= WIRE_RELEASE));
        check_text(&message);
        check_round_trip(&message, wire_get_request);
    }
    if (wire_get_answer(&message, data, size) == 0) {
        must(message.type >= WIRE_WAITING && message.type <= WIRE_DONE);
        check_text(&message);
        check_round_trip(&message, wire_get_answer);
    }
    check_any_text(data, size);
    return 0;
}
