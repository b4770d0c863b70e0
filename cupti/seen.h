/* seen.h — the memory that CUPTI's records say there is.
 * In: records, in any order, and contexts that end. Out: the blocks that live. Bounded: what does not fit is counted.
 * Not for several threads at once: listen.c has the lock. */
#ifndef MEMSTOW_CUPTI_SEEN_H
#define MEMSTOW_CUPTI_SEEN_H

#include <stdbool.h>

#include "abi.h"

#pragma GCC visibility push(hidden)

enum { SEEN_NO_SOURCE = 0, SEEN_SOURCES = 128, SEEN_SOURCE_LENGTH = 96 };

struct seen {
    uint64_t address, bytes, timestamp;
    uint32_t context;
    uint16_t device;
    uint8_t kind;                 /* enum snap_cuda_kind; 0: of a kind that is not compared */
    uint8_t source;               /* seen_source */
    bool lives, matched, suspect; /* the last two are compare.c's, until there is a newer record */
};

/* The record is of memory. source: the library that asked, NULL: not known. False: there is no room for it. */
bool seen_record(const struct cupti_memory *record, const char *source);
/* What belongs to the context dies with it, and CUPTI says nothing of it. */
void seen_context_ended(uint32_t context);

/* The block that lives at the address, of a kind that is compared; or NULL. */
struct seen *seen_at(uint64_t address);
/* All that live, of every kind. */
void seen_all(void (*visit)(struct seen *seen, void *context), void *context);
/* The end of the path of a block's library; "": not known. */
const char *seen_source(const struct seen *seen);

void seen_clear(void);

#pragma GCC visibility pop

#endif
