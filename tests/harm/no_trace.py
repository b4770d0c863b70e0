"""A plain run leaves no trace in the process: no thread, no descriptor, no signal handler or mask, and no variable in
the environment but ours."""

import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
extern char **environ;
static void list(const char *path) {
    DIR *directory = opendir(path);
    int count = 0;
    printf("%s:", path);
    for (struct dirent *e; (e = readdir(directory));)
        if (e->d_name[0] != '.')
            count++, strcmp(path, "/proc/self/fd") || printf(" %s", e->d_name);
    printf(" %d\n", count);
    closedir(directory);
}
static void look(void) {
    char line[400];
    list("/proc/self/task");
    list("/proc/self/fd");
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "Sig", 3) && strncmp(line, "SigQ", 4) || !strncmp(line, "Shd", 3) ||
            !strncmp(line, "Seccomp", 7) || !strncmp(line, "NoNewPrivs", 10) || !strncmp(line, "Threads", 7) ||
            !strncmp(line, "Umask", 5))
            fputs(line, stdout);
    fclose(status);
    for (char **at = environ; *at; at++)
        if (strncmp(*at, "MEMSTOW_", 8) && strncmp(*at, "LD_PRELOAD=", 11) && strncmp(*at, "_=", 2))
            puts(*at);
    fflush(stdout);
}
int main(void) {
    look();
    for (int i = 0; i < 5000; i++) /* the ledger grows meanwhile */
        malloc(70000), mmap(0, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    look();
    if (!fork()) {
        malloc(10);
        look();
        exit(0);
    }
    wait(0);
    return 0;
}
''', "look", flags=("-w", "-O0"))
alone = support.run(program).stdout
tracked = support.track(program).stdout
assert alone == tracked, f"alone:\n{alone}\ntracked:\n{tracked}"
assert "SigCgt" in alone and "/proc/self/fd: 0 1 2 3" in alone, alone
assert support.report()["totals"]["host"]["live_bytes"] >= 5000 * 70000
