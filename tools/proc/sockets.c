/* sockets.c — see sockets.h. */
#include "tools/proc/sockets.h"
#include "tools/base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MOST = 1 << 20 };

static void socket_add(struct sockets *sockets, const struct socket_line *entry) {
    if (sockets->count == ENTRIES_MOST) return;
    if (!LIST_GROW(sockets->entries, sockets->count, sockets->capacity)) return;
    sockets->entries[sockets->count++] = *entry;
}

static void read_table(struct sockets *sockets, pid_t pid, const char *name) {
    struct socket_line entry;
    char path[64], *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, name);
    FILE *table = fopen(path, "re");
    if (!table) return;
    while (getline(&line, &size, table) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (socket_line_parse(&entry, name, line)) socket_add(sockets, &entry);
    }
    free(line);
    fclose(table);
}

static int by_inode(const void *left, const void *right) {
    const struct socket_line *a = left, *b = right;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

void sockets_load(struct sockets *sockets, pid_t pid) {
    *sockets = (struct sockets){0};
    for (size_t i = 0; i < SOCKET_TABLES; i++) read_table(sockets, pid, socket_tables[i]);
    if (sockets->count) qsort(sockets->entries, sockets->count, sizeof *sockets->entries, by_inode);
}

void sockets_clear(struct sockets *sockets) {
    free(sockets->entries);
    *sockets = (struct sockets){0};
}

const struct socket_line *sockets_find(const struct sockets *sockets, uint64_t inode) {
    struct socket_line key = {.inode = inode};
    return sockets->count ? bsearch(&key, sockets->entries, sockets->count, sizeof key, by_inode) : NULL;
}
