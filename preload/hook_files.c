/* hook_files.c — what opens a descriptor, and what starts a thread.
 * In: the program's calls. Out: the same calls to the next definition; what came of one that succeeded goes to
 * births.c. Each of these may be called in a signal handler or between vfork and exec, and some are cancellation
 * points: nothing is held while the next definition runs, and nothing that comes after it waits. What glibc opens for
 * itself is not seen. The names are plain words: a library may have another function by one of them, which takes and
 * returns what it likes. So each is a jump, in assembly, to what comes next when that is not libc's, else to its hook.
 */
#undef _FORTIFY_SOURCE /* which defines some of them */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <unistd.h>

#include "births.h"
#include "next.h"
#include "os.h"
#include "process.h"
#include "symbol.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

/* --- the next definitions --- */

#define NAMES                                                                                                          \
    NAME(open)                                                                                                         \
    NAME(open64)                                                                                                       \
    NAME(openat)                                                                                                       \
    NAME(openat64)                                                                                                     \
    NAME(__open_2)                                                                                                     \
    NAME(__open64_2)                                                                                                   \
    NAME(__openat_2)                                                                                                   \
    NAME(__openat64_2)                                                                                                 \
    NAME(creat)                                                                                                        \
    NAME(creat64)                                                                                                      \
    NAME(fopen)                                                                                                        \
    NAME(fopen64)                                                                                                      \
    NAME(tmpfile)                                                                                                      \
    NAME(tmpfile64)                                                                                                    \
    NAME(opendir)                                                                                                      \
    NAME(mkstemp)                                                                                                      \
    NAME(mkstemp64)                                                                                                    \
    NAME(mkostemp)                                                                                                     \
    NAME(mkostemp64)                                                                                                   \
    NAME(mkstemps)                                                                                                     \
    NAME(mkstemps64)                                                                                                   \
    NAME(mkostemps)                                                                                                    \
    NAME(mkostemps64)                                                                                                  \
    NAME(shm_open)                                                                                                     \
    NAME(memfd_create)                                                                                                 \
    NAME(socket)                                                                                                       \
    NAME(socketpair)                                                                                                   \
    NAME(accept)                                                                                                       \
    NAME(accept4)                                                                                                      \
    NAME(pipe)                                                                                                         \
    NAME(pipe2)                                                                                                        \
    NAME(popen)                                                                                                        \
    NAME(dup)                                                                                                          \
    NAME(dup2)                                                                                                         \
    NAME(dup3)                                                                                                         \
    NAME(fcntl)                                                                                                        \
    NAME(fcntl64)                                                                                                      \
    NAME(eventfd)                                                                                                      \
    NAME(epoll_create)                                                                                                 \
    NAME(epoll_create1)                                                                                                \
    NAME(timerfd_create)                                                                                               \
    NAME(signalfd)                                                                                                     \
    NAME(inotify_init)                                                                                                 \
    NAME(inotify_init1)                                                                                                \
    NAME(pthread_create)                                                                                               \
    NAME(thrd_create)

#define HIDDEN __attribute__((used, visibility("hidden")))

/* For each name: the hook, where a call of it goes (NULL: not looked up yet), and libc's. */
#define NAME(name)                                                                                                     \
    HIDDEN __typeof__(name) hook_##name;                                                                               \
    HIDDEN void *hook_way_##name;                                                                                      \
    static void *next_##name;
NAMES
#undef NAME

#define NAME(name) {#name, (void *)hook_##name, &hook_way_##name, &next_##name},
static const struct name {
    const char *name;
    void *hook, **way, **next;
} names[] = {NAMES};
#undef NAME

/* What dlsym would find, without its lock, nor what it does to dlerror: objects that the program was started with are
 * listed in the order in which they are searched. */
static void *find_next(const char *name) {
    struct dl_find_object self;
    uintptr_t found = 0;
    if (_dl_find_object((void *)find_next, &self)) return symbol_next(name);
    for (struct link_map *map = self.dlfo_link_map->l_next; map && !found; map = map->l_next)
        found = symbol_find(map, name, NULL);
    return found ? (void *)found : symbol_next(name);
}

static void look_up(const struct name *name) {
    void *found = find_next(name->name);
    __atomic_store_n(name->next, found, __ATOMIC_RELAXED);
    __atomic_store_n(name->way, found && next_is_in_libc(found) ? name->hook : found, __ATOMIC_RELEASE);
}

