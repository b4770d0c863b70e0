/* control_client.c — see control_client.h. */
#include "tools/proc/control_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 100, PAUSE_NS = 50000000 }; /* for attempts to connect while the socket's queue is full */

/* Opens the socket's folder in the file system that the process sees. Returns a descriptor or -errno. */
static int open_inside(pid_t pid, const char *folder) {
    char root[64];
    snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    int inside = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (inside < 0) return -errno;
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    int fd = (int)syscall(SYS_openat2, inside, folder, &how, sizeof how);
    int error = fd < 0 ? -errno : 0;
    close(inside);
    return error ? error : fd;
}

static int connect_patiently(int fd, const struct sockaddr_un *address) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0; i < TRIES; i++) {
        if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0) return 0;
        if (errno != EAGAIN) return -errno;
        nanosleep(&pause, NULL);
    }
    return -EAGAIN;
}

/* Asks the kernel which process listens, because anybody can make a socket with that name. Returns 0 if `pid` listens
 * and is this user's; else -errno. */
static int check_peer(int fd, pid_t pid) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -errno;
    return peer.pid == pid && peer.uid == geteuid() ? 0 : -EPERM;
}

/* Connects to the socket `name` in a folder. The address names the folder by its descriptor, because an address has
 * only 108 bytes and the folder's path may be longer. Returns a descriptor or -errno. */
static int connect_in(int folder, const char *name, pid_t pid) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name) >=
        (int)sizeof address.sun_path)
        return -ENAMETOOLONG;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    int error = connect_patiently(fd, &address);
    if (!error) error = check_peer(fd, pid);
    if (error) close(fd);
    return error ? error : fd;
}

static const char *control_client_explain(int error) {
    switch (error) {
    case -ENOENT:
    case -ECONNREFUSED:
        return "its control socket is gone: the process ran another program (exec) or entered a sandbox, or the socket "
               "was removed";
    case -EAGAIN:
        return "too many clients are connected";
    case -EPERM:
        return "it runs as another user, or its control socket belongs to another process";
    default:
        return strerror(-error);
    }
}

static int connect_and_close(int folder, const char *name, pid_t pid) {
    if (folder < 0) return folder;
    int fd = connect_in(folder, name, pid);
    close(folder);
    return fd;
}

/* Tries the path below the process's root. If nothing listens there, tries it below this command's root: a process that
 * called chroot sees other files, and its socket may still be at its old place. */
int control_connect(pid_t pid, const char *path, char *error, size_t size) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *name = strrchr(folder, '/');
    if (!name) {
        snprintf(error, size, "its ledger has no path of a control socket");
        return -1;
    }
    *name++ = 0;
    int fd = connect_and_close(open_inside(pid, folder), name, pid);
    if (fd == -ENOENT || fd == -ECONNREFUSED) {
        int here = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), second = connect_and_close(here, name, pid);
        if (here >= 0 && second != -ENOENT) fd = second;
    }
    if (fd >= 0) return fd;
    snprintf(error, size, "%s", control_client_explain(fd));
    return -1;
}

int control_send(int fd, const struct wire_message *message) {
    uint8_t bytes[WIRE_MOST];
    size_t length = wire_put(bytes, message);
    return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length ? 0 : -errno;
}

int control_receive(int fd, struct wire_message *answer, int milliseconds) {
    uint8_t bytes[WIRE_MOST + 1];
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int ready = poll(&polled, 1, milliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR)) return 0;
    if (ready < 0) return -errno;
    ssize_t length = recv(fd, bytes, sizeof bytes, 0);
    if (length < 0) return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (length == 0) return -ECONNRESET;
    int error = wire_get_answer(answer, bytes, (size_t)length);
    return error ? error : 1;
}
