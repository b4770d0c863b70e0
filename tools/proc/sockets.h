/* sockets.h — describes a socket by its inode, from the tables of /proc/PID/net.
 * In: a process in the network namespace of the socket, and an inode. Out: "tcp 127.0.0.1:8188, listens". */
#ifndef MEMSTOW_SOCKETS_H
#define MEMSTOW_SOCKETS_H

#include "preload/shared/socket_line.h"

#include <sys/types.h>

struct sockets {
    struct socket_line *entries;
    size_t count, capacity;
};

/* Loads the readable tables; never fails. */
void sockets_load(struct sockets *sockets, pid_t pid);
void sockets_clear(struct sockets *sockets);
/* The line about the socket with this inode. NULL: no table has the socket. */
const struct socket_line *sockets_find(const struct sockets *sockets, uint64_t inode);

#endif
