/* handle_kind.h — what a descriptor is for (a file, a socket…), by its link in /proc.
 * In: the target of /proc/PID/fd/N. Out: a kind, and its name. Pure; the library and the command share it. */
#ifndef MEMSTOW_HANDLE_KIND_H
#define MEMSTOW_HANDLE_KIND_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

enum handle_kind {
    HANDLE_FILE,
    HANDLE_TEMPORARY, /* a file that never had a name, or has lost it */
    HANDLE_SOCKET,
    HANDLE_PIPE,
    HANDLE_SHARED, /* memory that other processes may share: a memfd, or a file below /dev/shm */
    HANDLE_GPU,
    HANDLE_DEVICE,
    HANDLE_OTHER, /* epoll, eventfd, timerfd… */
    HANDLE_KINDS
};

/* The kind of a descriptor, from the target of its link in /proc/PID/fd. */
enum handle_kind handle_kind_of(const char *target);
/* The word for a kind, such as "socket"; with `many`, "sockets". */
const char *handle_kind_word(enum handle_kind kind, bool many);
/* Whether a target of a link in /proc/PID/fd is memory that other processes may share. */
bool handle_kind_is_shared(const char *path);

#pragma GCC visibility pop

#endif
