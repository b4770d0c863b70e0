/* measure.c — measure FILE PROGRAM ARG…: runs a program and writes "SECONDS KIBIBYTES STATUS" to FILE: wall time and
 * largest resident set. It is a program of its own because a child's resident set starts as large as its parent's, and
 * this parent is small. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    double start = now();
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    signal(SIGINT, SIG_IGN); /* the signal is meant for the server that it measures */
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) return 1;
    double seconds = now() - start;
    FILE *file = fopen(argv[1], "w");
    if (!file) return 1;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fprintf(file, "%.6f %ld %d\n", seconds, usage.ru_maxrss, code);
    return fclose(file) ? 1 : 0;
}
