/* control_client.h — connects to the control socket of a process.
 * In: a pid, and the path of the socket from the process's ledger. Out: a connection to exactly that process, and
 * messages. If another process listens at this path, it is not trusted. */
#ifndef MEMSTOW_CONTROL_CLIENT_H
#define MEMSTOW_CONTROL_CLIENT_H

#include "preload/shared/wire.h"

#include <stddef.h>
#include <sys/types.h>

/* Connects to a process. `path`: its socket, as the process sees it. Returns a descriptor, or -1 with the reason. */
int control_connect(pid_t pid, const char *path, char *error, size_t size);
/* Returns 0 or -errno. */
int control_send(int fd, const struct wire_message *message);
/* Waits for an answer. Returns 1 if an answer came, 0 if none came within `milliseconds` or a signal came first, and
 * -errno if none will come. */
int control_receive(int fd, struct wire_message *answer, int milliseconds);

#endif
