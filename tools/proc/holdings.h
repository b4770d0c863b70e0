/* holdings.h — things of a process that can keep it, or other processes, from ending: threads and their waits, open
 * files, sockets, shared memory, mapped files, its own deleted files, contexts on a GPU.
 * In: a pid. Out: lists from /proc. It does not attach to the process. */
#ifndef MEMSTOW_HOLDINGS_H
#define MEMSTOW_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/shared/handle_kind.h"

struct handle {
    int fd; /* the descriptor; -1: the thing is only mapped */
    enum handle_kind kind;
    bool standard;      /* the descriptor is 0, 1 or 2, or /dev/null, or has the same file (not socket) as 0, 1 or 2 */
    uint64_t mapped_at; /* address, for things that are only mapped */
    char what[256];
};

struct task {
    pid_t tid;
    char name[16], state;
    uint64_t start_ticks, processor_ns;
    char waits[160]; /* "in futex", "in accept, descriptor 3: tcp 127.0.0.1:80, listens" */
};

/* A mapped file that is not shared memory. holdings_load() drops memstow's ledgers from the list before it returns. */
struct mapped {
    char path[256];
    uint64_t bytes; /* in all mappings of the file */
    bool code;      /* it is a program or a library */
    bool ledger;    /* it is a ledger of memstow. When all maps are read, the entry is dropped */
};

struct holdings {
    pid_t pid;
    struct task *tasks;
    size_t task_count, task_capacity;
    struct handle *handles;
    size_t handle_count, handle_capacity;
    size_t of_kind[HANDLE_KINDS]; /* how many handles there are of each kind, without standard descriptors */
    /* how many handles have a descriptor. These come first, sorted by descriptor; handles that are only mapped
     * follow */
    size_t descriptors;
    uint64_t shared_bytes; /* in mappings of shared memory, without ledgers */
    uint64_t mapped_files; /* number of mappings that have a file */
    struct mapped *mapped; /* the largest first, code last */
    size_t mapped_count, mapped_capacity, code_count;
};

/* Reads as much as permissions allow. Returns 0, or -1: the process is gone, or there is no memory. */
int holdings_load(struct holdings *holdings, pid_t pid);
void holdings_clear(struct holdings *holdings);
/* Whether the file is a ledger of memstow. Ledgers do not count as files of the program. */
bool holdings_is_ledger(const char *path);

#endif
