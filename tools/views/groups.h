/* groups.h — groups totals by model, node, run, site, module or thread.
 * In: one image, or two to compare. Out: rows and their sums on each side. Rows of two images are matched by name,
 * never by an id of a file. Rows outlive the images. */
#ifndef MEMSTOW_GROUPS_H
#define MEMSTOW_GROUPS_H

#include "tools/base/slots.h"
#include "tools/image/image.h"

/* The name of a row in a comparison of estimates. The row has the exact sum minus the sum of the estimates, so that all
 * rows add up to the exact sum. */
#define GROUPS_REMAINDER "(remainder)"

enum view { BY_MODEL, BY_NODE, BY_RUN, BY_SITE, BY_MODULE, BY_THREAD, VIEWS };

/* One side of a row: its figures in one of the two images. In a comparison, live_* are in the measure of the groups:
 * live, or live at the peak. The figures may be negative (cast them to int64_t) in rows of threads, because a thread
 * may free more than it allocated, and in the row GROUPS_REMAINDER, because estimates may be too high. */
struct row_side {
    uint64_t live_bytes, live_blocks;
};

struct row {
    uint32_t model, node, run, member; /* ids of names; member: a module or a thread */
    /* In the view by site: a hash of the call stack. 0: the site has no stack, and member is its module. Other views:
     * 0. */
    uint64_t stack;
    uint32_t stack_node : 31; /* the node of that call stack in an image */
    uint32_t stack_side : 1;  /* the side of that image: 0 or 1 */
    float variance;           /* the sum of the variances of the bytes on all sides; 0: the bytes are exact */
    union {
        struct row_side side[2];
        struct { /* for a single image only */
            struct row_side only;
            uint64_t alloc_bytes, peak_bytes;
        };
    };
};

struct groups {
    enum view view;
    int sides;
    bool without_runs;      /* by site: rows do not differ by run, because two processes have no run in common */
    bool tids;              /* threads of the same name get a row each, instead of one together */
    enum measure measure;   /* the measure of the variances and, in a comparison, of the figures */
    bool estimated;         /* some rows are estimates. A comparison then has a row GROUPS_REMAINDER */
    const uint8_t *matched; /* for each node of the image that is added: whether its totals count. NULL: all count */
    uint32_t *row_of;       /* may be NULL. row_of[total]: 1 + the index of the total's row; 0: it has no row */
    struct row *rows;
    size_t count, capacity;
    uint32_t *order;    /* indices of rows, in the order of the last sort */
    size_t ordered;     /* how many indices `order` has */
    struct slots slots; /* finds a row by its key */
    struct name *names, **name_list;
    uint32_t name_count;
    size_t name_capacity;
};

/* The view with the name `string`. False: there is none. */
bool groups_view_parse(const char *string, enum view *view);
const char *groups_view_name(enum view view);

/* sides: 1, or 2 for a comparison. */
void groups_begin(struct groups *groups, enum view view, int sides);
/* Adds the totals of an image to side 0 or 1. Returns 0, or -1: no memory. */
int groups_add(struct groups *groups, const struct image *image, int side);
void groups_end(struct groups *groups);

/* The key of the owner with the name id `name`: its name, origin and kind, with separators between them. NULL:
 * untagged. */
const char *groups_owner(const struct groups *groups, uint32_t name);
/* The name of the row's module or thread; never NULL. */
const char *groups_member(const struct groups *groups, const struct row *row);
/* The owner's name for people. With `origin`, models and custom owners have their origin: "NAME (ORIGIN)". Untagged:
 * returns false, and the text is "". */
bool groups_owner_words(const struct groups *groups, uint32_t name, bool origin, char *to, size_t size);
/* The parts of an owner's key; the texts do not end with NUL. False: untagged, or `name` is the name of a module or
 * thread. */
struct groups_owner {
    const char *name, *origin;
    int name_length, origin_length;
    uint32_t kind; /* enum snap_owner_kind */
};
bool groups_owner_parts(const struct groups *groups, uint32_t name, struct groups_owner *owner);
/* The name of a row, without the origins of owners. */
void groups_label(const struct groups *groups, const struct row *row, char *label, size_t size);
/* The name of a row, with the origins of models and custom owners, which tell owners of the same name apart. */
void groups_words(const struct groups *groups, const struct row *row, char *label, size_t size);
/* Sorts the rows of a single image by their bytes in a measure, the largest first. Rows with equal bytes are sorted by
 * call stack, then by name. Only the first `most` rows need be in order. Threads are always sorted by allocated bytes.
 * Returns 0, or -1: no memory. */
int groups_sort_by(struct groups *groups, enum measure measure, size_t most);
/* Sorts by growth in bytes, then in blocks, the largest first. Rows with equal growth are sorted by call stack, then by
 * name. Rows without a change are left out. Returns 0, or -1: no memory. */
int groups_sort_by_growth(struct groups *groups, size_t most);
/* A row by its rank in the last sort; there are groups->ordered ranks. */
const struct row *groups_row(const struct groups *groups, size_t rank);
/* Side 1 minus side 0: the first function in bytes, the second in blocks. */
int64_t groups_row_growth(const struct row *row);
int64_t groups_row_growth_blocks(const struct row *row);
/* groups_row_growth without its sign. */
uint64_t groups_row_change(const struct row *row);

#endif
