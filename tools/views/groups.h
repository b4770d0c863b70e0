/* groups.h — groups totals by model, node, run, site, module or thread.
 * In: one image, or two to compare. Out: rows and their sums on each side. Rows are matched by name, never by an id of
 * a file. Rows outlive the images. */
#ifndef MEMSTOW_GROUPS_H
#define MEMSTOW_GROUPS_H

#include "tools/base/slots.h"
#include "tools/image/image.h"

/* When two images are compared: the row that makes rows of estimates add up to the exact figure. */
#define GROUPS_REMAINDER "(remainder)"

enum view { BY_MODEL, BY_NODE, BY_RUN, BY_SITE, BY_MODULE, BY_THREAD, VIEWS };

/* One side of a row. In a comparison the figures are of the groups' measure: live, or live at the peak. live_* may be
 * negative in rows of threads, because a thread may free more than it allocated, and in the remainder, because
 * estimates may be too high. */
struct row_side {
    uint64_t live_bytes, live_blocks;
};

struct row {
    uint32_t model, node, run, member; /* ids of names; member: a module or a thread */
    uint64_t stack;                    /* by site: a hash of the path; 0: no path, and member is the module */
    uint32_t stack_node : 31;          /* a node with the path, in an image */
    uint32_t stack_side : 1;           /* the side of that image: 0 or 1 */
    float variance;                    /* of the bytes of both sides; 0: they are exact */
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
    bool without_runs;    /* by site: rows do not differ by run, because the runs of two processes are different ones */
    bool tids;            /* threads of the same name get a row each, instead of one together */
    enum measure measure; /* the measure of the variances and, in a comparison, of the figures */
    bool estimated;       /* some rows are estimates; a comparison then has one more row, the remainder */
    const uint8_t
        *matched; /* by node of the image that is added: totals at other nodes are left out. NULL: all count */
    struct row *rows;
    size_t count, capacity;
    uint32_t *order; /* indices of rows, from the last sort */
    size_t ordered;
    struct slots slots; /* by key */
    struct name *names, **name_list;
    uint32_t name_count;
    size_t name_capacity;
};

/* False: it is not the name of a view. */
bool groups_view_parse(const char *string, enum view *view);
const char *groups_view_name(enum view view);

/* sides: 1, or 2 for a comparison. */
void groups_begin(struct groups *groups, enum view view, int sides);
/* Adds the totals of an image to side 0 or 1. Returns 0, or -1: no memory. */
int groups_add(struct groups *groups, const struct image *image, int side);
void groups_end(struct groups *groups);

/* The owner's name, NULL for untagged; and the name of the module or thread, never NULL. */
const char *groups_owner(const struct groups *groups, uint32_t name);
const char *groups_member(const struct groups *groups, const struct row *row);
/* The owner's name for people, with the origin of a model or custom owner: "NAME (ORIGIN)". False, and "": untagged. */
bool groups_owner_words(const struct groups *groups, uint32_t name, bool origin, char *to, size_t size);
/* The parts of an owner's name, which are not ended by NUL. False: untagged, or the name of a module or thread. */
struct groups_owner {
    const char *name, *origin;
    int name_length, origin_length;
    uint32_t kind; /* enum snap_owner_kind */
};
bool groups_owner_parts(const struct groups *groups, uint32_t name, struct groups_owner *owner);
/* The name of a row in the view; and the same for people, in which origins tell models apart. */
void groups_label(const struct groups *groups, const struct row *row, char *label, size_t size);
void groups_words(const struct groups *groups, const struct row *row, char *label, size_t size);
/* Sorts by the measure of side 0, the largest first, then by name. Threads are sorted by allocated bytes, the only
 * measure that they have. Returns 0, or -1: no memory. */
int groups_sort_by(struct groups *groups, enum measure measure, size_t most);
/* Sorts by growth, the largest first, then by name. Rows without a change are left out. Returns 0, or -1: no memory. */
int groups_sort_by_growth(struct groups *groups, size_t most);
/* A row by its rank in the last sort. The order holds for the first `most` rows; `ordered` is their number. */
const struct row *groups_row(const struct groups *groups, size_t rank);
/* Side 1 less side 0, in bytes, and in blocks. */
int64_t groups_row_growth(const struct row *row);
int64_t groups_row_growth_blocks(const struct row *row);
/* The same in bytes, without its sign. */
uint64_t groups_row_change(const struct row *row);

#endif
