/* rows.c — see rows.h. */
#include "tools/top/rows.h"
#include "tools/base/top.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 256, SLACK = 256 };

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
    rows->in_order = false;
    return row;
}

int64_t rows_size(const struct rows *rows, uint32_t row) { return rows->live[row] + rows->device[row]; }
int64_t rows_gain(const struct rows *rows, uint32_t row) { return rows_size(rows, row) - rows->before[row]; }
int64_t rows_growth(const struct rows *rows, uint32_t row) { return rows_size(rows, row) - rows->began[row]; }

static void shown_update(struct rows *rows, uint32_t row) {
    rows->in_order = false;
    rows->shown[row] =
        (rows->live[row] | rows->blocks[row] | rows->device[row] | rows->before[row] | rows->began[row]) != 0;
}

static void rows_mark(struct rows *rows, uint32_t row) {
    if (!rows->marked[row]) rows->changed[rows->changed_count++] = row;
    rows->marked[row] = 1;
    shown_update(rows, row);
}

void rows_look(struct rows *rows) {
    for (size_t i = 0; i < rows->changed_count; i++) {
        uint32_t row = rows->changed[i];
        rows->marked[row] = 0;
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

void rows_keep(struct rows *rows, uint32_t row, bool keep) {
    rows->matched[row] = keep;
    rows->in_order = false;
}

/* --- sorting rows --- */

struct rank {
    int64_t value, size;
    uint64_t key;
    uint32_t row;
};

static int by_rank(const void *left, const void *right, void *context) {
    const struct rank *a = left, *b = right;
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

static struct rank rows_make_rank(const struct rows *rows, enum rows_sort sort, uint32_t row) {
    return (struct rank){rows_value(rows, sort, row), rows_size(rows, row), rows->keys[row], row};
}

/* Takes the visible rows whose value is at least `least`, at most `most` of them. Returns their number, or most + 1 if
 * there are more. */
static size_t rows_take(const struct rows *rows, enum rows_sort sort, int64_t least, struct rank *ranks, size_t most) {
    size_t taken = 0;
    for (uint32_t row = 0; row < rows->count; row++) {
        if (rows_value(rows, sort, row) < least || !(rows->shown[row] & rows->matched[row])) continue;
        if (taken == most) return most + 1;
        ranks[taken++] = rows_make_rank(rows, sort, row);
    }
    return taken;
}

static void visible_count(struct rows *rows) {
    rows->visible = 0;
    for (size_t i = 0; i < rows->count; i++) rows->visible += rows->shown[i] & rows->matched[i];
}

/* Most looks change little. Therefore only rows whose value is at least the threshold of the last sort are taken first:
 * rows that were in order then, and rows that have become as large since. If these are too few or too many, all rows
 * are taken. */
int rows_sort(struct rows *rows, enum rows_sort sort, size_t most) {
    if (rows->in_order && rows->sort == sort && (most <= rows->ordered || rows->ordered == rows->visible)) return 0;
    if (!rows->in_order) visible_count(rows);
    if (most > rows->visible) most = rows->visible;
    size_t wanted = most + SLACK, capacity = 8 * wanted < rows->visible ? 8 * wanted : rows->visible,
           taken = capacity + 1;
    struct rank *ranks = malloc((capacity + 1) * sizeof *ranks);
    if (!ranks) return -1;
    if (rows->has_threshold && rows->sort == sort) taken = rows_take(rows, sort, rows->threshold, ranks, capacity);
    if (taken > capacity || taken < most) {
        struct rank *all = realloc(ranks, (rows->visible + 1) * sizeof *ranks);
        if (!all) {
            free(ranks);
            return -1;
        }
        ranks = all;
        taken = rows_take(rows, sort, INT64_MIN, ranks, rows->visible);
    }
    top_sort(ranks, taken, sizeof *ranks, wanted, by_rank, NULL);
    rows->ordered = taken < wanted ? taken : wanted;
    for (size_t i = 0; i < rows->ordered; i++) rows->order[i] = ranks[i].row;
    rows->sort = sort;
    rows->in_order = true;
    rows->has_threshold = rows->ordered == wanted;
    if (rows->has_threshold) rows->threshold = ranks[wanted - 1].value;
    free(ranks);
    return 0;
}

uint32_t rows_ranked(const struct rows *rows, size_t rank) {
    return rank < rows->ordered ? rows->order[rank] : ROWS_NONE;
}

size_t rows_rank_of(const struct rows *rows, uint64_t key) {
    for (size_t i = 0; i < rows->ordered; i++)
        if (rows->keys[rows->order[i]] == key) return i;
    return ROWS_NONE;
}
