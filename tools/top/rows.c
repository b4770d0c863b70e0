/* rows.c — see rows.h. */
#include "tools/top/rows.h"
#include "tools/base/top.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 256, SLACK = 256, CHANGED = 1, MOVED = 2 };

void rows_begin(struct rows *rows) { *rows = (struct rows){0}; }

void rows_end(struct rows *rows) {
    free(rows->keys);
    free(rows->live);
    free(rows->blocks);
    free(rows->device);
    free(rows->before);
    free(rows->began);
    free(rows->shown);
    free(rows->matched);
    free(rows->slots);
    free(rows->changed);
    free(rows->moved);
    free(rows->marked);
    free(rows->order);
    *rows = (struct rows){0};
}

static uint64_t rows_hash(uint64_t key) {
    key = (key ^ key >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static bool column_grow(void *column, size_t size, size_t capacity) {
    void *grown;
    memcpy(&grown, column, sizeof grown); /* pointers of other types must not be read as void * */
    grown = reallocarray(grown, capacity, size);
    if (grown) memcpy(column, &grown, sizeof grown);
    return grown;
}

static void rows_place(struct rows *rows, uint32_t row) {
    size_t slot = rows_hash(rows->keys[row]) & (rows->slot_count - 1);
    while (rows->slots[slot]) slot = (slot + 1) & (rows->slot_count - 1);
    rows->slots[slot] = row + 1;
}

static bool rows_grow(struct rows *rows) {
    size_t capacity = rows->capacity ? 2 * rows->capacity : LEAST;
    uint32_t *slots = calloc(2 * capacity, sizeof *slots);
    if (!slots || !column_grow(&rows->keys, sizeof *rows->keys, capacity) ||
        !column_grow(&rows->live, sizeof *rows->live, capacity) ||
        !column_grow(&rows->blocks, sizeof *rows->blocks, capacity) ||
        !column_grow(&rows->device, sizeof *rows->device, capacity) ||
        !column_grow(&rows->before, sizeof *rows->before, capacity) ||
        !column_grow(&rows->began, sizeof *rows->began, capacity) || !column_grow(&rows->shown, 1, capacity) ||
        !column_grow(&rows->matched, 1, capacity) || !column_grow(&rows->marked, 1, capacity) ||
        !column_grow(&rows->changed, sizeof *rows->changed, capacity) ||
        !column_grow(&rows->moved, sizeof *rows->moved, capacity) ||
        !column_grow(&rows->order, sizeof *rows->order, capacity)) {
        free(slots);
        return false;
    }
    free(rows->slots);
    rows->slots = slots;
    rows->slot_count = 2 * capacity;
    rows->capacity = capacity;
    for (size_t i = 0; i < rows->count; i++) rows_place(rows, (uint32_t)i);
    return true;
}

uint32_t rows_find(struct rows *rows, uint64_t key) {
    for (size_t slot = rows_hash(key); rows->slot_count; slot++) {
        uint32_t row = rows->slots[slot & (rows->slot_count - 1)];
        if (!row) break;
        if (rows->keys[row - 1] == key) return row - 1;
    }
    if (rows->count >= INT32_MAX || (rows->count == rows->capacity && !rows_grow(rows))) return ROWS_NONE;
    uint32_t row = (uint32_t)rows->count++;
    rows->keys[row] = key;
    rows->live[row] = rows->blocks[row] = rows->device[row] = rows->before[row] = rows->began[row] = 0;
    rows->shown[row] = rows->marked[row] = 0;
    rows->matched[row] = 1;
    rows_place(rows, row);
    return row;
}

int64_t rows_size(const struct rows *rows, uint32_t row) { return rows->live[row] + rows->device[row]; }
int64_t rows_gain(const struct rows *rows, uint32_t row) { return rows_size(rows, row) - rows->before[row]; }
int64_t rows_growth(const struct rows *rows, uint32_t row) { return rows_size(rows, row) - rows->began[row]; }

static void rows_move(struct rows *rows, uint32_t row, bool shown, bool matched) {
    rows->visible -= rows->shown[row] & rows->matched[row];
    rows->visible += shown && matched;
    rows->shown[row] = shown;
    rows->matched[row] = matched;
    if (!(rows->marked[row] & MOVED)) rows->moved[rows->moved_count++] = row;
    rows->marked[row] |= MOVED;
    rows->in_order = false;
}

static void shown_update(struct rows *rows, uint32_t row) {
    bool shown = rows->live[row] | rows->blocks[row] | rows->device[row] | rows->before[row] | rows->began[row];
    rows_move(rows, row, shown, rows->matched[row]);
}

static void rows_mark(struct rows *rows, uint32_t row) {
    if (!(rows->marked[row] & CHANGED)) rows->changed[rows->changed_count++] = row;
    rows->marked[row] |= CHANGED;
    shown_update(rows, row);
}

void rows_look(struct rows *rows) {
    for (size_t i = 0; i < rows->changed_count; i++) {
        uint32_t row = rows->changed[i];
        rows->marked[row] &= MOVED;
        rows->before[row] = rows_size(rows, row);
        shown_update(rows, row);
    }
    rows->changed_count = 0;
}

void rows_settle(struct rows *rows) { rows_look(rows); }

void rows_add(struct rows *rows, uint32_t row, int64_t live, int64_t blocks) {
    rows->live[row] += live;
    rows->blocks[row] += blocks;
    rows_mark(rows, row);
}

void rows_set(struct rows *rows, uint32_t row, int64_t live, int64_t blocks) {
    if (rows->live[row] != live || rows->blocks[row] != blocks)
        rows_add(rows, row, live - rows->live[row], blocks - rows->blocks[row]);
}

void rows_set_device(struct rows *rows, uint32_t row, int64_t device) {
    if (rows->device[row] == device) return;
    rows->device[row] = device;
    rows_mark(rows, row);
}

void rows_add_began(struct rows *rows, uint32_t row, int64_t bytes) {
    rows->began[row] += bytes;
    shown_update(rows, row);
}

void rows_show(struct rows *rows, uint32_t row) { rows_move(rows, row, true, rows->matched[row]); }

void rows_keep(struct rows *rows, uint32_t row, bool keep) { rows_move(rows, row, rows->shown[row], keep); }

/* --- sorting rows --- */

static int by_rank(const void *left, const void *right, void *context) {
    const struct rows_rank *a = left, *b = right;
    (void)context;
    if (a->value != b->value) return a->value > b->value ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

static int64_t rows_value(const struct rows *rows, enum rows_sort sort, uint32_t row) {
    return sort == ROWS_BY_NOW      ? rows_gain(rows, row)
           : sort == ROWS_BY_GROWTH ? rows_growth(rows, row)
           : sort == ROWS_BY_BLOCKS ? rows->blocks[row]
                                    : rows_size(rows, row);
}

static struct rows_rank rows_make_rank(const struct rows *rows, enum rows_sort sort, uint32_t row) {
    return (struct rows_rank){rows_value(rows, sort, row), rows_size(rows, row), rows->keys[row], row};
}

/* Takes the visible rows, at most `most` of them. Returns their number. */
static size_t rows_take(const struct rows *rows, enum rows_sort sort, struct rows_rank *ranks, size_t most) {
    size_t taken = 0;
    for (uint32_t row = 0; row < rows->count && taken < most; row++)
        if (rows->shown[row] & rows->matched[row]) ranks[taken++] = rows_make_rank(rows, sort, row);
    return taken;
}

static size_t take_one(const struct rows *rows, enum rows_sort sort, uint32_t row, struct rows_rank *ranks,
                       size_t taken) {
    ranks[taken] = rows_make_rank(rows, sort, row);
    return taken + (rows->shown[row] & rows->matched[row] && by_rank(&ranks[taken], &rows->threshold, NULL) <= 0);
}

/* Takes the visible rows that are not lower than the threshold of the last sort. Only two kinds of rows need be looked
 * at: rows that the last sort put in order, and rows that have changed since. All other rows are still lower. */
static size_t take_moved(const struct rows *rows, enum rows_sort sort, struct rows_rank *ranks) {
    size_t taken = 0;
    for (size_t i = 0; i < rows->moved_count; i++) taken = take_one(rows, sort, rows->moved[i], ranks, taken);
    for (size_t i = 0; i < rows->ordered; i++)
        if (!(rows->marked[rows->order[i]] & MOVED)) taken = take_one(rows, sort, rows->order[i], ranks, taken);
    return taken;
}

/* Puts the best of the taken rows in order. `complete`: all rows that are visible were taken. */
static void rows_order(struct rows *rows, enum rows_sort sort, struct rows_rank *ranks, size_t taken, size_t wanted,
                       bool complete) {
    top_sort(ranks, taken, sizeof *ranks, wanted, by_rank, NULL);
    rows->ordered = taken < wanted ? taken : wanted;
    for (size_t i = 0; i < rows->ordered; i++) rows->order[i] = ranks[i].row;
    for (size_t i = 0; i < rows->moved_count; i++) rows->marked[rows->moved[i]] &= CHANGED;
    rows->moved_count = 0;
    rows->sort = sort;
    rows->in_order = true;
    if (complete) rows->has_threshold = rows->ordered == wanted;
    if (rows->ordered == wanted && wanted) rows->threshold = ranks[wanted - 1];
}

/* Sorts only the rows that were in order and those that have changed since. Returns 1 if these rows are enough, 0 if
 * all rows must be sorted, and -1 if there is no memory. */
static int sort_moved(struct rows *rows, enum rows_sort sort, size_t most, size_t wanted) {
    if (!rows->has_threshold || rows->sort != sort) return 0;
    struct rows_rank *ranks = malloc((rows->moved_count + rows->ordered + 1) * sizeof *ranks);
    if (!ranks) return -1;
    size_t taken = take_moved(rows, sort, ranks);
    if (taken >= most) rows_order(rows, sort, ranks, taken, wanted, false);
    free(ranks);
    return taken >= most;
}

static int sort_all(struct rows *rows, enum rows_sort sort, size_t wanted) {
    struct rows_rank *ranks = malloc((rows->visible + 1) * sizeof *ranks);
    if (!ranks) return -1;
    size_t taken = rows_take(rows, sort, ranks, rows->visible);
    rows_order(rows, sort, ranks, taken, wanted, true);
    free(ranks);
    return 0;
}

int rows_sort(struct rows *rows, enum rows_sort sort, size_t most) {
    if (rows->in_order && rows->sort == sort && (most <= rows->ordered || rows->ordered == rows->visible)) return 0;
    if (most > rows->visible) most = rows->visible;
    int sorted = sort_moved(rows, sort, most, most + SLACK);
    return sorted ? (sorted < 0 ? -1 : 0) : sort_all(rows, sort, most + SLACK);
}

uint32_t rows_ranked(const struct rows *rows, size_t rank) {
    return rank < rows->ordered ? rows->order[rank] : ROWS_NONE;
}

size_t rows_rank_of(const struct rows *rows, uint64_t key) {
    for (size_t i = 0; i < rows->ordered; i++)
        if (rows->keys[rows->order[i]] == key) return i;
    return ROWS_NONE;
}
