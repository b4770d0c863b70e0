/* errand.c — see errand.h. */
#include "tools/top/errand.h"
#include "tools/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MOST = 8 };

/* Starts the command in a process group of its own, because Ctrl-C in the terminal is for top. */
static int errand_spawn(struct errand *errand, char *const *argv, int to) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int error = posix_spawn(&errand->pid, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

bool errand_start(struct errand *errand, const char *const *words) {
    char *argv[WORDS_MOST + 2] = {(char *)"memstow"};
    int pair[2];
    if (errand->pid || pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0) return false;
    for (int i = 0; i < WORDS_MOST && words[i]; i++) argv[i + 1] = (char *)words[i];
    *errand = (struct errand){.from = pair[0]};
    int error = errand_spawn(errand, argv, pair[1]);
    close(pair[1]);
    if (!error) return true;
    close(pair[0]);
    errand->pid = 0;
    errno = error;
    return false;
}

/* Reads the command's output, and keeps the end of it. */
static void errand_hear(struct errand *errand) {
    char bytes[512];
    for (ssize_t got; (got = read(errand->from, bytes, sizeof bytes)) > 0;) {
        size_t capacity = sizeof errand->said - 1;
        if (errand->length + (size_t)got > capacity) {
            size_t gone = errand->length + (size_t)got - capacity;
            memmove(errand->said, errand->said + gone, errand->length - gone);
            errand->length -= gone;
        }
        memcpy(errand->said + errand->length, bytes, (size_t)got);
        errand->length += (size_t)got;
    }
    errand->said[errand->length] = 0;
}

static void last_line(struct errand *errand) {
    while (errand->length && errand->said[errand->length - 1] == '\n') errand->said[--errand->length] = 0;
    const char *line = strrchr(errand->said, '\n');
    struct text_line safe = text_fit(line ? line + 1 : errand->said, 300);
    snprintf(errand->said, sizeof errand->said, "%.1000s", safe.s);
}

bool errand_poll(struct errand *errand) {
    int status;
    if (!errand->pid) return false;
    errand_hear(errand);
    if (waitpid(errand->pid, &status, WNOHANG) != errand->pid) return false;
    errand_hear(errand);
    close(errand->from);
    last_line(errand);
    errand->pid = 0;
    return true;
}

void errand_leave(struct errand *errand) {
    if (errand->pid) close(errand->from);
    errand->pid = 0;
}
