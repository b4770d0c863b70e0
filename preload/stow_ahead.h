/* stow_ahead.h — gets a range's content ready on threads beside the one that takes it: the disk and what the taker does
 * go on at once. Either the pages are made the process's own in place, by a copy out of the page cache, or the file is
 * read past that into room of the caller's. In: a range in a private file mapping of at most AHEAD_MOST bytes. Out: how
 * much of it is ready, and why no more comes. The caller sees to it that nobody unmaps the range until ahead_end. */
#ifndef MEMSTOW_STOW_AHEAD_H
#define MEMSTOW_STOW_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { AHEAD_MOST = 64 << 20, AHEAD_THREADS = 2 };

struct stow_ahead {
    uint64_t start, length, piece;
    uint64_t until;    /* in place: the kernel may begin to read up to there */
    uint64_t expected; /* and was asked to */
    int fd;            /* of the file that is read */
    uint64_t offset;   /* of the range in it */
    char *to;          /* room for all of it; NULL: in place */
    uint64_t next;     /* piece that nobody has begun */
    uint64_t made;     /* a bit for each piece that is ready */
    uint32_t refusal;
    uint32_t serial; /* of reports: what the taker waits at */
    bool stop;
    struct stow_thread *threads[AHEAD_THREADS];
};

/* In place. `expected` is from the range before this one, where this goes on from that. */
void ahead_begin(struct stow_ahead *self, uint64_t start, uint64_t length, uint64_t until, uint64_t expected);
/* Past the page cache where fd is open so. */
void ahead_begin_reading(struct stow_ahead *self, uint64_t length, int fd, uint64_t offset, char *to);
/* Waits until `wanted` bytes behind the first `done` are ready. Fewer, or 0: self->refusal says why. */
uint64_t ahead_wait(struct stow_ahead *self, uint64_t done, uint64_t wanted);
/* Nothing is touched any more. */
void ahead_end(struct stow_ahead *self);

/* All of it into memory, for writing as the process's own, or as it is. *known: the kernel has such a call (Linux
 * 5.14); else nothing was done. */
uint32_t ahead_populate(uint64_t start, uint64_t length, bool for_writing, bool *known);

#pragma GCC visibility pop

#endif
