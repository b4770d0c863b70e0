/* sockets.h — what a socket is: the tables of /proc/PID/net, asked by inode.
 * In: a process, whose network it is, and an inode. Out: "tcp 127.0.0.1:8188, listens". */
#ifndef MEMSTOW_SOCKETS_H
#define MEMSTOW_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sockets {
    struct socket_entry {
        uint64_t inode;
        char text[200];
        bool named, listens; /* a UNIX socket with a name in the file system */
    } * entries;
    size_t count, capacity;
};

/* What can be read; never fails. */
void sockets_load(struct sockets *sockets, pid_t pid);
void sockets_clear(struct sockets *sockets);
/* NULL: not there. */
const struct socket_entry *sockets_find(const struct sockets *sockets, uint64_t inode);

#endif
