/* seen.h — the memory that exists according to CUPTI's records.
 * In: records, in any order, and contexts that end. Out: the live blocks, and each block that comes or goes. The table
 * is bounded: listen.c counts the records that do not fit. One thread at a time may call; listen.c has the lock. */
#ifndef MEMSTOW_CUPTI_SEEN_H
#define MEMSTOW_CUPTI_SEEN_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

enum { SEEN_NO_SOURCE = 0, SEEN_SOURCES = 128, SEEN_SOURCE_LENGTH = 96 };

struct seen {
    uint64_t address, bytes;
    uint64_t timestamp; /* the time of the allocation; 0: no record of it has come */
    uint64_t released;  /* the time of the latest free at the address */
    uint32_t context;
    uint16_t device;
    uint8_t kind;   /* enum snap_cuda_kind; 0: a kind that the ledger does not list */
    uint8_t source; /* index of the library that made the call: seen_source */
    int8_t owed;    /* how many records of frees must still come; below 0: how many came before their block's record */
    /* matched: the ledger has the block, too. suspect: an earlier comparison found a difference. compare.c sets
     * `matched` and `suspect`. A newer record clears both */
    bool lives, matched, suspect;
};

/* Functions to call while a record is read. A member that is NULL is not called. `passed` is called for a block that
 * was already gone when the record of its allocation came. */
struct seen_told {
    void (*came)(const struct seen *seen, const struct cupti_memory *record);
    void (*went)(const struct seen *seen);
    void (*passed)(const struct seen *seen, const struct cupti_memory *record);
};
void seen_tell(const struct seen_told *to);

/* Reads a record of memory. source: the path of the library that made the call; NULL: unknown. False: the table is
 * full. */
bool seen_record(const struct cupti_memory *record, const char *source);
/* Call it when a context has ended. Its memory ends with it, and CUPTI makes no records of the end of this memory. */
void seen_context_ended(uint32_t context);

/* The live block at the address, if its kind is compared (seen_is_compared); otherwise NULL. */
struct seen *seen_at(uint64_t address);
bool seen_is_compared(const struct seen *seen);
/* Calls visit for each live block, of any kind. */
void seen_all(void (*visit)(struct seen *seen, void *context), void *context);
/* The end of the path of a block's library; "": unknown. */
const char *seen_source(const struct seen *seen);

/* For tests: forgets all records. */
void seen_clear(void);

#pragma GCC visibility pop

#endif
