// Functions that open descriptors do the same as without memstow, with the same modes, flags, arguments and errno. This
// holds in a signal handler on a small stack, between vfork and exec, as a cancellation point, and in many threads at
// once.
#include "expect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <threads.h>

static unsigned mode_of(int fd) {
    struct stat st;
    MUST(fd >= 0 && fstat(fd, &st) == 0);
    return st.st_mode & 0777;
}

static int closed(int fd) {
    MUST(close(fd) == 0);
    return fd;
}

static void opens(void) {
    umask(0);
    int first = open("a", O_CREAT | O_RDWR, 0604), second = openat(AT_FDCWD, "b", O_CREAT | O_RDWR, 0640);
    int third = open64("c", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), fourth = creat("d", 0444);
    MUST(mode_of(first) == 0604 && mode_of(second) == 0640 && mode_of(third) == 0600 && mode_of(fourth) == 0444);
    MUST(fcntl(third, F_GETFD) == FD_CLOEXEC && (fcntl(third, F_GETFL) & O_ACCMODE) == O_WRONLY);
    MUST(fcntl(first, F_SETFD, FD_CLOEXEC) == 0 && fcntl(first, F_GETFD) == FD_CLOEXEC);
    MUST(fcntl(first, F_DUPFD, 50) == 50 && fcntl(first, F_DUPFD_CLOEXEC, 50) == 51);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    MUST(fcntl(first, F_SETLK, &lock) == 0 && fcntl(first, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
    MUST(dup2(first, 60) == 60 && dup2(60, 60) == 60 && dup3(first, 61, O_CLOEXEC) == 61);
    MUST(fcntl(61, F_GETFD) == FD_CLOEXEC && mode_of(61) == 0604);
    closed(first), closed(second), closed(third), closed(fourth), closed(50), closed(51), closed(60), closed(61);
}

static void errors(void) {
    int fds[2];
    errno = 1234;
    int fd = open("a", O_RDONLY);
    MUST(fd >= 0 && pipe(fds) == 0 && errno == 1234);
    closed(fd), closed(fds[0]), closed(fds[1]);
    MUST(open("nowhere/a", O_RDONLY) == -1 && errno == ENOENT);
    MUST(dup(-1) == -1 && errno == EBADF);
    MUST(dup3(1, 1, 0) == -1 && errno == EINVAL);
    MUST(socket(-1, 0, 0) == -1 && errno == EAFNOSUPPORT);
    MUST(socketpair(AF_INET, SOCK_STREAM, 0, fds) == -1 && errno == EOPNOTSUPP);
    MUST(fopen("nowhere/a", "r") == NULL && errno == ENOENT);
    MUST(opendir("nowhere") == NULL && errno == ENOENT);
    MUST(fcntl(-1, F_DUPFD, 0) == -1 && errno == EBADF);
}

/* The handler's stack has the smallest size that the kernel allows, plus 1 KiB for the call. */
static volatile sig_atomic_t handled;
static void handle(int number) {
    (void)number;
    int fd = open("/dev/null", O_RDONLY);
    handled = fd >= 0 && close(fd) == 0 ? 1 : 2;
}

static void in_a_handler(void) {
    size_t room = (size_t)sysconf(_SC_MINSIGSTKSZ) + 1024;
    size_t length = (room + 4095) / 4096 * 4096;
    char *memory = mmap(NULL, length + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED && mprotect(memory, 4096, PROT_NONE) == 0);
    stack_t stack = {.ss_sp = memory + 4096, .ss_size = room}, none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    MUST(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    MUST(raise(SIGUSR1) == 0 && handled == 1);
    MUST(sigaltstack(&none, NULL) == 0 && munmap(memory, length + 4096) == 0);
}

static void in_a_vfork_child(void) {
    int status, fd = open("/dev/null", O_RDONLY);
    pid_t child = vfork();
    if (child == 0) {
        int other = dup(fd);
        _exit(other >= 0 && dup2(other, fd) == fd && open("/dev/zero", O_RDONLY) >= 0 ? 7 : 8);
    }
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    closed(fd);
}

static int listening;
static void cleaned_up(void *done) { *(int *)done = 1; }
static void *accept_for_ever(void *done) {
    pthread_cleanup_push(cleaned_up, done);
    accept(listening, NULL, NULL);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(void) {
    int done = 0;
    void *result;
    pthread_t thread;
    listening = socket(AF_INET, SOCK_STREAM, 0);
    MUST(listening >= 0 && listen(listening, 1) == 0);
    MUST(pthread_create(&thread, NULL, accept_for_ever, &done) == 0);
    usleep(50000);
    MUST(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
    MUST(result == PTHREAD_CANCELED && done);
    closed(listening);
}

static int open_often(void *folder) {
    for (int i = 0; i < 300; i++) {
        int fd = open("/dev/null", O_RDONLY), fds[2];
        FILE *file = i % 10 ? NULL : fopen(folder, "r");
        MUST(fd >= 0 && pipe(fds) == 0);
        closed(fd), closed(fds[0]), closed(fds[1]);
        if (file) fclose(file);
    }
    return 41;
}

static void in_threads(void) {
    enum { THREADS = 8, ROUNDS = 40 };
    for (int round = 0; round < ROUNDS; round++) {
        thrd_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) MUST(thrd_create(&threads[i], open_often, "/dev/null") == thrd_success);
        for (int i = 0; i < THREADS; i++) {
            int result;
            MUST(thrd_join(threads[i], &result) == thrd_success && result == 41);
        }
    }
}

static void *nothing(void *argument) { return argument; }

/* A thread that cannot be started leaves nothing behind: 1000 starts fail, and memstow has room for 256 threads that
 * are about to begin. */
static void threads_that_fail(void) {
    struct rlimit before, little;
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, (size_t)1 << 46) == 0);
    for (int i = 0; i < 1000; i++) MUST(pthread_create(&thread, &attributes, nothing, NULL) == EAGAIN);
    pthread_attr_destroy(&attributes);
    MUST(pthread_create(&thread, NULL, nothing, &result) == 0 && pthread_join(thread, &result) == 0);
    MUST(result == &result && getrlimit(RLIMIT_NOFILE, &before) == 0);
    little = (struct rlimit){3, before.rlim_max};
    MUST(setrlimit(RLIMIT_NOFILE, &little) == 0 && open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
    MUST(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

int main(void) {
    opens();
    errors();
    in_a_handler();
    in_a_vfork_child();
    cancelled();
    in_threads();
    threads_that_fail();
    say("ok");
    return 0;
}
