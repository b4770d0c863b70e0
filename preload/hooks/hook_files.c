/* hook_files.c — functions that open a descriptor or start a thread.
 * In: the program's calls. Out: the same calls to the next definition; results of successful calls go to origins.c.
 * Programs call some of these functions in signal handlers, or between vfork and exec, and some are cancellation
 * points. So a hook holds no lock while the next definition runs, and does not wait afterwards. Descriptors that glibc
 * opens for itself are not seen. Most names are plain words, so each is an entry of hook_entry.h. */
#undef _FORTIFY_SOURCE /* with it, headers define some of these functions */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <mqueue.h>
#include <pthread.h>
#include <pty.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <unistd.h>

#include "preload/count/origins.h"
#include "preload/hooks/hook_entry.h"
#include "preload/shared/os.h"
#include "preload/life/process.h"
#include "preload/base/symbol.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __pipe(int fds[2]);
int __dup2(int fd, int to);
int __fcntl(int fd, int command, ...);
mqd_t __mq_open_2(const char *name, int flags);
/* glibc has these two functions since 2.36. They are declared here, because the library may be built with an older
 * glibc than it runs with.
 *
 * Other functions that an older glibc lacks (fsopen, open_tree) have no hook, because their names are plain words. If
 * libc lacks such a function, a library that is opened later may define its own function of this name, and the hook
 * would not know it. */
int pidfd_open(pid_t pid, unsigned flags);
int pidfd_getfd(int process, int fd, unsigned flags);

/* --- entry points --- */

HOOK_ENTRY(open)
HOOK_ENTRY(open64)
HOOK_ENTRY(openat)
HOOK_ENTRY(openat64)
HOOK_ENTRY(__open_2)
HOOK_ENTRY(__open64_2)
HOOK_ENTRY(__openat_2)
HOOK_ENTRY(__openat64_2)
HOOK_ENTRY(__open)
HOOK_ENTRY(__open64)
HOOK_ENTRY(open_by_handle_at)
HOOK_ENTRY(creat)
HOOK_ENTRY(creat64)
HOOK_ENTRY(fopen)
HOOK_ENTRY(fopen64)
HOOK_ENTRY(freopen)
HOOK_ENTRY(freopen64)
HOOK_ENTRY(setmntent)
HOOK_ENTRY(tmpfile)
HOOK_ENTRY(tmpfile64)
HOOK_ENTRY(opendir)
HOOK_ENTRY(mkstemp)
HOOK_ENTRY(mkstemp64)
HOOK_ENTRY(mkostemp)
HOOK_ENTRY(mkostemp64)
HOOK_ENTRY(mkstemps)
HOOK_ENTRY(mkstemps64)
HOOK_ENTRY(mkostemps)
HOOK_ENTRY(mkostemps64)
HOOK_ENTRY(shm_open)
HOOK_ENTRY(memfd_create)
HOOK_ENTRY(mq_open)
HOOK_ENTRY(__mq_open_2)
HOOK_ENTRY(posix_openpt)
HOOK_ENTRY(getpt)
HOOK_ENTRY(openpty)
HOOK_ENTRY(forkpty)
HOOK_ENTRY(socket)
HOOK_ENTRY(socketpair)
HOOK_ENTRY(accept)
HOOK_ENTRY(accept4)
HOOK_ENTRY(pipe)
HOOK_ENTRY(pipe2)
HOOK_ENTRY(__pipe)
HOOK_ENTRY(popen)
HOOK_ENTRY(dup)
HOOK_ENTRY(dup2)
HOOK_ENTRY(dup3)
HOOK_ENTRY(__dup2)
HOOK_ENTRY(fcntl)
HOOK_ENTRY(fcntl64)
HOOK_ENTRY(__fcntl)
HOOK_ENTRY(eventfd)
HOOK_ENTRY(epoll_create)
HOOK_ENTRY(epoll_create1)
HOOK_ENTRY(timerfd_create)
HOOK_ENTRY(signalfd)
HOOK_ENTRY(inotify_init)
HOOK_ENTRY(inotify_init1)
HOOK_ENTRY(fanotify_init)
HOOK_ENTRY(pidfd_open)
HOOK_ENTRY(pidfd_getfd)
HOOK_ENTRY(pthread_create)
HOOK_ENTRY(thrd_create)

