/* stow_work.h — the pieces and chunks of the present move. Hooks may mark a piece as gone. There are also functions
 * that bring memory back, chunk by chunk.
 * In: calls of the movers (stow.c, stow_carry.c) and of the hooks (stow_pass.c). Out: whether a chunk may move. */
#ifndef MEMSTOW_STOW_WORK_H
#define MEMSTOW_STOW_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow.h"
#include "preload/stow/stow_back.h"

#pragma GCC visibility push(hidden)

/* A piece of the present move. Hooks set `gone` if the program changes the piece's memory. The table's lock protects
 * `gone` and the owner. */
struct work {
    struct stow_piece piece;
    uint32_t index; /* the piece's index in the caller's list */
    bool gone;
    /* A hook wants the memory back. In this case the memory comes back even if the move was stopped early, and even if
     * a device knows the memory's pages. */
    bool asked_by_hook;
};

/* The present move. If there is none, `moved` and `wanted` are of the latest one. */
struct stow_current {
    uint32_t held;       /* a mover is at work */
    struct move_end end; /* from stow_options */
    struct work *work;
    uint32_t count;
    uint64_t moved, wanted;
    void (*tell)(uint64_t moved, uint64_t wanted, void *context); /* from stow_options */
    void *context;
};
extern struct stow_current stow_work_current;

/* Sets the progress of the move, and calls `tell`. Only the mover's thread calls this. */
void stow_work_note_progress(uint64_t moved, uint64_t wanted);

/* Updates stow_watch, which tells the hooks whether anything is stowed or moving. The caller holds the table's lock. */
void stow_work_update_watch(void);
/* Notes why a part of the piece stayed (enum stow_refusal). A later reason does not replace the first. */
void stow_work_refuse(struct work *work, uint32_t refusal);
/* A refusal as an errno: 0 or -errno. */
int stow_work_error(uint32_t refusal);

/* Functions for the list of ranges whose pages a device knows. The caller holds the table's lock. stow_work_register
 * adds a range, and returns false if there is no memory for the new entry. */
bool stow_work_is_registered(uint64_t start, uint64_t end);
bool stow_work_register(uint64_t start, uint64_t end);
void stow_work_unregister(uint64_t start, uint64_t end);

/* Begins a chunk. False: the piece must not move any more, and its refusal says why. */
bool stow_work_begin(struct work *work, uint64_t start, uint64_t end);
/* Ends the chunk. `bytes`: how many bytes of it count as moved. The caller holds the table's lock, and this
 * function releases it. */
void stow_work_end(struct work *work, uint64_t bytes);
/* The end of a chunk that begins at `start`, goes to `stop` at most and has `most` bytes at most. A chunk that ends
 * before `stop` ends at the border of a huge page, unless the chunk is too short to contain such a border. */
uint64_t stow_work_chunk_end(uint64_t start, uint64_t stop, uint64_t most);

/* Brings back everything in the range that is stowed, chunk by chunk. `counts` says whether the bytes count as moved
 * by the present move. After a refusal, the function stops and returns the refusal (enum stow_refusal); chunks that
 * came back before stay in memory. */
uint32_t stow_work_bring_back(struct work *work, struct stow_back *back, uint64_t start, uint64_t stop, bool counts);
/* Bytes in the range that are stowed. */
uint64_t stow_work_stowed_in(uint64_t start, uint64_t end);

/* Calls `work` on a thread of ours, with signals blocked, and waits until the thread ends. *own_files: whether the
 * thread has descriptors of its own. Descriptors that it leaves open are closed after the wait. */
void stow_work_apart(void (*work)(void *context), void *context, bool *own_files);

/* In a forked child: nothing is being moved. */
void stow_work_abandon(void);

#pragma GCC visibility pop

#endif
