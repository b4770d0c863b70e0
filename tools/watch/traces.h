/* traces.h — things that a program leaves in the system after its processes: shared memory, temporary files, named
 * sockets, System V segments. The kernel does not remove them.
 * In: the live family, look by look: its open and mapped files, and the segments that its processes made. Out: the
 * things that are still there. A thing counts only if it belongs to this user and appeared after the program began. */
#ifndef MEMSTOW_TRACES_H
#define MEMSTOW_TRACES_H

#include "tools/watch/family.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TRACES_MOST = 4096 };
enum trace_kind { TRACE_SHARED, TRACE_TEMPORARY, TRACE_SOCKET, TRACE_SYSTEM_V };

struct trace {
    enum trace_kind kind;
    char path[256]; /* for a segment: its number */
    char name[32];  /* name of the process that had the thing open or made it */
    pid_t pid;      /* pid of that process */
    uint64_t device, inode, bytes;
    int segment;
    bool needed, left; /* set by traces_settle */
};

struct traces {
    char **arguments; /* the command line: files that it names are results, not temporary files */
    uint64_t started_wall_ns;
    struct trace *list;
    size_t count, capacity, left;
    bool missed;  /* more than TRACES_MOST existed at a time, so not all were followed */
    bool settles; /* traces_settle is at work: known things are marked as needed, and no new ones are added */
};

void traces_begin(struct traces *traces, char **arguments);
void traces_end(struct traces *traces);
/* Notes the files and sockets that live processes, except exempt ones, have now, and the segments that members of the
 * family made. */
void traces_note(struct traces *traces, const struct family *family);
/* Finds out which things are left when the processes are gone. Things that exempt processes made or have open are not
 * left: they are still needed. */
void traces_settle(struct traces *traces, const struct family *family);
const char *traces_word(enum trace_kind kind);

#endif