/* At the start: a signal handler, or a child that was just forked, may not wait for the loader. Else by the first call,
 * from the constructor of a library that was begun before ours. */
HIDDEN void hook_look_up_files(void);
__attribute__((constructor)) void hook_look_up_files(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) look_up(&names[i]);
}

/* All that can hold an argument of a function stays as it is (rax: how many vectors there are; r10: a nested
 * function's frame). */
__asm__(".pushsection .text\n"
        ".type hook_look_up_first, @function\n"
        "hook_look_up_first:\n"
        "    .cfi_startproc\n" /* the stack is a multiple of 16 here, and stays one */
        "    .irp word, rax, rdi, rsi, rdx, rcx, r8, r9, r10\n"
        "    pushq %\\word\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .endr\n"
        "    subq $128, %rsp\n"
        "    .cfi_adjust_cfa_offset 128\n"
        "    .irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
        "    movaps %xmm\\i, 16*\\i(%rsp)\n"
        "    .endr\n"
        "    call hook_look_up_files\n"
        "    .irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
        "    movaps 16*\\i(%rsp), %xmm\\i\n"
        "    .endr\n"
        "    addq $128, %rsp\n"
        "    .cfi_adjust_cfa_offset -128\n"
        "    .irp word, r10, r9, r8, rcx, rdx, rsi, rdi, rax\n"
        "    popq %\\word\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .endr\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size hook_look_up_first, .-hook_look_up_first\n"
        ".popsection\n");

/* A jump keeps the return address and the caller's frame, by which CALLER goes. */
#define NAME(name)                                                                                                     \
    __asm__(".pushsection .text\n"                                                                                     \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n" #name ":\n"                                                                 \
            "    .cfi_startproc\n"                                                                                     \
            "    movq hook_way_" #name "(%rip), %r11\n"                                                                \
            "    testq %r11, %r11\n"                                                                                   \
            "    je 1f\n"                                                                                              \
            "    jmpq *%r11\n"                                                                                         \
            "1:  call hook_look_up_first\n"                                                                            \
            "    jmpq *hook_way_" #name "(%rip)\n"                                                                     \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", .-" #name "\n"                                                                           \
            ".popsection\n");
NAMES
#undef NAME

#define NEXT(name) ((__typeof__(&name))next_##name)

/* --- one descriptor --- */

/* Nothing here begins a ledger: a forked child that only execs never has one. */
static bool is_seen(void) { return process_page.stage == PROCESS_TRACKED; }

static int note(int fd, enum snap_birth_kind kind, struct caller caller) {
    if (fd >= 0 && is_seen()) births_note(fd, kind, caller);
    return fd;
}

#define OPENS(kind, name, parameters, arguments)                                                                       \
    int hook_##name parameters { return note(NEXT(name) arguments, SNAP_BIRTH_##kind, CALLER); }

/* The mode is there, or not looked at. */
#define OPENS_WITH_MODE(name, parameters, ...)                                                                         \
    int hook_##name parameters {                                                                                       \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = va_arg(list, mode_t);                                                                            \
        va_end(list);                                                                                                  \
        return note(NEXT(name)(__VA_ARGS__, mode), SNAP_BIRTH_FILE, CALLER);                                           \
    }

OPENS_WITH_MODE(open, (const char *path, int flags, ...), path, flags)
OPENS_WITH_MODE(open64, (const char *path, int flags, ...), path, flags)
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
OPENS(FILE, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
OPENS(FILE, memfd_create, (const char *name, unsigned flags), (name, flags))
OPENS(SOCKET, socket, (int domain, int type, int protocol), (domain, type, protocol))
OPENS(SOCKET, accept, (int fd, __SOCKADDR_ARG address, socklen_t *length), (fd, address, length))
OPENS(SOCKET, accept4, (int fd, __SOCKADDR_ARG address, socklen_t *length, int flags), (fd, address, length, flags))
OPENS(COPY, dup, (int fd), (fd))
OPENS(COPY, dup2, (int fd, int to), (fd, to))
OPENS(COPY, dup3, (int fd, int to, int flags), (fd, to, flags))
OPENS(OTHER, eventfd, (unsigned count, int flags), (count, flags))
OPENS(OTHER, epoll_create, (int size), (size))
OPENS(OTHER, epoll_create1, (int flags), (flags))
OPENS(OTHER, timerfd_create, (clockid_t clock, int flags), (clock, flags))
OPENS(OTHER, inotify_init, (void), ())
OPENS(OTHER, inotify_init1, (int flags), (flags))

int hook_signalfd(int fd, const sigset_t *mask, int flags) {
    int result = NEXT(signalfd)(fd, mask, flags);
    return fd < 0 ? note(result, SNAP_BIRTH_OTHER, CALLER) : result;
}

#define COPIES_OR_NOT(name)                                                                                            \
    int hook_##name(int fd, int command, ...) {                                                                        \
        va_list list;                                                                                                  \
        va_start(list, command);                                                                                       \
        void *argument = va_arg(list, void *);                                                                         \
        va_end(list);                                                                                                  \
        int result = NEXT(name)(fd, command, argument);                                                                \
        bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;                                                \
        return copies ? note(result, SNAP_BIRTH_COPY, CALLER) : result;                                                \
    }

