/* shutdown_audit.h — what a program has at each stage of its end, and what is left at the last: memory, open files,
 * sockets. In: /proc of this process, and the ledger's knowledge through a pointer, because this room needs no ledger.
 * Out: lines of the log. Only system calls, and no lock: the thread that ends the process at its limit calls this, too.
 */
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

/* When something was opened or started, and by which functions, innermost first. */
struct shutdown_birth {
    uint64_t age_ns;
    bool inherited;
    char by[LINE_STRING + 1];
};

struct shutdown_ledger {
    bool (*is_kept)(void);
    bool (*has_births)(void); /* what is opened and started is noted at all */
    /* False: nothing is known of it. */
    bool (*descriptor)(const struct shutdown_descriptor *descriptor, struct shutdown_birth *birth);
    bool (*thread)(uint32_t tid, uint64_t age_ns, struct shutdown_birth *birth);
    uint64_t (*live_bytes)(void);
};
/* From now on what it knows goes into the log, too. */
void shutdown_audit_ask(const struct shutdown_ledger *ledger);

/* Adds the memory that the process has to a line. */
void shutdown_audit_memory(struct line *line);
/* A line with that, and how many descriptors there are, for the stage that begins; once for each that does. `asks`: the
 * thread whose descriptors are the program's. */
void shutdown_audit_stage(const char *stage, uint32_t asks);
/* A line for each descriptor but standard input, output and error, and those of /dev/null: how many. */
int64_t shutdown_audit_descriptors(uint32_t asks);
/* Adds to the line of a thread when it began, and what began it. */
void shutdown_audit_thread(struct line *line, uint32_t tid);

#pragma GCC visibility pop

#endif
