/* shutdown_audit.h — writes to the log how much memory and how many descriptors a program has at each stage of its end,
 * and which descriptors are left at last.
 * In: /proc of this process, and answers from the ledger. The answers come through pointers to functions, because no
 * file in this folder depends on the ledger. Out: lines of the log. It makes only system calls and takes no lock: it is
 * also called by the thread that ends a program which has not ended in time. */
#ifndef MEMSTOW_SHUTDOWN_AUDIT_H
#define MEMSTOW_SHUTDOWN_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/handle_kind.h"
#include "preload/shutdown/shutdown_log.h"

#pragma GCC visibility push(hidden)

struct shutdown_descriptor {
    uint32_t fd;
    enum handle_kind kind;
    uint64_t device, inode; /* device as major << 32 | minor */
    char what[LINE_STRING + 1];
};

/* How long ago a descriptor was opened or a thread was started, and by which functions (`by`), innermost first.
 * inherited: it existed when the ledger began. */
struct shutdown_origin {
    uint64_t age_ns;
    bool inherited;
    char by[LINE_STRING + 1];
};

struct shutdown_ledger {
    bool (*has_ledger)(void);  /* whether there is a ledger */
    bool (*has_origins)(void); /* whether origins are recorded at all */
    /* Find the origin of a descriptor or a thread. False: there is no record. A record of a thread may belong to an
     * earlier thread with the same id. */
    bool (*descriptor)(const struct shutdown_descriptor *descriptor, struct shutdown_origin *origin);
    bool (*thread)(uint32_t tid, struct shutdown_origin *origin);
    uint64_t (*live_bytes)(void);
};
/* Sets the functions that answer for the ledger. From now on the log contains their answers. */
void shutdown_audit_ask(const struct shutdown_ledger *asked);

/* Adds the memory of the process to a line. */
void shutdown_audit_memory(struct line *line);
/* Writes a line about a stage that begins. The line has the memory of the process and the number of its descriptors.
 * `asks` is the id of a thread that has the program's descriptors, or 0 for the first thread. */
void shutdown_audit_stage(const char *stage, uint32_t asks);
/* Writes a line for each of the first 256 descriptors, and returns how many there are in all. Standard input, output
 * and error, and descriptors of /dev/null, do not count. `asks` is as in shutdown_audit_stage. */
int64_t shutdown_audit_descriptors(uint32_t asks);
/* Adds to a line about a thread how old the thread is, and which functions started it. */
void shutdown_audit_thread(struct line *line, uint32_t tid);

#pragma GCC visibility pop

#endif
