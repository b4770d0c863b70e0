/* socket_line.h — describes a socket in words, from its line in /proc/PID/net/tcp, tcp6, udp, udp6 or unix.
 * In: the kernel's line. Out: the socket's inode, and words such as "tcp 127.0.0.1:8188, listens". Pure, without libc's
 * formatted input and output, which may allocate; the library and the command share it. */
#ifndef MEMSTOW_SOCKET_LINE_H
#define MEMSTOW_SOCKET_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct socket_line {
    uint64_t inode;
    bool named, listens; /* named: a UNIX socket with a path; listens: it accepts connections */
    char text[200];
};

/* The names of the tables in /proc/PID/net: "tcp" and so on. */
enum { SOCKET_TABLES = 5 };
extern const char *const socket_tables[SOCKET_TABLES];

/* Reads a line of the table with the name `table`. `line` has no newline. False: the line describes no socket with an
 * inode. For example, the first line of a table has only headings. */
bool socket_line_parse(struct socket_line *out, const char *table, const char *line);

/* Writes an address as text, as inet_ntop does. `bytes` has 4 or 16 bytes in network order. `to` has room for 46
 * bytes. */
void socket_line_address(char *to, const uint8_t *bytes, size_t length);

#pragma GCC visibility pop

#endif
