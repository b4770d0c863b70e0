/* endpoint.h — where the control socket of a process is: a file PID.STARTED in a folder of its user (STARTED: when the
 * process started).
 * In: XDG_RUNTIME_DIR as it was at the start, the user, the process. Out: a socket that listens there; sockets of
 * processes that are gone are removed. Only the control thread calls endpoint_listen; any thread may call the other
 * functions. */
#ifndef MEMSTOW_ENDPOINT_H
#define MEMSTOW_ENDPOINT_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { ENDPOINT_SIZE = 108 }; /* the longest address of a socket */

struct endpoint {
    char path[ENDPOINT_SIZE];
    uint64_t device, inode; /* of the socket; both 0: there is none */
};

/* Returns the descriptor of a listening socket. If that fails, returns -errno, and *what names the step that failed. */
int endpoint_listen(struct endpoint *self, const char **what);
/* Removes the socket's file, unless another file has its name by now. */
void endpoint_leave(const struct endpoint *self);
/* Wakes the listening thread: connects to the socket, and closes the connection. */
void endpoint_knock(const struct endpoint *self);

#pragma GCC visibility pop

#endif
