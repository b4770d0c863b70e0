/* stow_plan.h — what to do with which range of the pieces that are to be moved out.
 * In: a session's pieces, and the mappings of the process. Out: segments, each of one kind, or the reason why a piece
 * or all of them stay. It moves nothing. */
#ifndef MEMSTOW_STOW_PLAN_H
#define MEMSTOW_STOW_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow_work.h"

#pragma GCC visibility push(hidden)

/* One call of stow_out or stow_in. */
struct stow_session {
    uint64_t signals;
    uint32_t count;
    struct work *work;
    uint64_t work_length;
    char *text;
    struct stow_options options;
    bool own_files;
};

/* Two runs of pages count as one if fewer pages than this lie between them that are not in memory. */
enum { STOW_PLAN_GAP = 256 };

enum stow_segment_kind { STOW_SEGMENT_MEMORY, STOW_SEGMENT_STOWED, STOW_SEGMENT_FILE };

struct stow_segment {
    uint64_t start, end;
    uint32_t work;
    enum stow_segment_kind kind;
    bool writable; /* for STOW_SEGMENT_FILE */
};

struct stow_plan {
    struct stow_session *session;
    struct stow_segment *segments;
    uint64_t count, capacity;
    uint64_t memory; /* bytes that are written to the file, including gaps */
    int64_t mappings;
    uint32_t over;  /* how many pieces end before the present area; pieces are in order */
    uint64_t probe; /* a page of ours that was just mapped */
    bool locks_future;
    int pagemap;
};

/* Makes the plan. Returns the reason why nothing is to be moved, or STOW_DONE. Call stow_plan_end in any case. */
uint32_t stow_plan_make(struct stow_plan *self, struct stow_session *session);
void stow_plan_end(struct stow_plan *self);
/* Plans the memory of a piece in the range, as far as it is in memory now. */
void stow_plan_memory(struct stow_plan *self, uint32_t index, uint64_t start, uint64_t end);
/* Refuses each piece that has memory to move. */
void stow_plan_refuse_memory(struct stow_plan *self, uint32_t refusal);

#pragma GCC visibility pop

#endif