/* --- functions that open one descriptor --- */

/* Whether descriptors are noted. It does not call process_tracked, which may begin a ledger: a forked child that only
 * calls exec must not get a ledger. */
static bool is_seen(void) { return tracked_page.stage == TRACKED_YES; }

static int hook_files_note(int fd, enum snap_origin_kind kind, struct caller caller) {
    if (fd >= 0 && is_seen()) origins_note(fd, kind, caller);
    return fd;
}

#define OPENS(kind, name, parameters, arguments)                                                                       \
    int hook_##name parameters { return hook_files_note(HOOK_NEXT(name) arguments, SNAP_ORIGIN_##kind, CALLER); }

static int hook_files_asked(long result) {
    if (result < 0) errno = (int)-result;
    return result < 0 ? -1 : (int)result;
}

/* glibc before 2.36 lacks these functions. If a program finds our hook by dlsym with such a glibc, the hook makes
 * the system call itself. */
#define OPENS_SINCE_2_36(kind, name, parameters, ...)                                                                  \
    int hook_##name parameters {                                                                                       \
        int opened =                                                                                                   \
            HOOK_NEXT(name) ? HOOK_NEXT(name)(__VA_ARGS__) : hook_files_asked(os_call(SYS_##name, __VA_ARGS__));       \
        return hook_files_note(opened, SNAP_ORIGIN_##kind, CALLER);                                                    \
    }

/* The caller passes a mode if the flags need one. Otherwise the value that is read here is ignored. */
#define OPENS_WITH_MODE(name, parameters, ...)                                                                         \
    int hook_##name parameters {                                                                                       \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = va_arg(list, mode_t);                                                                            \
        va_end(list);                                                                                                  \
        return hook_files_note(HOOK_NEXT(name)(__VA_ARGS__, mode), SNAP_ORIGIN_FILE, CALLER);                          \
    }

OPENS_WITH_MODE(open, (const char *path, int flags, ...), path, flags)
OPENS_WITH_MODE(open64, (const char *path, int flags, ...), path, flags)
OPENS_WITH_MODE(__open, (const char *path, int flags, ...), path, flags)
OPENS_WITH_MODE(__open64, (const char *path, int flags, ...), path, flags)
OPENS_WITH_MODE(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
OPENS_WITH_MODE(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)
OPENS(FILE, __open_2, (const char *path, int flags), (path, flags))
OPENS(FILE, __open64_2, (const char *path, int flags), (path, flags))
OPENS(FILE, __openat_2, (int folder, const char *path, int flags), (folder, path, flags))
OPENS(FILE, __openat64_2, (int folder, const char *path, int flags), (folder, path, flags))
OPENS(FILE, creat, (const char *path, mode_t mode), (path, mode))
OPENS(FILE, creat64, (const char *path, mode_t mode), (path, mode))
OPENS(FILE, mkstemp, (char *path), (path))
OPENS(FILE, mkstemp64, (char *path), (path))
OPENS(FILE, mkostemp, (char *path, int flags), (path, flags))
OPENS(FILE, mkostemp64, (char *path, int flags), (path, flags))
OPENS(FILE, mkstemps, (char *path, int suffix), (path, suffix))
OPENS(FILE, mkstemps64, (char *path, int suffix), (path, suffix))
OPENS(FILE, mkostemps, (char *path, int suffix, int flags), (path, suffix, flags))
OPENS(FILE, mkostemps64, (char *path, int suffix, int flags), (path, suffix, flags))
OPENS(FILE, open_by_handle_at, (int mount, struct file_handle *handle, int flags), (mount, handle, flags))
OPENS(FILE, posix_openpt, (int flags), (flags))
OPENS(FILE, getpt, (void), ())
OPENS(FILE, __mq_open_2, (const char *name, int flags), (name, flags))
OPENS(FILE, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
OPENS(FILE, memfd_create, (const char *name, unsigned flags), (name, flags))
OPENS(SOCKET, socket, (int domain, int type, int protocol), (domain, type, protocol))
OPENS(SOCKET, accept, (int fd, __SOCKADDR_ARG address, socklen_t *length), (fd, address, length))
OPENS(SOCKET, accept4, (int fd, __SOCKADDR_ARG address, socklen_t *length, int flags), (fd, address, length, flags))
OPENS(COPY, dup, (int fd), (fd))
OPENS(COPY, dup2, (int fd, int to), (fd, to))
OPENS(COPY, dup3, (int fd, int to, int flags), (fd, to, flags))
OPENS(COPY, __dup2, (int fd, int to), (fd, to))
OPENS_SINCE_2_36(COPY, pidfd_getfd, (int process, int fd, unsigned flags), process, fd, flags)
OPENS_SINCE_2_36(OTHER, pidfd_open, (pid_t pid, unsigned flags), pid, flags)
OPENS(OTHER, fanotify_init, (unsigned flags, unsigned event_flags), (flags, event_flags))
OPENS(OTHER, eventfd, (unsigned count, int flags), (count, flags))
OPENS(OTHER, epoll_create, (int size), (size))
OPENS(OTHER, epoll_create1, (int flags), (flags))
OPENS(OTHER, timerfd_create, (clockid_t clock, int flags), (clock, flags))
OPENS(OTHER, inotify_init, (void), ())
OPENS(OTHER, inotify_init1, (int flags), (flags))

mqd_t hook_mq_open(const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = va_arg(list, mode_t);
    struct mq_attr *attributes = va_arg(list, struct mq_attr *);
    va_end(list);
    return hook_files_note(HOOK_NEXT(mq_open)(name, flags, mode, attributes), SNAP_ORIGIN_FILE, CALLER);
}

int hook_signalfd(int fd, const sigset_t *mask, int flags) {
    int result = HOOK_NEXT(signalfd)(fd, mask, flags);
    return fd < 0 ? hook_files_note(result, SNAP_ORIGIN_OTHER, CALLER) : result;
}

#define COPIES_OR_NOT(name)                                                                                            \
    int hook_##name(int fd, int command, ...) {                                                                        \
        va_list list;                                                                                                  \
        va_start(list, command);                                                                                       \
        void *argument = va_arg(list, void *);                                                                         \
        va_end(list);                                                                                                  \
        int result = HOOK_NEXT(name)(fd, command, argument);                                                           \
        bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;                                                \
        return copies ? hook_files_note(result, SNAP_ORIGIN_COPY, CALLER) : result;                                    \
    }

COPIES_OR_NOT(fcntl)
COPIES_OR_NOT(fcntl64)
COPIES_OR_NOT(__fcntl)

/* --- functions that open two descriptors, or a stream or folder with a descriptor behind it --- */

static int note_both(int result, const int fds[2], enum snap_origin_kind kind, struct caller caller) {
    for (int i = 0; i < 2 && !result && is_seen(); i++) origins_note(fds[i], kind, caller);
    return result;
}

int hook_pipe(int fds[2]) { return note_both(HOOK_NEXT(pipe)(fds), fds, SNAP_ORIGIN_PIPE, CALLER); }

int hook_pipe2(int fds[2], int flags) { return note_both(HOOK_NEXT(pipe2)(fds, flags), fds, SNAP_ORIGIN_PIPE, CALLER); }

int hook___pipe(int fds[2]) { return note_both(HOOK_NEXT(__pipe)(fds), fds, SNAP_ORIGIN_PIPE, CALLER); }

int hook_openpty(int *main, int *side, char *name, const struct termios *termios, const struct winsize *size) {
    int result = HOOK_NEXT(openpty)(main, side, name, termios, size);
    return result ? result : note_both(0, (int[]){*main, *side}, SNAP_ORIGIN_FILE, CALLER);
}

/* Only the parent notes a descriptor: its side of the terminal. The child has the terminal's other side as standard
 * descriptors only. */
pid_t hook_forkpty(int *main, char *name, const struct termios *termios, const struct winsize *size) {
    pid_t pid = HOOK_NEXT(forkpty)(main, name, termios, size);
    if (pid > 0) hook_files_note(*main, SNAP_ORIGIN_FILE, CALLER);
    return pid;
}

int hook_socketpair(int domain, int type, int protocol, int fds[2]) {
    return note_both(HOOK_NEXT(socketpair)(domain, type, protocol, fds), fds, SNAP_ORIGIN_SOCKET, CALLER);
}

static FILE *note_stream(FILE *stream, enum snap_origin_kind kind, struct caller caller) {
    if (stream && is_seen()) origins_note(LIBC(fileno_unlocked)(stream), kind, caller);
    return stream;
}

#define OPENS_STREAM(kind, name, parameters, arguments)                                                                \
    FILE *hook_##name parameters { return note_stream(HOOK_NEXT(name) arguments, SNAP_ORIGIN_##kind, CALLER); }

OPENS_STREAM(FILE, fopen, (const char *path, const char *mode), (path, mode))
OPENS_STREAM(FILE, fopen64, (const char *path, const char *mode), (path, mode))
OPENS_STREAM(FILE, freopen, (const char *path, const char *mode, FILE *stream), (path, mode, stream))
OPENS_STREAM(FILE, freopen64, (const char *path, const char *mode, FILE *stream), (path, mode, stream))
OPENS_STREAM(FILE, setmntent, (const char *path, const char *mode), (path, mode))
OPENS_STREAM(FILE, tmpfile, (void), ())
OPENS_STREAM(FILE, tmpfile64, (void), ())
OPENS_STREAM(PIPE, popen, (const char *command, const char *mode), (command, mode))

DIR *hook_opendir(const char *path) {
    DIR *folder = HOOK_NEXT(opendir)(path);
    if (folder && is_seen()) origins_note(LIBC(dirfd)(folder), SNAP_ORIGIN_FILE, CALLER);
    return folder;
}

/* --- functions that start a thread --- */

/* The first function of a new thread. The last call is a jump, so the thread's stack begins as it would without us. */
static void *run_posix(void *context) {
    struct origins_thread *self = context;
    void *(*start)(void *) = (void *(*)(void *))self->start, *argument = self->argument;
    origins_arrive(self);
    return start(argument);
}

static int run_c11(void *context) {
    struct origins_thread *self = context;
    int (*start)(void *) = (int (*)(void *))self->start;
    void *argument = self->argument;
    origins_arrive(self);
    return start(argument);
}

/* process_tracked may begin a ledger here, because a process that starts a thread allocates in any case. */
static struct origins_thread *hook_files_expect(void *start, void *argument, struct caller caller) {
    struct origins_thread *thread = process_tracked() ? origins_expect(caller) : NULL;
    if (thread) thread->start = start, thread->argument = argument;
    return thread;
}

static void hook_files_created(struct origins_thread *thread, bool success) {
    if (thread) (success ? origins_created : origins_forget)(thread);
}

int hook_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    struct origins_thread *thread = hook_files_expect((void *)start, argument, CALLER);
    int error = HOOK_NEXT(pthread_create)(id, attributes, thread ? run_posix : start, thread ? thread : argument);
    hook_files_created(thread, error == 0);
    return error;
}

int hook_thrd_create(thrd_t *id, thrd_start_t start, void *argument) {
    struct origins_thread *thread = hook_files_expect((void *)start, argument, CALLER);
    int result = HOOK_NEXT(thrd_create)(id, thread ? run_c11 : start, thread ? thread : argument);
    hook_files_created(thread, result == thrd_success);
    return result;
}
