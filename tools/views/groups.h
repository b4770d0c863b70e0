/* groups.h — totals put together by model, node, run, site, module or thread.
 * In: one image, or two to compare. Out: rows matched by name, never by an id of a file, and their sums on each
 * side. Rows outlive the images. */
#ifndef MEMSTOW_GROUPS_H
#define MEMSTOW_GROUPS_H

#include "tools/image/image.h"

/* The row, when two images are compared, that makes rows of estimates add up to what is known exactly. */
#define GROUPS_REMAINDER "(remainder)"

enum view { BY_MODEL, BY_NODE, BY_RUN, BY_SITE, BY_MODULE, BY_THREAD, VIEWS };

/* Of two that are compared, what the measure of the groups says, which is what is live or was at the peak.
 * A thread may have freed more than it allocated, and estimates may be more than there is: live_* of rows of threads
 * and of the remainder may be negative numbers. */
struct row_side {
    uint64_t live_bytes, live_blocks;
};

struct row {
    uint32_t model, node, run, place; /* names; place is a module or a thread */
    uint64_t stack;                   /* by site: hash of the path, 0 without one; the place is then none */
    uint32_t stack_node : 31;         /* where the path can be read: a node of that side, */
    uint32_t stack_side : 1;          /* side 1 if it can be */
    float variance;                   /* of the bytes of both sides: 0 where they are exact */
    union {
        struct row_side side[2];
        struct { /* of one image alone */
            struct row_side only;
            uint64_t alloc_bytes, peak_bytes;
        };
    };
};

struct groups {
    enum view view;
    int sides;
    bool without_runs;    /* by site, what runs allocated is not told apart: those of two processes are others */
    bool tids;            /* threads of the same name are told apart; else they are one row */
    enum measure measure; /* that variances are of; of two that are compared the figures, too */
    bool estimated;       /* some rows are of estimates. When two are compared, a row more has what the others lack */
    const uint8_t *kept;  /* by node of the image that is added: totals elsewhere are left out. NULL: all count */
    struct row *rows;
    size_t count, capacity;
    uint32_t *order; /* indices of rows, by the last sort */
    size_t ordered;
    uint32_t *slots; /* open addressing: 1 + row */
    size_t slot_count;
    struct name *names, **name_list;
    uint32_t name_count, name_capacity;
};

/* False when it is none of the views. */
bool view_parse(const char *string, enum view *view);
const char *view_name(enum view view);

/* sides: 1, or 2 to compare. */
void groups_begin(struct groups *groups, enum view view, int sides);
/* Adds what the image has to side 0 or 1. 0, or -1: no memory. */
int groups_add(struct groups *groups, const struct image *image, int side);
void groups_end(struct groups *groups);

/* Owner: NULL when untagged. Place: never NULL. */
const char *groups_owner(const struct groups *groups, uint32_t name);
const char *groups_place(const struct groups *groups, const struct row *row);
/* Its name, and of a model or custom the origin: "NAME (ORIGIN)". False, and "": untagged. */
bool groups_owner_words(const struct groups *groups, uint32_t name, bool origin, char *to, size_t size);
/* One name for a row, in the words of the view; and the same for people, who tell models apart by their origin. */
void groups_label(const struct groups *groups, const struct row *row, char *label, size_t size);
void groups_words(const struct groups *groups, const struct row *row, char *label, size_t size);
/* The most of side 0 first, then by name. Of threads only what they allocated is a measure. 0, or -1: no memory. */
int groups_sort_by(struct groups *groups, enum measure measure, size_t most);
/* What grew the most first, then by name; what did not change is left out. */
int groups_sort_by_growth(struct groups *groups, size_t most);
/* The rows in the order of the last sort, which holds for the first `most`; there are `ordered` of them. */
const struct row *groups_row(const struct groups *groups, size_t rank);
int64_t row_growth(const struct row *row);
int64_t row_growth_blocks(const struct row *row);

#endif
