/* control_client.h — the other end of a process's control socket.
 * In: a pid, and where its ledger says that the socket is. Out: a connection to that very process, and messages. It
 * trusts nobody else who listens there. */
#ifndef MEMSTOW_CONTROL_CLIENT_H
#define MEMSTOW_CONTROL_CLIENT_H

#include "preload/shared/wire.h"

#include <stddef.h>
#include <sys/types.h>

/* A descriptor; or -1, and why. `path` is as the process sees it. */
int control_connect(pid_t pid, const char *path, char *error, size_t size);
/* 0 or -errno. */
int control_send(int fd, const struct wire_message *message);
/* 1: there is an answer; 0: not within so many milliseconds, or a signal came; -errno: there will be none. */
int control_receive(int fd, struct wire_message *answer, int milliseconds);

#endif
