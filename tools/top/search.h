/* search.h — decides which rows a search keeps.
 * In: a text, and rows. Out: `matched` of each row. A row is kept if its name has the text. The row of a site is also
 * kept if any frame of its stack has the text. Capital and small letters are the same. */
#ifndef MEMSTOW_TOP_SEARCH_H
#define MEMSTOW_TOP_SEARCH_H

#include "tools/top/names.h"

struct search {
    char text[256];  /* "": all rows are kept */
    uint8_t *frames; /* by frame: whether it has the text */
    size_t frame_count;
    uint32_t *words; /* the stacks of the ledger; NULL except while a search decides about many rows */
    /* for each of `words`, whether its frame, or a frame further out, has the text; 0: not known; 1: no; 2: yes */
    uint8_t *places;
    size_t word_count;
    uint64_t turns; /* grouping->turns at the last call */
    size_t done;    /* the rows before this one are decided */
};

void search_begin(struct search *search, const char *text);
void search_end(struct search *search);
/* Decides about the rows that are new since the last call. Returns 0, or -1: no memory. */
int search_apply(struct search *search, struct names *names, struct grouping *grouping);

#endif
