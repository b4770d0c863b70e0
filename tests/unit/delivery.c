// The queue of `memstow push` is bounded by requests and by bytes: if it is full, the oldest request is dropped.
// Addresses of servers are read as they are meant, or refused.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/push/delivery.h"

static struct delivery delivery;

static void add(size_t number, size_t length) {
    char *text = malloc(16);
    cr_assert(text);
    snprintf(text, 16, "%zu", number);
    delivery_add(&delivery, (struct body){text, length});
}

Test(delivery, holds_so_many_requests) {
    for (size_t i = 0; i < DELIVERY_MOST + 36; i++) add(i, 10);
    cr_assert_eq(delivery.count, DELIVERY_MOST);
    cr_assert_eq(delivery.dropped, 36);
    cr_assert_eq(delivery.bytes, 10 * DELIVERY_MOST);
    cr_assert_str_eq(delivery.queue[0].text, "36");
    cr_assert_str_eq(delivery.queue[DELIVERY_MOST - 1].text, "99");
}

Test(delivery, holds_so_many_bytes) {
    for (size_t i = 0; i < 5; i++) add(i, DELIVERY_BYTES_MOST / 2);
    cr_assert_eq(delivery.count, 2);
    cr_assert_eq(delivery.dropped, 3);
    add(5, DELIVERY_BYTES_MOST + 1); /* alone it may be larger: a profile is never cut */
    cr_assert_eq(delivery.count, 1);
    cr_assert_str_eq(delivery.queue[0].text, "5");
    add(6, 1);
    cr_assert_eq(delivery.count, 1);
    cr_assert_eq(delivery.bytes, 1);
}

Test(delivery, addresses) {
    static const struct {
        const char *text, *host, *path;
        uint16_t port;
        bool secure;
    } good[] = {{"http://a", "a", "", 80, false},
                {"https://a.b:1/", "a.b", "", 1, true},
                {"https://a/x/y//", "a", "/x/y", 443, true},
                {"http://[::1]:65535/p", "::1", "/p", 65535, false}};
    static const char *const bad[] = {"",
                                      "a:1",
                                      "http://",
                                      "http://:1",
                                      "http://a:",
                                      "http://a:0",
                                      "http://a:x",
                                      "http://a:1x",
                                      "http://a:-1",
                                      "http://a:65536",
                                      "http://u@a",
                                      "http://a?x",
                                      "http://a/#b",
                                      "http://a b",
                                      "http://[::1",
                                      "ftp://a",
                                      "http://a\r\nX: y",
                                      "http://[]"};
    struct url url;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert(url_parse(&url, good[i].text), "%s", good[i].text);
        cr_assert_str_eq(url.host, good[i].host);
        cr_assert_str_eq(url.path, good[i].path);
        cr_assert_eq(url.port, good[i].port);
        cr_assert_eq(url.secure, good[i].secure);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cr_assert_not(url_parse(&url, bad[i]), "%s", bad[i]);
}
