/* Messages of the control socket: which are accepted, and which are not. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "preload/shared/wire.h"

static size_t request(uint8_t bytes[WIRE_MOST], uint32_t type, uint32_t owner, const char *text) {
    struct wire_message message = {.type = type, .owner = owner, .ticket = 3, .number = -7};
    strncpy(message.text, text, WIRE_TEXT);
    return wire_put(bytes, &message);
}

Test(wire, what_is_put_is_got) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message got;
    size_t length = request(bytes, WIRE_STOW, 42, "größer");
    cr_assert_eq(length, sizeof(struct wire_head) + strlen("größer"));
    cr_assert_eq(wire_get_request(&got, bytes, length), 0);
    cr_assert(got.type == WIRE_STOW && got.owner == 42 && got.ticket == 3 && got.number == -7);
    cr_assert_str_eq(got.text, "größer");
}

Test(wire, a_message_is_whole_or_none) {
    uint8_t bytes[WIRE_MOST + 1] = {0};
    struct wire_message got;
    size_t length = request(bytes, WIRE_TRIGGER, 0, "because");
    for (size_t part = 0; part < length; part++)
        cr_assert_eq(wire_get_request(&got, bytes, part), -EPROTO, "%zu", part);
    cr_assert_eq(wire_get_request(&got, bytes, length + 1), -EPROTO);
    cr_assert_eq(wire_get_request(&got, bytes, sizeof bytes), -EPROTO);
}

Test(wire, an_owner_where_one_belongs) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message got;
    for (uint32_t type = 0; type < 40; type++)
        for (uint32_t owner = 0; owner < 2; owner++) {
            bool good = owner
                            ? type >= WIRE_STOW && type <= WIRE_RELEASE
                            : type == WIRE_TRIGGER || (type >= WIRE_CANCEL && type <= WIRE_HOLDERS && type != WIRE_END);
            size_t length = request(bytes, type, owner, "");
            cr_assert_eq(wire_get_request(&got, bytes, length), good ? 0 : -EPROTO, "%u of %u", type, owner);
        }
}

/* A cancel names one owner or all owners, and one direction: out or back. */
Test(wire, an_end_says_of_what) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message got;
    for (int number = -1; number < 10; number++)
        for (uint32_t owner = 0; owner < 2; owner++) {
            struct wire_message message = {.type = WIRE_END, .owner = owner, .number = number};
            bool good = number == WIRE_STOW || number == WIRE_RESTORE;
            size_t length = wire_put(bytes, &message);
            cr_assert_eq(wire_get_request(&got, bytes, length), good ? 0 : -EPROTO, "%d of %u", number, owner);
        }
}

Test(wire, answers_and_requests_are_two) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message got;
    size_t length = request(bytes, WIRE_DONE, 0, "");
    cr_assert_eq(wire_get_request(&got, bytes, length), -EPROTO);
    cr_assert_eq(wire_get_answer(&got, bytes, length), 0);
    length = request(bytes, WIRE_TRIGGER, 0, "");
    cr_assert_eq(wire_get_answer(&got, bytes, length), -EPROTO);
}

Test(wire, another_version_is_told_apart) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message got;
    size_t length = request(bytes, WIRE_TRIGGER, 0, "");
    bytes[4] = 2;
    cr_assert_eq(wire_get_request(&got, bytes, length), -EPROTONOSUPPORT);
    bytes[0] ^= 1;
    cr_assert_eq(wire_get_request(&got, bytes, length), -EPROTO);
}

Test(wire, text_is_text) {
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"", 0},
                 {"plain", 5},
                 {"a\tb", 1},
                 {"a\x7f", 1},
                 {"\xc3\xa4", 2},
                 {"\xc3", 0},
                 {"\xc0\xaf", 0},
                 {"\xc2\x80", 0},
                 {"\xe2\x82\xac", 3},
                 {"x\xe2\x82", 1},
                 {"\xe0\x9f\xbf", 0},
                 {"\xed\xa0\x80", 0},
                 {"\xf0\x9f\x98\x80", 4},
                 {"\xf4\x90\x80\x80", 0},
                 {"\xff", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(wire_text(cases[i].text, 100), cases[i].length, "%zu", i);
    cr_assert_eq(wire_text("\xe2\x82\xac", 2), 0, "no half character");
}

Test(wire, no_text_but_text_goes_out_or_comes_in) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message got, longest = {.type = WIRE_DONE};
    size_t length = request(bytes, WIRE_TRIGGER, 0, "well\nforged");
    cr_assert_eq(wire_get_request(&got, bytes, length), 0);
    cr_assert_str_eq(got.text, "well");
    bytes[length - 1] = 0x1b;
    cr_assert_eq(wire_get_request(&got, bytes, length), -EILSEQ);
    memset(longest.text, 'x', sizeof longest.text); /* without an end */
    cr_assert_eq(wire_put(bytes, &longest), WIRE_MOST);
    cr_assert_eq(wire_get_answer(&got, bytes, WIRE_MOST), 0);
    cr_assert_eq(strlen(got.text), WIRE_TEXT);
}
