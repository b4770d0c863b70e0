/* registry.h — process_registry.json: the processes that a program has started, so that they can be found after its
 * end.
 * In: a file that is not trusted. Out: its processes, or one message with line and column. */
#ifndef MEMSTOW_REGISTRY_H
#define MEMSTOW_REGISTRY_H

#include "tools/watch/started.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct registered {
    pid_t pid;
    uint64_t start_ticks;
    char name[64];
    bool keep;               /* it is to live on, for example a server */
    char mark[STARTED_MARK]; /* the mark that all its descendants inherit; "": none */
};

struct registry {
    /* parent: the program that wrote the list */
    struct registered parent, *processes;
    size_t count, capacity;
    uint8_t boot_id[16];
    char error[400];
};

#define REGISTRY_FILE "process_registry.json"
enum { REGISTRY_MIB = 1, REGISTRY_MOST = 4096 };

/* registry_parse() and registry_load() return 0, or -1 after they have written a message to registry->error. Call
 * registry_clear() in both cases. */
int registry_parse(struct registry *registry, const char *name, const char *text, size_t length);
/* Refuses a file that is not regular, that belongs to another user, or that others may write to. */
int registry_load(struct registry *registry, const char *path);
void registry_clear(struct registry *registry);
/* Whether the file's name, without folders, is process_registry.PID.json or process_registry.PID-N.json. Such lists
 * belong to programs that used the folder before, or share it. */
bool registry_is_numbered(const char *name);

#endif
