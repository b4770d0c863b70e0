/* seen.h — the memory that CUPTI's records say there is.
 * In: records, in any order, and contexts that end. Out: the blocks that live, and each that comes or goes. Bounded:
 * what does not fit is counted. Not for several threads at once: listen.c has the lock. */
#ifndef MEMSTOW_CUPTI_SEEN_H
#define MEMSTOW_CUPTI_SEEN_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

enum { SEEN_NO_SOURCE = 0, SEEN_SOURCES = 128, SEEN_SOURCE_LENGTH = 96 };

struct seen {
    uint64_t address, bytes;
    uint64_t timestamp; /* when it was asked for; 0: no record of that has come */
    uint64_t released;  /* when something at the address was freed last */
    uint32_t context;
    uint16_t device;
    uint8_t kind;                 /* enum snap_cuda_kind; 0: of a kind that is not listed */
    uint8_t source;               /* seen_source */
    int8_t owed;                  /* records of frees that are still to come; below 0: that came before their block's */
    bool lives, matched, suspect; /* the last two are compare.c's, until there is a newer record */
};

/* Who wants to know; each NULL, or called while the record is taken in. `passed`: a block that was freed before its
 * record came. */
struct seen_told {
    void (*came)(const struct seen *seen, const struct cupti_memory *record);
    void (*went)(const struct seen *seen);
    void (*passed)(const struct seen *seen, const struct cupti_memory *record);
};
void seen_tell(const struct seen_told *told);

/* The record is of memory. source: the library that asked, NULL: not known. False: there is no room for it. */
bool seen_record(const struct cupti_memory *record, const char *source);
/* What belongs to the context dies with it, and CUPTI says nothing of it. */
void seen_context_ended(uint32_t context);

/* The block that lives at the address, of a kind that is compared; or NULL. */
struct seen *seen_at(uint64_t address);
bool seen_is_compared(const struct seen *seen);
/* All that live, of every kind. */
void seen_all(void (*visit)(struct seen *seen, void *context), void *context);
/* The end of the path of a block's library; "": not known. */
const char *seen_source(const struct seen *seen);

void seen_clear(void);

#pragma GCC visibility pop

#endif
