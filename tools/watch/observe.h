/* observe.h — follows a program from its start until nothing of it is left, or patience ends.
 * In: a launched program, whose parent and subreaper we are. Out: its family, what it leaves behind, and the moments at
 * which it was asked to end and ended, or a main thread did while others run on. While it runs it is looked at about
 * once a second, and never for more than a hundredth of the time; then four times a second, and for no more than a
 * tenth. */
#ifndef MEMSTOW_OBSERVE_H
#define MEMSTOW_OBSERVE_H

#include "tools/watch/family.h"
#include "tools/launch/launch.h"
#include "tools/watch/traces.h"

struct observe {
    struct launch *launch;
    struct family family;
    struct traces traces;
    uint64_t asked_ns, ended_ns; /* 0: not yet */
    uint64_t asked_rss;          /* of the family, when it was first asked, or ended */
    uint64_t look_ns, soon_ns;   /* when to look again; and when at the earliest, when a child has ended */
    bool blind;                  /* the last look failed: /proc cannot be read, or there was no memory */
    uint32_t empty_looks;        /* that saw nobody, one after the other, */
    uint64_t empty_ns;           /* the first of them */
    int interrupted;             /* the signal by which somebody wants us to end, or 0 */
};

/* `argv` is the program's, whose files are looked for from now on; `spare`: who is to live on, or NULL. */
void observe_begin(struct observe *observe, struct launch *launch, char **argv, const struct exempt *exempt);
void observe_end(struct observe *observe);
/* Waits for at most so long, and looks when it is time: the number of a signal that came, or 0. */
int observe_step(struct observe *observe, uint64_t timeout_ns);
void observe_look(struct observe *observe);
/* It was asked to end, now. Only the first time counts. */
void observe_asked(struct observe *observe);
/* The first that runs on although its main thread has come to its end, which nobody need have asked for; NULL: none. It
 * is looked for until the program is asked to end, or has ended. */
const struct member *observe_lingerer(const struct observe *observe);
/* The program has ended, and all that it started but for what is to live on. */
bool observe_is_over(const struct observe *observe);
/* Ends what is still there, and writes how each ended to `to` (NULL: nowhere). How many there were. */
size_t observe_end_all(struct observe *observe, FILE *to);

#endif
