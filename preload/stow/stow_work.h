/* stow_work.h — what is being moved now: pieces that the hooks may mark as gone, chunks whose turn it is, and memory
 * that comes back. In: the movers (stow.c) and the hooks (stow_pass.c). Out: whether a chunk may move. */
#ifndef MEMSTOW_STOW_WORK_H
#define MEMSTOW_STOW_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow.h"
#include "preload/stow/stow_back.h"

#pragma GCC visibility push(hidden)

/* The pieces of the present move: the hooks mark what has changed. With the table's lock. */
struct work {
    struct stow_piece piece;
    uint32_t index; /* among the caller's */
    bool gone;
    bool asked_by_hook; /* whatever is cancelled or registered */
};

struct stow_current {
    uint32_t held;       /* a mover is at work */
    struct move_end end; /* of the options */
    struct work *work;
    uint32_t count;
    uint64_t moved, wanted;
    void (*tell)(uint64_t moved, uint64_t wanted, void *context); /* of the options */
    void *context;
};
extern struct stow_current work_current;

/* On the mover's thread: how far it is. */
void work_note_progress(uint64_t moved, uint64_t wanted);

/* With the table's lock: whether hooks have something to look for. */
void work_update_watch(void);
/* The first reason counts. */
void work_refuse(struct work *work, uint32_t refusal);
/* A refusal as 0 or -errno. */
int work_error(uint32_t refusal);

/* Ranges that a device knows; with the table's lock. False: there is no room for one more. */
bool work_is_registered(uint64_t start, uint64_t end);
bool work_register(uint64_t start, uint64_t end);
void work_unregister(uint64_t start, uint64_t end);

/* Begins a chunk. False, and why: it is not to be moved any more. Call work_end with the table's lock held: it gives
 * the lock back. */
bool work_begin(struct work *work, uint64_t start, uint64_t end);
void work_end(struct work *work, uint64_t bytes);
/* Where a chunk that begins at `start` ends: where huge pages do. */
uint64_t work_chunk_end(uint64_t start, uint64_t stop, uint64_t most);

/* Brings back what is stowed in the range. */
uint32_t work_bring_back(struct work *work, struct stow_back *back, uint64_t start, uint64_t stop, bool counts);
uint64_t work_stowed_in(uint64_t start, uint64_t end);

/* Calls work on a thread of our own, signals out, and waits. *own_files: its descriptors are its own, and what it
 * leaves open is closed when nobody waits any more. */
void work_apart(void (*work)(void *context), void *context, bool *own_files);

/* In a forked child: nothing is being moved. */
void work_abandon(void);

#pragma GCC visibility pop

#endif
