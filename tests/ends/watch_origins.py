"""watch shows each thing that is left with the call stack that opened or started it. This holds for descriptors of each
kind, opened in each way, for mapped memory, and for threads. If a descriptor was closed and its number was used again,
watch shows the newer stack. A descriptor that memstow did not see opened has no stack. What a vfork child does with its
own descriptors changes no stack."""
import os, re, signal, subprocess

from support import HERE, MEMSTOW, compile, run, start

program = compile(r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <mqueue.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>
#define APART __attribute__((noinline))
void *kept;
static void *sleep_long(void *name) { if (name) pthread_setname_np(pthread_self(), name); sleep(600); return name; }
static int sleep_longer(void *name) { sleep_long(name); return 0; }
APART int by_open(const char *name) { return open(name, O_CREAT | O_RDWR, 0600); }
APART int by_openat(const char *name) { return openat(AT_FDCWD, name, O_CREAT | O_RDWR, 0600); }
APART FILE *by_fopen(const char *name) { return fopen(name, "w"); }
APART DIR *by_opendir(const char *name) { return opendir(name); }
APART int by_dup(int fd) { return dup(fd); }
APART int by_fcntl(int fd) { return fcntl(fd, F_DUPFD, 100); }
APART int by_socketpair(int fds[2]) { return socketpair(AF_UNIX, SOCK_STREAM, 0, fds); }
APART int by_pipe(int fds[2]) { return pipe(fds); }
APART int by_eventfd(void) { return eventfd(0, 0); }
APART int by_epoll(void) { return epoll_create1(0); }
APART int by_memfd(void) { return memfd_create("shared", 0); }
APART FILE *by_freopen(FILE *stream) { return freopen("freopen.txt", "w", stream); }
APART FILE *by_setmntent(void) { return setmntent("mounts.txt", "w"); }
APART int by_pidfd(void) { return pidfd_open(getpid(), 0); }
APART int by_pidfd_getfd(int pidfd, int fd) { return pidfd_getfd(pidfd, fd, 0); }
APART int by_openpt(void) { return posix_openpt(O_RDWR | O_NOCTTY); }
APART int by_openpty(int ends[2]) { return openpty(&ends[0], &ends[1], NULL, NULL, NULL); }
APART pid_t by_forkpty(int *end) { return forkpty(end, NULL, NULL, NULL); }
APART mqd_t by_mq(void) { return mq_open("/memstow-origins", O_CREAT | O_RDWR, 0600, NULL); }
APART void *map_shared(const char *name) {
    int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
    void *p = ftruncate(fd, 4096) == 0 ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    shm_unlink(name);
    close(fd);
    return p;
}
APART void by_pthread(void) { static pthread_t id; pthread_create(&id, NULL, sleep_long, "posix"); }
APART void by_thrd(void) { static thrd_t id; thrd_create(&id, sleep_longer, "c11"); }
APART int first_time(void) { return open("/dev/zero", O_RDONLY); }
APART int second_time(void) { return open("second.txt", O_CREAT | O_RDWR, 0600); }
APART int unseen(int fd) { close(fd); return (int)syscall(SYS_openat, AT_FDCWD, "unseen.txt", O_CREAT | O_RDWR, 0600); }
APART void of_a_child(int fd) {
    pid_t child = vfork();
    if (child == 0) {
        dup2(fd, 200);
        dup2(fd, fd + 1);
        _exit(0);
    }
}
static void open_more(void) {
    int ends[2], fd;
    kept = by_freopen(fopen("other.txt", "w"));
    kept = by_setmntent();
    int same = by_pidfd_getfd(by_pidfd(), by_open("fetched.txt"));
    if (same >= 0) by_fcntl(same);
    by_openpt();
    if (by_openpty(ends) < 0) puts("no terminals");
    pid_t child = by_forkpty(&fd);
    if (child == 0) _exit(0);
    if (by_mq() < 0) puts("no queues");
    mq_unlink("/memstow-origins");
    int again = (int)syscall(SYS_openat, AT_FDCWD, "again.txt", O_CREAT | O_RDWR, 0600);
    syscall(SYS_dup3, again, 180, 0);
    syscall(SYS_close, again);
}
static void at_the_second_time(int number) { static int times; if (times++) _exit(0); (void)number; }
int main(int argc, char **argv) {
    (void)argv;
    signal(SIGTERM, at_the_second_time);
    if (argc > 1) open_more();
    if (argc > 1) goto opened;
    int pair[2], ends[2], fd;
    kept = map_shared("/memstow-origins"); /* its number is free again, and will be another's */
    by_pthread();
    by_thrd();
    fcntl(by_open("open.txt"), F_SETFD, 0);
    kept = by_fopen("fopen.txt");
    fd = by_openat("openat.txt");
    kept = by_opendir(".");
    by_dup(by_fcntl(fd));
    by_socketpair(pair);
    by_pipe(ends);
    by_eventfd();
    by_epoll();
    by_memfd();
    close(first_time());
    fd = second_time();
    fd = first_time();
    if (unseen(fd) != fd) abort();
    of_a_child(2);
opened:
    sleep(1);
    puts("there");
    fclose(stdout);
    for (;;) pause();
}
""", "program")


missing = ""


def asked(*command, options=(), inherits=()):
    """Runs the program under watch, asks the program to end, and returns the output of watch. The program goes on
    although it was asked."""
    global missing
    process = start(MEMSTOW, "watch", "--quiet", "--grace=1s", "--end", *options, "--", *command,
                    stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=inherits)
    while (line := process.stdout.readline()) not in ("there\n", ""):
        missing += line # the program names kinds of descriptors that this machine does not have
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=90)[1]


def stack_of(text, line):
    """The functions below the line that matches."""
    found = re.search(rf"^( +){line}[^\n]*\n((\1  +.*\n)*)", text, re.M)
    assert found, (line, text)
    return re.findall(r"^ +(?:py )?(\S+)  \S+:(\d+)$", found[2], re.M), found[2]


def expect(text, line, *functions, said="opened"):
    stack, below = stack_of(text, line)
    assert re.match(rf" +{said} \S+ s ago:\n", below), (line, below)
    names = [name for name, _ in stack]
    assert names[:len(functions)] == list(functions), (line, below)


text = asked(program)
expect(text, r"\d+ posix, ", "by_pthread", "main", said="started")
expect(text, r"\d+ c11, ", "by_thrd", "main", said="started")
expect(text, r"descriptor \d+: \S+/open.txt", "by_open", "main")
expect(text, r"descriptor \d+: \S+/fopen.txt", "by_fopen", "main")
expect(text, r"descriptor [0-9]{1,2}: \S+/openat.txt", "by_openat", "main")
expect(text, r"descriptor 100: \S+/openat.txt", "by_fcntl", "main")
expect(text, rf"descriptor \d+: {HERE}$", "by_opendir", "main")
expect(text, r"descriptor \d+: anon_inode:\[eventfd\]", "by_eventfd", "main")
expect(text, r"descriptor \d+: anon_inode:\[eventpoll\]", "by_epoll", "main")
expect(text, r"descriptor \d+: /memfd:shared", "by_memfd", "main")
expect(text, r"mapped: /dev/shm/memstow-origins", "map_shared", "main", said="mapped")
expect(text, r"descriptor \d+: \S+/second.txt", "second_time", "main")
assert text.count("first_time") == 0 and "of_a_child" not in text, text
assert stack_of(text, r"descriptor \d+: \S+/unseen.txt, memstow did not see it opened$")[1] == "", text
assert text.count(", memstow did not see it opened") == 1 and "inherited" not in text, text
assert re.search(r"2 sockets\n.*\n +opened \S+ s ago:\n +by_socketpair (.*\n){3,5} +descriptor .*\n"
                 r" +opened \S+ s ago, by the call stack above\n", text), text
assert re.search(r"\d pipes\n(.*\n)* +opened \S+ s ago:\n +by_pipe ", text), text

inherited, closed = os.open("inherited.txt", os.O_CREAT | os.O_RDWR), os.open("closed.txt", os.O_CREAT | os.O_RDWR)
os.dup2(closed, 180), os.dup2(inherited, 181)
text = asked(program, "more", inherits=(180, 181))
expect(text, r"descriptor \d+: \S+/freopen.txt", "by_freopen", "open_more")
expect(text, r"descriptor \d+: \S+/mounts.txt", "by_setmntent", "open_more")
expect(text, r"descriptor \d+: anon_inode:\[pidfd\]", "by_pidfd", "open_more")
if "descriptor 100: " in text: # pidfd_getfd may be forbidden
    expect(text, r"descriptor [0-9]{1,2}: \S+/fetched.txt", "by_open", "open_more")
    assert "by_pidfd_getfd" in text, text
if "no terminals" not in missing:
    for function in ("by_openpt", "by_openpty", "by_forkpty"):
        assert re.search(rf"descriptor \d+: /dev/(ptmx|pts/\S+)\n +opened \S+ s ago:\n +{function} ",
                         text), (function, text)
if "no queues" not in missing:
    expect(text, r"descriptor \d+: /memstow-origins", "by_mq", "open_more")
assert stack_of(text, r"descriptor 181: \S+/inherited.txt, inherited$")[1] == "", text
# the program closed the inherited descriptor 180, and used the number again
assert stack_of(text, r"descriptor 180: \S+/again.txt, memstow did not see it opened$")[1] == "", text
assert text.count(", inherited") == 1 and text.count(", memstow did not see it opened") == 1, text

text = asked(program, options=("--stacks=none",))
assert "where these were opened and started is not known: no call stacks are recorded" in text, text
assert "by_open" not in text, text
assert "did not see it" not in text and "inherited" not in text, text

# The program runs under a filter of system calls, as in a container. The filter kills the process if memstow makes one
# of two calls that it must not make here:
# - statx: some containers forbid it.
# - fstat on descriptor 100, a copy that by_fcntl made: if the file were on a dead file server, fstat could hang.
filtered = compile(r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 100, 0, 1), /* by_fcntl's */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 77;
    return argc > 1 ? execv(argv[1], argv + 1), 1 : 0;
}
""", "filtered")
if run(filtered, status=None).returncode == 0:
    text = asked(filtered, program)
    expect(text, r"descriptor \d+: \S+/open.txt", "by_open", "main")
    expect(text, r"descriptor 100: \S+/openat.txt", "by_fcntl", "main")
    expect(text, r"descriptor \d+: \S+/second.txt", "second_time", "main")
    assert stack_of(text, r"descriptor \d+: \S+/unseen.txt")[1] == "", text
