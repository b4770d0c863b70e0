/* stow_ahead.h — gets a range's content ready on threads beside the one that takes it, so that the disk and the taker
 * work at once. In: a range in a private file mapping of at most AHEAD_MOST bytes. Out: how much of it is ready, and
 * why no more comes. A copy out of the page cache makes the pages the process's own, in place. The caller ensures that
 * nobody unmaps the range until ahead_end. */
#ifndef MEMSTOW_STOW_AHEAD_H
#define MEMSTOW_STOW_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { AHEAD_MOST = 64 << 20 };

struct stow_ahead {
    uint64_t start, length;
    uint64_t until;    /* the kernel may begin to read up to there */
    uint64_t expected; /* and was asked to */
    uint64_t made;     /* a bit for each piece that is ready */
    uint32_t refusal;
    uint32_t serial; /* of reports: what the taker waits at */
    bool stop;
    struct stow_thread *maker, *reader;
};

/* `expected` is from the range before this one, where this goes on from that. `huge`: the file may be read in huge
 * pages. The caller takes these out of the page cache soon, because memory that is used for the first time is slow. */
void ahead_begin(struct stow_ahead *self, uint64_t start, uint64_t length, uint64_t until, uint64_t expected,
                 bool huge);
/* Waits until `wanted` bytes behind the first `done` are ready. Fewer, or 0: self->refusal says why. */
uint64_t ahead_wait(struct stow_ahead *self, uint64_t done, uint64_t wanted);
/* Nothing is touched any more. */
void ahead_end(struct stow_ahead *self);

/* All of it into memory, for writing as the process's own, or as it is. *known: the kernel has such a call (Linux
 * 5.14); else nothing was done. */
uint32_t ahead_populate(uint64_t start, uint64_t length, bool for_writing, bool *known);

#pragma GCC visibility pop

#endif
