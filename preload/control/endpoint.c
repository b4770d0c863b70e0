/* endpoint.c — see endpoint.h. */
#include "preload/control/endpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "preload/shared/digit.h"
#include "preload/shared/os.h"

enum { WAITING = 8, LOCK_TRIES = 50, LOOKED_AT_MOST = 256 };
static const uint64_t MINUTE = 60;

static char runtime_folder[ENDPOINT_SIZE]; /* XDG_RUNTIME_DIR; "": it is not set, or too long */

/* Reads the variable at the start, because a program may overwrite its environment later. */
__attribute__((constructor)) static void remember_folder(void) {
    const char *folder = os_variable("XDG_RUNTIME_DIR");
    if (folder[0] == '/' && strlen(folder) < ENDPOINT_SIZE - 48) strcpy(runtime_folder, folder);
}

static uint32_t endpoint_user(void) { return (uint32_t)os_call(SYS_geteuid); }

/* Opens a folder that belongs to this user, and that no other user may read or change. Makes it if it does not exist.
 * Returns a descriptor, or -errno. */
static int open_folder(const char *path) {
    struct stat status;
    os_call(SYS_mkdirat, AT_FDCWD, path, 0700);
    int fd = os_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0) return fd;
    int error = os_stat_fd(fd, &status);
    if (!error && (status.st_uid != endpoint_user() || status.st_mode & 077)) error = -EPERM;
    if (error) os_close(fd);
    return error ? error : fd;
}

static int choose_folder(struct endpoint *self) {
    if (runtime_folder[0]) {
        strcpy(self->path, runtime_folder);
        strcat(self->path, "/memstow");
        int fd = open_folder(self->path);
        if (fd >= 0) return fd;
    }
    strcpy(self->path, "/tmp/memstow-");
    os_decimal(self->path + strlen(self->path), endpoint_user());
    return open_folder(self->path);
}

/* --- sockets that nobody listens to --- */

static bool set_address(struct sockaddr_un *address, const char *folder, const char *name) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(folder) + 1 + strlen(name) >= sizeof address->sun_path) return false;
    strcpy(address->sun_path, folder);
    strcat(address->sun_path, "/");
    strcat(address->sun_path, name);
    return true;
}

/* Whether a socket's process is gone. If it is, the kernel refuses a connection, in whatever namespace the process was.
 * The kernel also refuses a file that is no socket, and a socket that is bound but does not listen yet. A socket has a
 * hidden name until it listens. So hidden names are left alone for a minute. */
static bool is_stale(const char *folder, const char *name) {
    struct sockaddr_un address;
    struct stat status;
    bool hidden = name[0] == '.';
    if (!digit_is_decimal(name[hidden]) || !set_address(&address, folder, name)) return false;
    long error = os_call(SYS_newfstatat, AT_FDCWD, address.sun_path, &status, AT_SYMLINK_NOFOLLOW);
    if (error || !S_ISSOCK(status.st_mode)) return false;
    if (hidden && (uint64_t)status.st_mtime + MINUTE > os_wall_now() / 1000000000) return false;
    int fd = (int)os_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    long result = os_call(SYS_connect, fd, &address, sizeof address);
    os_close(fd);
    return result == -ECONNREFUSED;
}

static void remove_stale(int folder, const char *path) {
    char entries[4096] __attribute__((aligned(8)));
    int looked_at = 0;
    for (long n; (n = os_call(SYS_getdents64, folder, entries, sizeof entries)) > 0 && looked_at < LOOKED_AT_MOST;)
        for (long at = 0; at < n && looked_at < LOOKED_AT_MOST; looked_at++) {
            const struct dirent64 *entry = (const void *)(entries + at);
            if (is_stale(path, entry->d_name)) os_call(SYS_unlinkat, folder, entry->d_name, 0);
            at += entry->d_reclen;
        }
}

