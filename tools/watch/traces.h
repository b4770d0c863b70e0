/* traces.h — what a program leaves in the system when its processes are gone: shared memory, temporary files, sockets
 * with a name, System V segments. The kernel does not clean these up.
 * In: looks at the family while it lives: what it had open or mapped, and who made it. Out: which of that is still
 * there. Only what came after the program began counts, and only what is the user's own. */
#ifndef MEMSTOW_TRACES_H
#define MEMSTOW_TRACES_H

#include "tools/watch/family.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TRACES_MOST = 4096 };
enum trace_kind { TRACE_SHARED, TRACE_TEMPORARY, TRACE_SOCKET, TRACE_SYSTEM_V };

struct trace {
    enum trace_kind kind;
    char path[256]; /* of a segment: its number */
    char name[32];  /* of the process that had it, */
    pid_t pid;      /* and its pid */
    uint64_t device, inode, bytes;
    int segment;
    bool needed, left; /* by traces_settle */
};

struct traces {
    char **arguments; /* what the command line names is a result, and no temporary file */
    uint64_t started_wall_ns;
    struct trace *list;
    size_t count, capacity, left;
    bool missed; /* more than TRACES_MOST were there at a time: not all were followed */
    bool settles;
};

void traces_begin(struct traces *traces, char **arguments);
void traces_end(struct traces *traces);
/* Notes what the processes that are here have now. */
void traces_note(struct traces *traces, const struct family *family);
/* Which of them are left, now that the processes are gone; who lives on needs what it made, and what it has. */
void traces_settle(struct traces *traces, const struct family *family);
const char *trace_word(enum trace_kind kind);

#endif
