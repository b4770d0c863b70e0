/* holdings.h — what a process has that can keep it, or others, from ending: threads and what they wait in, open files,
 * sockets, shared memory, mapped files, files of its own that are deleted already, contexts on a GPU.
 * In: a pid. Out: lists, read from /proc, which is the truth. It attaches to nothing. */
#ifndef MEMSTOW_HOLDINGS_H
#define MEMSTOW_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/shared/handle_kind.h"

struct handle {
    int fd; /* -1: mapped only */
    enum handle_kind kind;
    bool standard;      /* of 0, 1 and 2, or what they are as well */
    uint64_t mapped_at; /* of what is mapped only */
    char what[256];
};

struct task {
    pid_t tid;
    char name[16], state;
    uint64_t start_ticks, processor_ns;
    char waits[160]; /* "in futex", "in accept on tcp 127.0.0.1:80 (descriptor 3)", "runs" */
};

/* A file that is mapped, other than as shared memory; our own ledger is none. */
struct mapped {
    char path[256];
    uint64_t bytes; /* in all its mappings */
    bool code;      /* a program, or a library */
    bool ledger;    /* while maps are read; then it is dropped */
};

struct holdings {
    pid_t pid;
    struct task *tasks;
    size_t task_count;
    struct handle *handles;
    size_t handle_count, of_kind[HANDLE_KINDS]; /* standard ones not counted */
    size_t descriptors;                         /* the first of the handles, by number; then what is only mapped */
    uint64_t shared_bytes;                      /* mapped */
    uint64_t mapped_files;                      /* mappings of any file */
    struct mapped *mapped;                      /* the largest first, code last */
    size_t mapped_count, code_count;
};

/* As much as may be read; 0, or -1: it is gone, or no memory. */
int holdings_load(struct holdings *holdings, pid_t pid);
void holdings_clear(struct holdings *holdings);
/* Whether the file is a ledger of ours. */
bool holdings_is_ledger(const char *path);

#endif
