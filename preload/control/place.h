/* place.h — where the control socket of a process is: in a folder of its user's, PID.STARTED.
 * In: XDG_RUNTIME_DIR as it was at the start, the user, the process. Out: a socket that listens there, and nothing of
 * processes that are gone. On the control thread only, but for place_leave and place_knock. */
#ifndef MEMSTOW_PLACE_H
#define MEMSTOW_PLACE_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { PLACE_ROOM = 108 }; /* what a socket's address has room for */

struct place {
    char path[PLACE_ROOM];
    uint64_t device, inode; /* of the socket; 0, 0: there is none */
};

/* A descriptor, or -errno and what could not be done. */
int place_listen(struct place *self, const char **what);
/* Removes the socket, if it is still the one that was made. */
void place_leave(const struct place *self);
/* Wakes the thread that listens there. */
void place_knock(const struct place *self);

#pragma GCC visibility pop

#endif
