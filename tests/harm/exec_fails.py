"""An exec fails, as happens in every search along PATH. The process and its ledger go on. This also holds for a forked
child with threads of its own."""
import _fork, support

reports = _fork.run(r'''
static volatile int stop;
static void *churn(void *unused) {
    while (!stop) {
        void *p = malloc(2000);
        free(p);
    }
    return malloc(700);
}
static void with_threads(const char *who, long inherited) {
    pthread_t threads[3];
    char *const arguments[] = {"absent", 0};
    for (int t = 0; t < 3; t++) pthread_create(&threads[t], 0, churn, 0);
    void *volatile p = malloc(100);
    for (int i = 0; i < 50; i++) {
        execv("/nowhere/absent", arguments);
        usleep(1000);
        execvp("absent-from-path", arguments);
        execl("/nowhere/absent", "absent", "a", "b", (char *)0);
    }
    stop = 1;
    for (int t = 0; t < 3; t++) pthread_join(threads[t], 0);
    say(who, 2200 + (inherited ? 0 : 5000), 4 + !inherited, inherited, 0);
}
int main(void) {
    void *volatile before = malloc(5000);
    if (!fork()) {
        with_threads("child", 5000);
        exit(0);
    }
    int status;
    wait(&status);
    with_threads("parent", 0);
    return status != 0;
}
''', "execs", count=2)
assert all(r["process"]["state"] == "exited" for r in reports.values())

# For a pointer to memory that does not exist, the kernel returns an error. The program gets this error, and goes on.
bad_pointers = support.compile(r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    char *const arguments[] = {"true", 0}, *const environment[] = {"LD_PRELOAD=", "A=1", (char *)8, 0};
    char *const nowhere = (char *)4096;
    execve("/bin/true", arguments, (char *const *)nowhere);
    printf("%d ", errno == EFAULT);
    execve("/bin/true", arguments, environment);
    printf("%d ", errno == EFAULT);
    execve("/bin/true", (char *const *)nowhere, environment + 3);
    printf("%d ", errno == EFAULT);
    syscall(SYS_clone3, nowhere, 64);
    printf("%d\n", errno == EFAULT);
}
""", "bad_pointers")
assert support.track(bad_pointers).stdout == "1 1 1 1\n"

# After failures the exec succeeds: the new image has a file, and the file of the old image is kept beside it.
support.track("sh", "-c", "PATH=/nowhere:/absent:/usr/bin:/bin exec env true", file="found.mst")
assert support.report("found.mst")["process"]["name"] == "true"
