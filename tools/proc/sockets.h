/* sockets.h — what a socket is: the tables of /proc/PID/net, asked by inode.
 * In: a process, whose network it is, and an inode. Out: "tcp 127.0.0.1:8188, listens". */
#ifndef MEMSTOW_SOCKETS_H
#define MEMSTOW_SOCKETS_H

#include "preload/shared/socket_line.h"

#include <sys/types.h>

struct sockets {
    struct socket_line *entries;
    size_t count, capacity;
};

/* What can be read; never fails. */
void sockets_load(struct sockets *sockets, pid_t pid);
void sockets_clear(struct sockets *sockets);
/* NULL: not there. */
const struct socket_line *sockets_find(const struct sockets *sockets, uint64_t inode);

#endif
