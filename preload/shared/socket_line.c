/* socket_line.c — see socket_line.h. */
#include "preload/shared/socket_line.h"

#include <string.h>

#include "preload/shared/os.h"

enum { ADDRESS_SIZE = 46, PATH_MOST = 150, FLAG_ACCEPTS = 0x10000 /* __SO_ACCEPTCON */ };

const char *const socket_tables[SOCKET_TABLES] = {"tcp", "tcp6", "udp", "udp6", "unix"};

/* --- writing addresses --- */

static void put_four(char *to, const uint8_t bytes[4]) {
    for (int i = 0; i < 4; i++) {
        if (i) *to++ = '.';
        to = os_decimal(to, bytes[i]);
    }
}

/* Finds the longest row of at least two zeros; of several rows of that length, the first one. Returns its length; 0:
 * there is no such row. *at gets the row's first index. */
static int longest_zeros(const uint32_t words[8], int *at) {
    int best = 1;
    *at = -1;
    for (int i = 0, length = 0; i < 8; i++) {
        length = words[i] ? 0 : length + 1;
        if (length > best) best = length, *at = i - length + 1;
    }
    return *at < 0 ? 0 : best;
}

static void put_sixteen(char *to, const uint8_t bytes[16]) {
    uint32_t words[8];
    int at;
    for (int i = 0; i < 8; i++) words[i] = (uint32_t)bytes[2 * i] << 8 | bytes[2 * i + 1];
    int length = longest_zeros(words, &at);
    bool ends_in_four = at == 0 && (length == 6 || (length == 5 && words[5] == 0xffff));
    for (int i = 0; i < (ends_in_four ? 6 : 8); i++) {
        if (i == at) *to++ = ':';
        if (i >= at && i < at + length) continue;
        if (i) *to++ = ':';
        to = os_hexadecimal(to, words[i]);
    }
    if (at >= 0 && (at + length == 8 || (ends_in_four && length == 6))) *to++ = ':';
    if (ends_in_four && length == 5) *to++ = ':';
    *to = 0;
    if (ends_in_four) put_four(to, bytes + 12);
}

void socket_line_address(char *to, const uint8_t *bytes, size_t length) {
    if (length == 4)
        put_four(to, bytes);
    else
        put_sixteen(to, bytes);
}

/* --- reading the fields of a line --- */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The start of the field `number`, counted from 0; "": the line has fewer fields. */
static const char *field_at(const char *line, int number) {
    while (is_blank(*line)) line++;
    for (; number > 0 && *line; number--) {
        while (*line && !is_blank(*line)) line++;
        while (is_blank(*line)) line++;
    }
    return line;
}

/* Reads a number, and moves *at past its digits. False: there are no digits, or too many. */
static bool read_number(const char **at, uint64_t base, uint64_t *number) {
    const char *begin = *at;
    for (*number = 0;; ++*at) {
        char c = **at;
        uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
                         : c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A') + 10
                                                : 99;
        if (digit >= base) break;
        *number = *number * base + digit;
    }
    return *at > begin && *at - begin <= 20;
}

static bool read_field(const char *line, int number, uint64_t base, uint64_t *value) {
    const char *at = field_at(line, number);
    return read_number(&at, base, value);
}

/* Reads an address and port such as "0100007F:1F90": the words of the address in this machine's byte order, then the
 * port. `text` gets the address in its usual form. Returns false if there is no such address and port at `at`. */
static bool read_address(const char *at, char text[ADDRESS_SIZE], uint64_t *port) {
    uint8_t bytes[16];
    size_t digits = strcspn(at, ": ");
    if ((digits != 8 && digits != 32) || at[digits] != ':') return false;
    for (size_t i = 0; i < digits / 2; i++) {
        char pair[3] = {at[2 * i], at[2 * i + 1], 0};
        const char *from = pair;
        uint64_t byte;
        if (!read_number(&from, 16, &byte) || from != pair + 2) return false;
        bytes[(i & ~(size_t)3) + 3 - (i & 3)] = (uint8_t)byte;
    }
    socket_line_address(text, bytes, digits / 2);
    at += digits + 1;
    return read_number(&at, 16, port);
}

/* --- describing a socket --- */

struct words {
    char *to;
    size_t capacity;
};

static void socket_line_put(struct words *self, const char *text) {
    size_t length = strlen(text);
    if (length >= self->capacity) length = self->capacity - 1;
    memcpy(self->to, text, length);
    self->to += length;
    self->capacity -= length;
    *self->to = 0;
}

static void put_address(struct words *self, const char *address, uint64_t port) {
    char number[24];
    bool six = strchr(address, ':');
    socket_line_put(self, six ? "[" : "");
    socket_line_put(self, address);
    socket_line_put(self, six ? "]:" : ":");
    os_decimal(number, port);
    socket_line_put(self, number);
}

static const char *state_text(uint64_t state) {
    static const char *const names[] = {[1] = "connected",      [2] = "connecting",  [3] = "being connected",
                                        [4] = "closing",        [5] = "half closed", [6] = "closed (TIME_WAIT)",
                                        [8] = "closed by peer", [9] = "closing",     [10] = "listens",
                                        [11] = "closing"};
    return state < sizeof names / sizeof *names ? names[state] : NULL;
}

static bool parse_inet(struct socket_line *out, const char *table, const char *line) {
    struct words words = {out->text, sizeof out->text};
    char local[ADDRESS_SIZE], remote[ADDRESS_SIZE];
    uint64_t local_port, remote_port, state;
    if (!read_address(field_at(line, 1), local, &local_port) ||
        !read_address(field_at(line, 2), remote, &remote_port) || !read_field(line, 3, 16, &state) ||
        !read_field(line, 9, 10, &out->inode))
        return false;
    bool tcp = table[0] == 't';
    const char *state_words = tcp ? state_text(state) : NULL;
    out->listens = tcp && state == 10;
    socket_line_put(&words, tcp ? "tcp " : "udp ");
    put_address(&words, local, local_port);
    if (remote_port) socket_line_put(&words, " to ");
    if (remote_port) put_address(&words, remote, remote_port);
    if (state_words) socket_line_put(&words, ", ");
    if (state_words) socket_line_put(&words, state_words);
    return true;
}

static bool parse_unix(struct socket_line *out, const char *line) {
    struct words words = {out->text, sizeof out->text};
    char path[PATH_MOST + 1];
    uint64_t flags;
    if (!read_field(line, 3, 16, &flags) || !read_field(line, 6, 10, &out->inode)) return false;
    os_copy(path, sizeof path, field_at(line, 7));
    out->listens = flags & FLAG_ACCEPTS;
    out->named = path[0] == '/';
    socket_line_put(&words, path[0] ? "unix " : "unix");
    socket_line_put(&words, path);
    return true;
}

bool socket_line_parse(struct socket_line *out, const char *table, const char *line) {
    *out = (struct socket_line){0};
    bool known = table[0] == 'u' && table[1] == 'n' ? parse_unix(out, line) : parse_inet(out, table, line);
    return known && out->inode;
}
