/* stow_plan.h — decides what to do with each range of the pieces that are to be moved out.
 * In: a session's pieces, and the mappings of the process. Out: segments, each of one kind; and the reasons why a
 * piece, or all pieces, stay. It moves nothing. */
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

/* Runs of pages in memory count as one run if fewer other pages than this lie between them. */
enum { STOW_PLAN_GAP = 256 };

/* What a segment is:
 * - MEMORY: memory that goes to the stow file
 * - STOWED: memory that is stowed already; parts of it may be in memory again
 * - FILE: pages of a file that the program mapped; pages without changes are dropped */
enum stow_segment_kind { STOW_SEGMENT_MEMORY, STOW_SEGMENT_STOWED, STOW_SEGMENT_FILE };

struct stow_segment {
    uint64_t start, end;
    uint32_t work; /* the index of the piece in session->work */
    enum stow_segment_kind kind;
    bool writable; /* the mapping can be written to, or has pages of the process's own */
};

struct stow_plan {
    struct stow_session *session;
    struct stow_segment *segments;
    uint64_t count, capacity;
    uint64_t memory;  /* bytes that are written to the file, including gaps */
    int64_t mappings; /* mappings that the process has now */
    uint32_t over;    /* how many pieces, sorted by address, end before the present mapping begins */
    uint64_t probe;   /* the address of a page that was just mapped; it is locked if mlockall(MCL_FUTURE) holds */
    bool locks_future;
    int pagemap;
};

/* Makes the plan. Returns STOW_DONE, or the reason why nothing may move. Call stow_plan_end in any case. */
uint32_t stow_plan_make(struct stow_plan *self, struct stow_session *session);
void stow_plan_end(struct stow_plan *self);
/* Adds segments of memory to the plan: the pages of a piece in this range that have memory or swap now. `index`: the
 * piece's index in session->work. */
void stow_plan_memory(struct stow_plan *self, uint32_t index, uint64_t start, uint64_t end);
/* Notes the refusal in each piece that has a segment of memory. */
void stow_plan_refuse_memory(struct stow_plan *self, uint32_t refusal);

#pragma GCC visibility pop

#endif