COPIES_OR_NOT(fcntl)
COPIES_OR_NOT(fcntl64)

/* --- two, and those behind a stream --- */

static int note_both(int result, const int fds[2], enum snap_birth_kind kind, struct caller caller) {
    for (int i = 0; i < 2 && !result && is_seen(); i++) births_note(fds[i], kind, caller);
    return result;
}

int hook_pipe(int fds[2]) { return note_both(NEXT(pipe)(fds), fds, SNAP_BIRTH_PIPE, CALLER); }

int hook_pipe2(int fds[2], int flags) { return note_both(NEXT(pipe2)(fds, flags), fds, SNAP_BIRTH_PIPE, CALLER); }

int hook_socketpair(int domain, int type, int protocol, int fds[2]) {
    return note_both(NEXT(socketpair)(domain, type, protocol, fds), fds, SNAP_BIRTH_SOCKET, CALLER);
}

static FILE *note_stream(FILE *stream, enum snap_birth_kind kind, struct caller caller) {
    if (stream && is_seen()) births_note(fileno_unlocked(stream), kind, caller);
    return stream;
}

#define OPENS_STREAM(kind, name, parameters, arguments)                                                                \
    FILE *hook_##name parameters { return note_stream(NEXT(name) arguments, SNAP_BIRTH_##kind, CALLER); }

OPENS_STREAM(FILE, fopen, (const char *path, const char *mode), (path, mode))
OPENS_STREAM(FILE, fopen64, (const char *path, const char *mode), (path, mode))
OPENS_STREAM(FILE, tmpfile, (void), ())
OPENS_STREAM(FILE, tmpfile64, (void), ())
OPENS_STREAM(PIPE, popen, (const char *command, const char *mode), (command, mode))

DIR *hook_opendir(const char *path) {
    DIR *folder = NEXT(opendir)(path);
    if (folder && is_seen()) births_note(dirfd(folder), SNAP_BIRTH_FILE, CALLER);
    return folder;
}

/* --- threads --- */

/* Who starts a thread allocates in any case. The last call is a jump: the thread's stack begins as it would without us.
 */
static void *run_posix(void *context) {
    struct births_thread *self = context;
    void *(*start)(void *) = (void *(*)(void *))self->start, *argument = self->argument;
    births_arrive(self);
    return start(argument);
}

static int run_c11(void *context) {
    struct births_thread *self = context;
    int (*start)(void *) = (int (*)(void *))self->start;
    void *argument = self->argument;
    births_arrive(self);
    return start(argument);
}

static struct births_thread *expect(void *start, void *argument, struct caller caller) {
    struct births_thread *thread = process_tracked() ? births_expect(caller) : NULL;
    if (thread) thread->start = start, thread->argument = argument;
    return thread;
}

int hook_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    struct births_thread *thread = expect((void *)start, argument, CALLER);
    int error = NEXT(pthread_create)(id, attributes, thread ? run_posix : start, thread ? thread : argument);
    if (error && thread) births_forget(thread);
    return error;
}

int hook_thrd_create(thrd_t *id, thrd_start_t start, void *argument) {
    struct births_thread *thread = expect((void *)start, argument, CALLER);
    int result = NEXT(thrd_create)(id, thread ? run_c11 : start, thread ? thread : argument);
    if (result != thrd_success && thread) births_forget(thread);
    return result;
}
