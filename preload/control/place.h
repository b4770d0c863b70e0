/* place.h — where the control socket of a process is: PID.STARTED, in a folder of its user.
 * In: XDG_RUNTIME_DIR as it was at the start, the user, the process. Out: a socket that listens there; sockets of
 * processes that are gone are removed. Only the control thread calls it, except place_leave and place_knock. */
#ifndef MEMSTOW_PLACE_H
#define MEMSTOW_PLACE_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { PLACE_ROOM = 108 }; /* the longest address of a socket */

struct place {
    char path[PLACE_ROOM];
    uint64_t device, inode; /* of the socket; both 0: there is none */
};

/* A descriptor; or -errno, with what failed. */
int place_listen(struct place *self, const char **what);
/* Removes the socket, if it still is the one that was made. */
void place_leave(const struct place *self);
/* Wakes the listening thread. */
void place_knock(const struct place *self);

#pragma GCC visibility pop

#endif
