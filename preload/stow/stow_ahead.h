/* stow_ahead.h — makes a range of a file mapping ready: its pages become the process's own, at the same addresses, with
 * a copy of the file's content. Threads do that ahead of the thread that takes the range (the taker), so the disk and
 * the taker work at the same time.
 * In: a range in a private file mapping of at most AHEAD_MOST bytes. Out: how much is ready, and why no more is. The
 * caller makes sure that nobody unmaps the range until stow_ahead_end. */
#ifndef MEMSTOW_STOW_AHEAD_H
#define MEMSTOW_STOW_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { AHEAD_MOST = 64 << 20 };

struct stow_ahead {
    uint64_t start, length;
    uint64_t until;    /* the kernel may read up to this address */
    uint64_t expected; /* the kernel was asked to read up to this address */
    uint64_t made;     /* a bit for each piece that is ready */
    uint32_t refusal;
    uint32_t serial; /* changes with each report; the taker waits on it */
    uint32_t paused; /* see stow_ahead_pause */
    bool stop;
    struct stow_thread *maker, *reader;
};

/* Begins to make a range ready.
 * - `until`: the kernel may read the file ahead up to this address.
 * - `expected`: self->expected of the previous range, if this range begins where that one ended; otherwise 0.
 * - `huge`: whether the file may be read in huge pages. If so, the caller should soon drop the pages that are ready
 *   from the page cache. Otherwise the kernel needs fresh memory for the next huge pages, which is slow. */
void stow_ahead_begin(struct stow_ahead *self, uint64_t start, uint64_t length, uint64_t until, uint64_t expected,
                      bool huge);
/* Waits until the `wanted` bytes that follow the first `done` bytes are ready. Returns how many of them are ready. If
 * fewer than `wanted` are, self->refusal says why. */
uint64_t stow_ahead_wait(struct stow_ahead *self, uint64_t done, uint64_t wanted);
/* Call it before a change of the address space (such as mremap), and stow_ahead_resume after the change. Between these
 * two calls, each thread begins at most one more system call that locks the address space. Otherwise the kernel would
 * let several of their calls go first, and the change would wait for a millisecond or more. */
void stow_ahead_pause(struct stow_ahead *self);
void stow_ahead_resume(struct stow_ahead *self);
/* Ends the threads. After this nothing touches the range any more. */
void stow_ahead_end(struct stow_ahead *self);

/* Brings the whole range into memory. `for_writing`: also makes the pages the process's own. Sets *known to whether
 * the kernel has MADV_POPULATE_READ and MADV_POPULATE_WRITE (Linux 5.14). If *known is false, nothing was done, and the
 * result is STOW_DONE. Returns enum stow_refusal. */
uint32_t stow_ahead_populate(uint64_t start, uint64_t length, bool for_writing, bool *known);

#pragma GCC visibility pop

#endif
