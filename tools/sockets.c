/* sockets.c — what a socket is; see sockets.h. */
#include "sockets.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MOST = 1 << 20 };

static struct socket_entry *add(struct sockets *sockets, uint64_t inode) {
    if (!inode || sockets->count == ENTRIES_MOST) return NULL;
    if (sockets->count == sockets->capacity) {
        size_t capacity = sockets->capacity ? 2 * sockets->capacity : 64;
        struct socket_entry *grown = realloc(sockets->entries, capacity * sizeof *grown);
        if (!grown) return NULL;
        sockets->entries = grown;
        sockets->capacity = capacity;
    }
    struct socket_entry *entry = &sockets->entries[sockets->count++];
    *entry = (struct socket_entry){.inode = inode};
    return entry;
}

/* "0100007F:1F90", the words of the address in the order of this machine. */
static void address_text(const char *hex, char *text, size_t size) {
    uint32_t words[4] = {0};
    char name[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    size_t digits = strcspn(hex, ":");
    bool six = digits == 32;
    for (size_t i = 0; i < (six ? 4u : 1u); i++) sscanf(hex + 8 * i, "%8" SCNx32, &words[i]);
    sscanf(hex + digits, ":%x", &port);
    inet_ntop(six ? AF_INET6 : AF_INET, words, name, sizeof name);
    snprintf(text, size, six ? "[%s]:%u" : "%s:%u", name, port);
}

static const char *state_text(unsigned state) {
    static const char *const names[] = {[1] = "connected",      [2] = "connecting",  [3] = "being connected",
                                        [4] = "closing",        [5] = "half closed", [6] = "waits after its end",
                                        [8] = "closed by peer", [9] = "closing",     [10] = "listens",
                                        [11] = "closing"};
    return state < sizeof names / sizeof *names && names[state] ? names[state] : NULL;
}

static void take_inet(struct sockets *sockets, const char *line, const char *protocol) {
    char local[64], remote[64], from[80], to[80];
    unsigned state;
    uint64_t inode;
    if (sscanf(line, " %*d: %63s %63s %x %*s %*s %*s %*s %*s %" SCNu64, local, remote, &state, &inode) != 4) return;
    struct socket_entry *entry = add(sockets, inode);
    if (!entry) return;
    address_text(local, from, sizeof from);
    address_text(remote, to, sizeof to);
    bool tcp = strncmp(protocol, "tcp", 3) == 0;
    entry->listens = tcp && state == 10;
    const char *words = tcp ? state_text(state) : NULL;
    if (strstr(to, ":0") && strcmp(strrchr(to, ':'), ":0") == 0)
        snprintf(entry->text, sizeof entry->text, "%.3s %s%s%s", protocol, from, words ? ", " : "", words ? words : "");
    else
        snprintf(entry->text, sizeof entry->text, "%.3s %s to %s%s%s", protocol, from, to, words ? ", " : "",
                 words ? words : "");
}

static void take_unix(struct sockets *sockets, const char *line, const char *protocol) {
    unsigned flags;
    uint64_t inode;
    int path = 0;
    if (sscanf(line, "%*x: %*x %*x %x %*x %*x %" SCNu64 " %n", &flags, &inode, &path) != 2) return;
    struct socket_entry *entry = add(sockets, inode);
    if (!entry) return;
    int length = path ? (int)strcspn(line + path, "\n") : 0;
    entry->listens = flags & 0x10000; /* __SO_ACCEPTCON */
    entry->named = length && line[path] == '/';
    if (length)
        snprintf(entry->text, sizeof entry->text, "%s %.*s", protocol, length < 150 ? length : 150, line + path);
    else
        snprintf(entry->text, sizeof entry->text, "%s", protocol);
}

static void read_table(struct sockets *sockets, pid_t pid, const char *name,
                       void (*take)(struct sockets *, const char *, const char *)) {
    char path[64], *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, name);
    FILE *table = fopen(path, "re");
    if (!table) return;
    for (bool first = true; getline(&line, &size, table) > 0; first = false)
        if (!first) take(sockets, line, name);
    free(line);
    fclose(table);
}

static int by_inode(const void *left, const void *right) {
    const struct socket_entry *a = left, *b = right;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

void sockets_load(struct sockets *sockets, pid_t pid) {
    static const char *const inet[] = {"tcp", "tcp6", "udp", "udp6"};
    *sockets = (struct sockets){0};
    for (size_t i = 0; i < sizeof inet / sizeof *inet; i++) read_table(sockets, pid, inet[i], take_inet);
    read_table(sockets, pid, "unix", take_unix);
    if (sockets->count) qsort(sockets->entries, sockets->count, sizeof *sockets->entries, by_inode);
}

void sockets_clear(struct sockets *sockets) {
    free(sockets->entries);
    *sockets = (struct sockets){0};
}

const struct socket_entry *sockets_find(const struct sockets *sockets, uint64_t inode) {
    struct socket_entry key = {.inode = inode};
    return sockets->count ? bsearch(&key, sockets->entries, sockets->count, sizeof key, by_inode) : NULL;
}
