/* shutdown_kin.h — the processes that come of this one: its children, and what they have started. In: /proc, and the
 * environment that processes began with. Out: those that run. A process that was found once is known from then on by
 * pid and start, also when its parent has ended. It signals no process. Only system calls, and no lock: the thread that
 * ends the process at its limit calls this, too. */
#ifndef MEMSTOW_SHUTDOWN_KIN_H
#define MEMSTOW_SHUTDOWN_KIN_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/kept.h"

#pragma GCC visibility push(hidden)

/* How it is known. */
enum kin_link { KIN_NONE, KIN_STARTED, KIN_KNOWN, KIN_GROUP, KIN_MARK, KIN_SEED };

struct shutdown_relative {
    uint32_t pid, parent;
    uint64_t start_ticks, rss_bytes;
    enum kin_link link;
    char name[16];
};

/* A process that counts as one of them though it may have another parent. */
struct shutdown_seed {
    uint32_t pid;
    uint64_t start_ticks;
};

/* Looks, and calls `visit` for each that runs; NULL: only learns which there are. -errno: it cannot be told. */
int shutdown_kin_look(const struct shutdown_seed *seeds, uint32_t count,
                      void (*visit)(void *context, const struct shutdown_relative *relative), void *context);
/* How it is known, in words for the log. */
const char *shutdown_kin_words(enum kin_link link);
/* Whom a process belongs to, by its numbers. False: there is none. One whose main thread alone has ended has not. */
bool shutdown_kin_of(uint32_t pid, struct kin *kin, bool *ended);
/* In a forked child: they are its parent's. */
void shutdown_kin_reset(void);

#pragma GCC visibility pop

#endif
