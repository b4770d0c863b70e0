"""Children made by raw clone, vfork, posix_spawn and system, and a daemon, whose parent is a child that ends at once.
Each ledger is exact. A process that only goes on to exec leaves no file of its own before the exec."""
import pathlib

import _fork, support

reports = _fork.run(r'''
int main(void) {
    void *a = malloc(3000), *b = malloc(90000);
    pid_t pid;
    char *const arguments[] = {"true", 0}, *const environment[] = {0};
    if (!(pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) {
        free(a);
        void *volatile c = malloc(11);
        say("clone", 11, 1, 93000, 3000);
        _exit(0);
    }
    waitpid(pid, 0, 0);
    if (!(pid = fork())) { /* twice: the way of daemons */
        if (fork()) _exit(0);
        void *volatile c = malloc(22);
        setsid();
        free(b);
        say("daemon", 22, 1, 93000, 90000);
        _exit(0);
    }
    waitpid(pid, 0, 0);
    if (!(pid = vfork())) {
        execve("/bin/true", arguments, environment);
        _exit(1);
    }
    waitpid(pid, 0, 0);
    if (!(pid = vfork()))
        _exit(3);
    waitpid(pid, 0, 0);
    if (!(pid = vfork())) { /* exec fails */
        execve("/nowhere", arguments, environment);
        _exit(4);
    }
    waitpid(pid, 0, 0);
    posix_spawn(&pid, "/bin/true", 0, 0, arguments, environment);
    waitpid(pid, 0, 0);
    if (!(pid = fork())) {
        free(malloc(60)); /* it has a ledger by now, which ends with the exec */
        execve("/bin/true", arguments, environment);
    }
    waitpid(pid, 0, 0);
    if (!(pid = fork())) { /* an exec that fails, and the child goes on */
        void *volatile c = malloc(60);
        execve("/nowhere", arguments, environment);
        void *volatile d = malloc(33);
        exit(d == 0);
    }
    waitpid(pid, 0, 0);
    system("exit 7");
    usleep(200000); /* the daemon */
    void *volatile last = malloc(44);
    say("parent", 3000 + 90000 + 44, 3, 0, 0);
    return 0;
}
''', "ways", count=3)
assert reports["parent"]["process"]["state"] == "exited"
for file in pathlib.Path(".").glob("out.mst*"):
    support.report(file)