/* Takes the lock for removing the sockets of processes that are gone: only one process at a time removes them. False:
 * another process has held the lock for half a second. That process has probably been stopped, and may continue at any
 * time. So the caller leaves the sockets alone. */
static bool lock_folder(int folder) {
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (os_call(SYS_flock, folder, LOCK_EX | LOCK_NB) == 0) return true;
        os_call(SYS_nanosleep, &pause, 0);
    }
    return false;
}

/* --- the socket of this process --- */

/* The hidden name of this process's socket: its name, with a dot in front. */
static void own_name(char to[64]) {
    to[0] = '.';
    strcpy(os_decimal(to + 1, os_pid()), ".");
    os_decimal(to + strlen(to), os_start_ticks(0));
}

/* The file gets the mode of the descriptor, minus the umask. So no other user can connect at any time. */
static int bind_private(int fd, const struct sockaddr_un *address) {
    int error = (int)os_call(SYS_fchmod, fd, 0600);
    if (!error) error = (int)os_call(SYS_bind, fd, address, sizeof *address);
    return error ? error : (int)os_call(SYS_listen, fd, WAITING);
}

/* The socket gets its name only when it listens. Between bind and listen it looks like the socket of a process that is
 * gone, and another process would remove it. A socket that this process left behind at an exec has the same name, and
 * is replaced. */
static int bind_as(int fd, int folder, const char *path, const char *hidden) {
    struct sockaddr_un address;
    struct stat status;
    const char *name = hidden + 1;
    if (!set_address(&address, path, hidden)) return -ENAMETOOLONG;
    os_call(SYS_unlinkat, folder, hidden, 0);
    int error = bind_private(fd, &address);
    bool taken = !error && os_call(SYS_newfstatat, folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (taken && !is_stale(path, name)) error = -EADDRINUSE;
    if (!error) error = (int)os_call(SYS_renameat, folder, hidden, folder, name);
    if (error) os_call(SYS_unlinkat, folder, hidden, 0);
    return error;
}

static int listen_in(struct endpoint *self, int folder, const char **what) {
    struct sockaddr_un address;
    struct stat status;
    char hidden[64];
    const char *name = hidden + 1;
    *what = "socket";
    own_name(hidden);
    if (!set_address(&address, self->path, name)) return -ENAMETOOLONG;
    int fd = (int)os_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fd;
    *what = "bind";
    int error = bind_as(fd, folder, self->path, hidden);
    if (!error) error = (int)os_call(SYS_newfstatat, folder, name, &status, AT_SYMLINK_NOFOLLOW);
    if (error) {
        os_close(fd);
        return error;
    }
    strcpy(self->path, address.sun_path);
    self->device = status.st_dev;
    /* `inode` is written last, because endpoint_leave looks at it first. */
    __atomic_store_n(&self->inode, status.st_ino, __ATOMIC_RELEASE);
    return fd;
}

int endpoint_listen(struct endpoint *self, const char **what) {
    *what = "folder";
    int folder = choose_folder(self);
    if (folder < 0) return folder;
    if (lock_folder(folder)) remove_stale(folder, self->path);
    int fd = listen_in(self, folder, what);
    os_close(folder);
    return fd;
}

void endpoint_knock(const struct endpoint *self) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!__atomic_load_n(&self->inode, __ATOMIC_ACQUIRE)) return;
    os_copy(address.sun_path, sizeof address.sun_path, self->path);
    int fd = (int)os_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    os_call(SYS_connect, fd, &address, sizeof address);
    os_close(fd);
}

void endpoint_leave(const struct endpoint *self) {
    struct stat status;
    if (!__atomic_load_n(&self->inode, __ATOMIC_ACQUIRE) ||
        os_call(SYS_newfstatat, AT_FDCWD, self->path, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (status.st_dev == self->device && status.st_ino == self->inode) os_call(SYS_unlinkat, AT_FDCWD, self->path, 0);
}
