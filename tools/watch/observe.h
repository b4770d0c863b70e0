/* observe.h — follows a program from its start until nothing of it is left, or the time is up.
 * In: a launched program. This process is its parent and subreaper. Out: its family (family.h); its traces in the
 * system (traces.h); the times when it was asked to end and when it ended; a process whose main thread ended before
 * its other threads (observe_lingerer).
 * A look reads from /proc what the family has now. Looks come about once a second, and take at most 1/100 of a
 * processor. Once the program was asked to end, or has ended, they come about four times a second, and take at most
 * 1/10. */
#ifndef MEMSTOW_OBSERVE_H
#define MEMSTOW_OBSERVE_H

#include "tools/watch/family.h"
#include "tools/launch/launch.h"
#include "tools/watch/traces.h"

struct observe {
    struct launch *launch;
    struct family family;
    struct traces traces;
    uint64_t asked_ns, ended_ns; /* when the program was first asked to end, and when it ended; 0: not yet */
    /* resident bytes of the family when the program was asked to end or, if nobody asked, when it ended */
    uint64_t asked_rss;
    /* look_ns: when the next look is due. After the program has ended, the end of a child makes a look due earlier, but
     * not before soon_ns. */
    uint64_t look_ns, soon_ns;
    bool blind;           /* the last look failed: /proc cannot be read, or there was no memory */
    uint32_t empty_looks; /* how many looks in a row saw no process */
    uint64_t empty_ns;    /* the time of the first of these looks */
    int interrupted;      /* the signal that asks this process to end, or 0 */
};

/* Begins to follow the program and its files. `argv`: its command line. `exempt`: exempt processes, or NULL. */
void observe_begin(struct observe *observe, struct launch *launch, char **argv, const struct exempt *exempt);
void observe_end(struct observe *observe);
/* Waits for at most `timeout_ns`, and looks when it is time. Returns the number of a signal that came, or 0. */
int observe_step(struct observe *observe, uint64_t timeout_ns);
/* Looks now. */
void observe_look(struct observe *observe);
/* Notes that the program is asked to end now. Only the first call counts. */
void observe_asked(struct observe *observe);
/* Finds a live process whose main thread has ended, or waits in Python's shutdown, while other threads of the process
 * run on. A process counts only if it was seen in this state before the program ended or was asked to end. If several
 * processes count, returns the one that was seen in this state first. Returns NULL if no process counts. */
const struct member *observe_lingerer(const struct observe *observe);
/* Whether the program and all processes that it started have ended. Exempt processes do not count. */
bool observe_is_over(const struct observe *observe);
/* Ends all remaining processes, and writes to `to` (may be NULL) how each ended. Returns their number. */
size_t observe_end_all(struct observe *observe, FILE *to);

#endif
