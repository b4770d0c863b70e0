/* wire.c — see wire.h. */
#include "preload/shared/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "preload/shared/utf8.h"

size_t wire_text(const char *from, size_t most) {
    size_t used = 0, length = strnlen(from, most), step;
    while (used < length && (step = utf8_printable(from + used, length - used))) used += step;
    return used;
}

size_t wire_put(uint8_t to[WIRE_MOST], const struct wire_message *message) {
    size_t text = wire_text(message->text, WIRE_TEXT);
    struct wire_head head = {.magic = WIRE_MAGIC,
                             .version = WIRE_VERSION,
                             .type = (uint16_t)message->type,
                             .length = (uint32_t)(sizeof head + text),
                             .owner = message->owner,
                             .ticket = message->ticket,
                             .number = message->number};
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, message->text, text);
    return sizeof head + text;
}

static int wire_get(struct wire_message *out, const uint8_t *bytes, size_t length) {
    struct wire_head head;
    if (length < sizeof head || length > WIRE_MOST) return -EPROTO;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != WIRE_MAGIC) return -EPROTO;
    if (head.version != WIRE_VERSION) return -EPROTONOSUPPORT;
    if (head.length != length) return -EPROTO;
    size_t text = length - sizeof head;
    *out = (struct wire_message){.type = head.type, .owner = head.owner, .ticket = head.ticket, .number = head.number};
    memcpy(out->text, bytes + sizeof head, text);
    return wire_text(out->text, WIRE_TEXT) == text ? 0 : -EILSEQ;
}

int wire_get_request(struct wire_message *out, const uint8_t *bytes, size_t length) {
    int result = wire_get(out, bytes, length);
    if (result < 0) return result;
    bool of_owner = out->type >= WIRE_STOW && out->type <= WIRE_RELEASE;
    if (out->type == WIRE_END) return out->number == WIRE_STOW || out->number == WIRE_RESTORE ? 0 : -EPROTO;
    if (out->type < WIRE_TRIGGER || out->type > WIRE_HOLDERS) return -EPROTO;
    return of_owner == (out->owner != 0) ? 0 : -EPROTO;
}

int wire_get_answer(struct wire_message *out, const uint8_t *bytes, size_t length) {
    int result = wire_get(out, bytes, length);
    if (result < 0) return result;
    return out->type >= WIRE_WAITING && out->type <= WIRE_DONE ? 0 : -EPROTO;
}
