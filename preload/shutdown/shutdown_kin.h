/* shutdown_kin.h — the processes that come from this one (its kin): its children, and the processes that these have
 * started.
 * In: /proc, and the environment with which processes began. Out: the kin that still run. A look reads all processes
 * once. A process that one look has found is known to later looks by its pid and start time, even after its parent has
 * ended. A look sends no signals. It makes only system calls and takes no lock, because it is also made by the thread
 * that ends this process at the time limit. */
#ifndef MEMSTOW_SHUTDOWN_KIN_H
#define MEMSTOW_SHUTDOWN_KIN_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/kin.h"

#pragma GCC visibility push(hidden)

/* How a process was recognised as kin. NONE: it is not kin. STARTED: its parent is this process or kin. KNOWN: an
 * earlier look found it by its parent. GROUP: this process or kin began its group or session. MARK: its environment
 * has the mark of this program. SEED: the caller named it. */
enum kin_link { KIN_NONE, KIN_STARTED, KIN_KNOWN, KIN_GROUP, KIN_MARK, KIN_SEED };

struct shutdown_relative {
    uint32_t pid, parent;
    uint64_t start_ticks, rss_bytes;
    enum kin_link link;
    char name[16];
};

/* A process of which the caller knows that it belongs to this process. It counts as kin, whoever its parent is. */
struct shutdown_seed {
    uint32_t pid;
    uint64_t start_ticks;
};

/* Looks for kin of this process, and calls `visit` for each of them that runs. If `visit` is NULL, it only remembers
 * the kin. The `count` processes in `seeds` count as kin, and so do their kin. Returns 0, or -errno if the processes
 * cannot be read. */
int shutdown_kin_look(const struct shutdown_seed *seeds, uint32_t count,
                      void (*visit)(void *context, const struct shutdown_relative *relative), void *context);
/* How a process was recognised, in words for the log. */
const char *shutdown_kin_words(enum kin_link link);
/* Reads the parent, group and session of a process. Sets *ended to whether the whole process has ended, not only its
 * main thread. Returns false if there is no such process. */
bool shutdown_kin_of(uint32_t pid, struct kin *kin, bool *ended);
/* In a forked child: forgets the known processes, which are the parent's. */
void shutdown_kin_reset(void);

#pragma GCC visibility pop

#endif
