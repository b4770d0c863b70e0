/* spare.c — which processes of a program are to live on; see spare.h. */
#include "tools/watch/spare.h"
#include "tools/base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool spare_take(struct spare *spare, char *list) {
    for (char *name; list && (name = strsep(&list, ","));) {
        if (!*name || spare->count == SPARE_NAMES_MOST) return false;
        spare->names[spare->count++] = name;
    }
    return true;
}

static bool has_name(const struct spare *spare, const char *name) {
    for (size_t i = 0; i < spare->count; i++)
        if (strcmp(spare->names[i], name) == 0) return true;
    return false;
}

/* Its first word, and the next that is no option. */
static bool has_command(const struct spare *spare, pid_t pid) {
    char path[64], words[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, words, sizeof words - 1) : -1;
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    words[got] = 0;
    if (has_name(spare, text_base_name(words))) return true;
    for (const char *word = words + strlen(words) + 1; word < words + got; word += strlen(word) + 1)
        if (word[0] != '-') return has_name(spare, text_base_name(word));
    return false;
}

/* The kernel keeps 15 bytes of a name, which others may share: a longer one has to be that of the program. */
bool spare_has_process(const struct spare *spare, pid_t pid, const char *name) {
    return spare->count && (has_name(spare, name) || has_command(spare, pid));
}

void spare_load_registered(const struct spare *spare, const char *path, struct registry *registry) {
    size_t kept = 0;
    bool is_read = registry_load(registry, path) == 0;
    for (size_t i = 0; is_read && i < registry->count; i++) {
        const struct registered *process = &registry->processes[i];
        if (process->keep || has_name(spare, process->name)) registry->processes[kept++] = *process;
    }
    registry->count = kept;
}
