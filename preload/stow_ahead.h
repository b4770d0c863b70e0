/* stow_ahead.h — makes the pages of a range the process's own, on a thread beside the one that takes them: the disk, a
 * copy out of the page cache and what the taker does go on at once. In: a range in a private file mapping, and how far
 * the kernel may read. Out: how much of it is ready, and why no more comes. The caller sees to it that nobody unmaps
 * the range until ahead_end. */
#ifndef MEMSTOW_STOW_AHEAD_H
#define MEMSTOW_STOW_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct stow_ahead {
    uint64_t start, length;
    uint64_t until;    /* the kernel may begin to read up to there */
    uint64_t expected; /* and was asked to */
    uint64_t ready;    /* bytes of the range */
    uint32_t refusal;
    uint32_t serial; /* of reports: what the taker waits at */
    bool stop;
    struct stow_thread *thread;
};

/* `expected` is from the range before this one, where this goes on from that. */
void ahead_begin(struct stow_ahead *self, uint64_t start, uint64_t length, uint64_t until, uint64_t expected);
/* Waits until `wanted` bytes behind the first `done` are ready. Fewer, or 0: self->refusal says why. */
uint64_t ahead_wait(struct stow_ahead *self, uint64_t done, uint64_t wanted);
/* Nothing is touched any more. */
void ahead_end(struct stow_ahead *self);

/* All of it into memory, for writing as the process's own, or as it is. *known: the kernel has such a call (Linux
 * 5.14); else nothing was done. */
uint32_t ahead_populate(uint64_t start, uint64_t length, bool for_writing, bool *known);

#pragma GCC visibility pop

#endif
