/* family.h — the processes of a program: itself, its children, and all that they started. This includes processes whose
 * parent has ended (double forks, setsid, launcher scripts): the kernel makes them children of the subreaper, which is
 * this process.
 * In: /proc. Out: these processes, their ages, and how their memory changed. It sends no signals and does not
 * attach. */
#ifndef MEMSTOW_FAMILY_H
#define MEMSTOW_FAMILY_H

#include "tools/watch/growth.h"
#include "tools/watch/exempt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One process. `pid` and `start_ticks` together identify it, because the kernel uses a pid again. */
struct member {
    pid_t pid, session, group;
    pid_t parent; /* its parent; 0: the parent had ended before memstow saw the process */
    uint64_t start_ticks;
    char name[32];
    char state; /* as in /proc/PID/stat */
    bool here;  /* it was there at the last look, and is not exempt */
    bool exempt;
    bool stays;  /* exempt, and there at the last look */
    bool orphan; /* its parent is gone */
    uint32_t threads;
    uint64_t rss, peak_rss, processor_ns;             /* rss and peak_rss: bytes */
    uint64_t since_ns, since_rss, since_processor_ns; /* time, rss and processor_ns at family_mark */
    /* a reading of the member's ledger at family_mark; NULL: the ledger was not read, or the member has none */
    struct growth_look *growth;
    uint64_t done_ns; /* when observe_look saw that its main thread had come to its end; 0: it has not */
};

struct family {
    pid_t main;
    uint64_t main_start;
    struct member *members; /* including those that are gone */
    size_t count, capacity;
    size_t here;            /* number of live members, without zombies and exempt processes */
    size_t stays;           /* number of live, exempt members */
    uint64_t rss, peak_rss; /* rss: the sum over all members that are here. peak_rss: the highest `rss` so far */
    /* threads: the number of threads of all members that are here. most_threads and most_here: the highest `threads`
     * and the highest `here` so far */
    uint32_t threads, most_threads, most_here;
    uint64_t looked_ns;
    const struct exempt *exempt; /* tells which processes are exempt, with all that they started; NULL: none are */
};

/* Makes this process the subreaper, which adopts all orphans from now on. Call it before the program starts: children
 * that exist before the call do not belong to a family. False: the kernel refuses. */
bool family_adopt(void);
/* `exempt` may be NULL; otherwise it must live as long as the family. */
void family_begin(struct family *family, pid_t main, const struct exempt *exempt);
void family_end(struct family *family);
/* Finds out which processes belong to the family now, and reads their memory and threads. Returns 0, or -1 if /proc
 * cannot be read or there is no memory. */
int family_look(struct family *family);
/* From now on, the growth and the processor time of each member are measured. If `ledgers` is true, each member's
 * ledger is read now, so that its growth can be told later. */
void family_mark(struct family *family, bool ledgers);
/* Growth of a member's rss since family_mark, in bytes a second; 0 within the first half second. */
double family_member_growth(const struct member *member, uint64_t now_ns);

#endif
