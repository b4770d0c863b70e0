/* family.h — the processes that a program consists of: itself, its children, and what they started, also where the link
 * was cut (double forks, setsid, launcher scripts that ended): the kernel gives those to us, who are their subreaper.
 * In: /proc. Out: who is there, since when, and how its memory went. It signals nobody and attaches to nothing. */
#ifndef MEMSTOW_FAMILY_H
#define MEMSTOW_FAMILY_H

#include "tools/watch/growth.h"
#include "tools/watch/exempt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One process, by pid and start: a pid alone may be another's by now. */
struct member {
    pid_t pid, session, group;
    pid_t parent; /* who started it; 0: had ended before it was seen */
    uint64_t start_ticks;
    char name[32];
    char state;  /* as in /proc/PID/stat */
    bool here;   /* at the last look, and not spared */
    bool spared; /* it is to live on, */
    bool stays;  /* and did at the last look */
    bool orphan; /* who started it is gone */
    uint32_t threads;
    uint64_t rss, peak_rss, processor_ns;
    uint64_t since_ns, since_rss, since_processor_ns; /* at family_mark */
    struct growth_look *growth;                       /* the ledger then; NULL: not looked at, or it has none */
    uint64_t done_ns; /* when its main thread was seen to have come to its end; 0: by observe_look, it was not */
};

struct family {
    pid_t main;
    uint64_t main_start;
    struct member *members; /* those that are gone, too */
    size_t count, capacity;
    size_t here;            /* alive, zombies and who is spared not counted */
    size_t stays;           /* alive, and spared */
    uint64_t rss, peak_rss; /* of all that are here; the highest sum that a look has seen */
    uint32_t threads, most_threads, most_here;
    uint64_t looked_ns;
    const struct exempt *exempt; /* who is to live on, with all that they started; NULL: nobody */
};

/* From now on who is left behind by a child is given to this process. Before the program starts: who is our child by
 * then is none of a family. */
bool family_adopt(void);
/* `spare` may be NULL, and else stays as long as the family. */
void family_begin(struct family *family, pid_t main, const struct exempt *exempt);
void family_end(struct family *family);
/* 0, or -1: /proc cannot be read, or no memory. */
int family_look(struct family *family);
/* What follows is growth since now; `ledgers`: also of what each ledger says, which is read. */
void family_mark(struct family *family, bool ledgers);
/* Bytes a second since family_mark; 0 when less than half a second went by. */
double member_growth(const struct member *member, uint64_t now_ns);

#endif
