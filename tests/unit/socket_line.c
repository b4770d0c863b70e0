// How lines of /proc/net are read: addresses, which are written as inet_ntop writes them, states, and names of UNIX
// sockets. Invalid lines are refused.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shared/socket_line.h"

static void compare(int family, const uint8_t *bytes, size_t length) {
    char expected[INET6_ADDRSTRLEN], text[46];
    cr_assert(inet_ntop(family, bytes, expected, sizeof expected));
    socket_line_address(text, bytes, length);
    cr_assert_str_eq(text, expected);
}

/* Each of the eight words is 0, or one of three other values. */
Test(socket_line, addresses) {
    static const uint16_t words[] = {0, 0xffff, 0x1, 0x20b0};
    for (unsigned choice = 0; choice < 1u << 16; choice++) {
        uint8_t bytes[16];
        for (int i = 0; i < 8; i++) {
            uint16_t word = words[choice >> 2 * i & 3];
            bytes[2 * i] = (uint8_t)(word >> 8), bytes[2 * i + 1] = (uint8_t)word;
        }
        compare(AF_INET6, bytes, 16);
        compare(AF_INET, bytes, 4);
    }
}

Test(socket_line, lines) {
    static const struct {
        const char *table, *line, *text;
        uint64_t inode;
        bool named, listens;
    } lines[] = {
        {"tcp",
         "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100",
         "tcp 127.0.0.1:8080, listens", 4711, false, true},
        {"tcp6",
         "  12: 00000000000000000000000001000000:0050 0000000000000000FFFF00000100007F:D431 01 00000000:00000000 "
         "02:00000A3B 00000000     0        0 18446744073709551615 2",
         "tcp [::1]:80 to [::ffff:127.0.0.1]:54321, connected", UINT64_MAX, false, false},
        {"udp", "  5: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 5 2", "udp 0.0.0.0:68",
         5, false, false},
        {"unix", "0000000000000000: 00000002 00000000 00010000 0001 01 77 /run/a b.socket", "unix /run/a b.socket", 77,
         true, true},
        {"unix", "0000000000000000: 00000003 00000000 00000000 0001 03 78", "unix", 78, false, false},
        {"unix", "0000000000000000: 00000002 00000000 00010000 0001 01 79 @abstract", "unix @abstract", 79, false,
         true},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct socket_line got;
        cr_assert(socket_line_parse(&got, lines[i].table, lines[i].line), "%s", lines[i].line);
        cr_assert_str_eq(got.text, lines[i].text);
        cr_assert_eq(got.inode, lines[i].inode);
        cr_assert(got.named == lines[i].named && got.listens == lines[i].listens, "%s", lines[i].line);
    }
}

/* Each beginning of a line, and each line with one changed character, is read without going beyond its end. */
Test(socket_line, no_lines) {
    static const char *const none[] = {"",
                                       " ",
                                       "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt",
                                       "0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 0 1",
                                       "0: 0100007F",
                                       "0: :1 :2 3 4"};
    static const char good[] = "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 1";
    struct socket_line got;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        for (int table = 0; table < SOCKET_TABLES; table++)
            cr_assert_not(socket_line_parse(&got, socket_tables[table], none[i]), "%s", none[i]);
    for (size_t i = 0; i < sizeof good - 1; i++)
        for (int c = 0; c < 256; c++) {
            char *line = strdup(good);
            line[i] = (char)c;
            for (int table = 0; table < SOCKET_TABLES; table++) socket_line_parse(&got, socket_tables[table], line);
            cr_assert(memchr(got.text, 0, sizeof got.text));
            free(line);
        }
}

Test(socket_line, long_names) {
    char line[400] = "0000000000000000: 00000002 00000000 00010000 0001 01 77 /";
    struct socket_line got;
    memset(line + strlen(line), 'x', 300);
    cr_assert(socket_line_parse(&got, "unix", line));
    cr_assert_eq(strlen(got.text), 155);
}
