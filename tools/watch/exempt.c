/* exempt.c — see exempt.h. */
#include "tools/watch/exempt.h"
#include "tools/base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool exempt_take(struct exempt *exempt, char *list) {
    for (char *name; list && (name = strsep(&list, ","));) {
        if (!*name || exempt->count == EXEMPT_NAMES_MOST) return false;
        exempt->names[exempt->count++] = name;
    }
    return true;
}

static bool has_name(const struct exempt *exempt, const char *name) {
    for (size_t i = 0; i < exempt->count; i++)
        if (strcmp(exempt->names[i], name) == 0) return true;
    return false;
}

/* Whether the first word of the command line, or the first later word that is not an option, has one of the names. */
static bool has_command(const struct exempt *exempt, pid_t pid) {
    char path[64], words[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, words, sizeof words - 1) : -1;
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    words[got] = 0;
    if (has_name(exempt, text_base_name(words))) return true;
    for (const char *word = words + strlen(words) + 1; word < words + got; word += strlen(word) + 1)
        if (word[0] != '-') return has_name(exempt, text_base_name(word));
    return false;
}

/* `name`: the name of the process in /proc, which the kernel cuts to 15 bytes. Several programs may share these bytes,
 * so they are never taken for a longer exempt name. A longer exempt name is found in the command line only. */
bool exempt_has_process(const struct exempt *exempt, pid_t pid, const char *name) {
    return exempt->count && (has_name(exempt, name) || has_command(exempt, pid));
}

void exempt_load_registered(const struct exempt *exempt, const char *path, struct registry *registry) {
    size_t kept = 0;
    bool is_read = registry_load(registry, path) == 0;
    for (size_t i = 0; is_read && i < registry->count; i++) {
        const struct registered *process = &registry->processes[i];
        if (process->keep || has_name(exempt, process->name)) registry->processes[kept++] = *process;
    }
    registry->count = kept;
}
