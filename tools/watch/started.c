/* started.c — see started.h. */
#include "tools/watch/started.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void started_mark(char to[STARTED_MARK], pid_t pid, uint64_t start_ticks, uint64_t number) {
    to[0] = 0;
    if (number) snprintf(to, STARTED_MARK, "%d.%" PRIu64 ".%" PRIu64, (int)pid, start_ticks, number);
}

static bool is_of_this_namespace(pid_t pid) {
    char path[32];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat("/proc/self/ns/pid", &own) == 0 && stat(path, &other) == 0 && own.st_ino == other.st_ino &&
           own.st_dev == other.st_dev;
}

bool started_mark_of(pid_t pid, char to[STARTED_MARK]) {
    static const char variable[] = "MEMSTOW_STARTED=";
    char path[32], *text = NULL;
    size_t capacity = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *environment = fopen(path, "re");
    if (!environment) return false;
    while (!found && getdelim(&text, &capacity, 0, environment) > 0)
        found = strncmp(text, variable, sizeof variable - 1) == 0;
    fclose(environment);
    const char *value = found ? text + sizeof variable - 1 : "";
    found = value[0] && strlen(value) < STARTED_MARK && is_of_this_namespace(pid);
    if (found) strcpy(to, value);
    free(text);
    return found;
}
