/* stow_uffd.h — the part of userfaultfd that moving memory needs. Threads that touch a missing page of a registered
 * range wait until the page is there.
 * In: ranges. Out: 0 or -errno. Nothing here touches the ranges. */
#ifndef MEMSTOW_STOW_UFFD_H
#define MEMSTOW_STOW_UFFD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum {
    UFFD_MOVES = 1 << 0,   /* pages can be moved one by one (Linux 6.8) */
    UFFD_FOLLOWS = 1 << 1, /* a registered range stays registered when mremap moves it; a thread must read events */
};

/* Opens a descriptor that also handles faults inside system calls. Returns the descriptor, or -errno. `wanted` is
 * one feature at most. *features is set to this feature if the kernel has it, otherwise to 0. */
int stow_uffd_open(uint32_t wanted, uint32_t *features);
long stow_uffd_register(int fd, uint64_t start, uint64_t length);
void stow_uffd_unregister(int fd, uint64_t start, uint64_t length); /* also wakes waiting threads */
void stow_uffd_wake(int fd, uint64_t start, uint64_t length);
/* Moves all pages that exist in the range at `from` to the range at `to`. Waiting threads are not woken. Each of the
 * two ranges must lie in one mapping. *done: how many bytes of the range are done, missing pages included. Errors:
 * - -EBUSY: a page is pinned, or shared with a forked process.
 * - -EEXIST: at the address to which a page is to move, there is a page already. */
long stow_uffd_move(int fd, uint64_t to, uint64_t from, uint64_t length, uint64_t *done);
/* Whether a result means that another thread closed the descriptor. If so, every range that was registered is plain
 * memory now, and no thread waits. */
bool stow_uffd_is_lost(long result);
/* Fills missing pages with a copy. Waiting threads are not woken. */
long stow_uffd_copy(int fd, uint64_t to, uint64_t from, uint64_t length);

#pragma GCC visibility pop

#endif
