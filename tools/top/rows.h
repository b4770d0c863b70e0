/* rows.h — the rows of a list that is looked at again and again: the memory that each row has and has gained.
 * In: keys, and changes of their figures. Out: rows by rank, sorted by one figure. Pure: it knows nothing of files,
 * names or terminals. If few of a million rows have changed, only these and the first rows are sorted again. */
#ifndef MEMSTOW_TOP_ROWS_H
#define MEMSTOW_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rows_sort { ROWS_BY_SIZE, ROWS_BY_NOW, ROWS_BY_GROWTH, ROWS_BY_BLOCKS, ROWS_SORTS };
enum { ROWS_NONE = UINT32_MAX };

/* What a row is sorted by: its figure, then its size, then its key. */
struct rows_rank {
    int64_t value, size;
    uint64_t key;
    uint32_t row;
};

struct rows {
    size_t count, capacity;
    /* Arrays by row, up to `matched`. */
    uint64_t *keys;
    int64_t *live, *blocks; /* live: bytes of host memory; negative for a thread that freed more than it allocated */
    int64_t *device;        /* bytes on devices */
    /* sums of live and device. before: the sum at the previous look. began: growth is counted from this sum */
    int64_t *before, *began;
    uint8_t *shown;   /* whether any figure of the row is not 0, or rows_show shows it */
    uint8_t *matched; /* 0: left out, for example by a search */
    uint32_t *slots;  /* open addressing: 1 + row */
    size_t slot_count;
    uint32_t *changed; /* rows that changed since the last look */
    uint32_t *moved;   /* rows whose figures or visibility changed since the last sort */
    uint8_t *marked;   /* whether the row is in `changed`, in `moved`, or in both */
    size_t changed_count, moved_count;
    uint32_t *order; /* the rows that the last sort put in order, the largest first */
    size_t ordered;  /* how many rows `order` has */
    size_t visible;  /* how many rows have both `shown` and `matched` */
    bool in_order;   /* nothing has changed since the last sort */
    enum rows_sort sort;
    struct rows_rank threshold; /* visible rows that are not in `order` were lower than this at the last sort */
    bool has_threshold;
};

void rows_begin(struct rows *rows);
void rows_end(struct rows *rows);

/* The row of a key. If the key is new, adds a row of zeros. ROWS_NONE: no memory. */
uint32_t rows_find(struct rows *rows, uint64_t key);

/* Begins a new look: the present figures become those of the previous look. */
void rows_look(struct rows *rows);
void rows_add(struct rows *rows, uint32_t row, int64_t live, int64_t blocks);
/* Sets the figures, in place of adding to them. */
void rows_set(struct rows *rows, uint32_t row, int64_t live, int64_t blocks);
void rows_set_device(struct rows *rows, uint32_t row, int64_t device);
/* Adds bytes to the row's `began`, so that they do not count as growth. */
void rows_add_began(struct rows *rows, uint32_t row, int64_t bytes);
/* Forgets all gains since the previous look. Call it after rows were added anew: new rows have gained nothing yet. */
void rows_settle(struct rows *rows);

int64_t rows_size(const struct rows *rows, uint32_t row);   /* live and device together */
int64_t rows_gain(const struct rows *rows, uint32_t row);   /* since the previous look */
int64_t rows_growth(const struct rows *rows, uint32_t row); /* since the figures in `began` */

/* Shows a row whose figures are all 0, until they change. */
void rows_show(struct rows *rows, uint32_t row);
/* Leaves a row out, or shows it again. */
void rows_keep(struct rows *rows, uint32_t row, bool keep);

/* Sorts so that the first `most` ranks are right, the largest first. Returns 0, or -1: no memory. */
int rows_sort(struct rows *rows, enum rows_sort sort, size_t most);
/* The row at a rank of the last sort. ROWS_NONE: there is no such rank. */
uint32_t rows_ranked(const struct rows *rows, size_t rank);
/* The rank of a key's row, among the rows in order. ROWS_NONE: it is not among them. */
size_t rows_rank_of(const struct rows *rows, uint64_t key);

#endif
