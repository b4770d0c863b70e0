/* diff.h — the comparison of two ledgers or snapshots in the forms of `memstow diff`; cmd_diff.c fills it.
 * In: rows of both files (one for each owner or call site), and facts about each file. Out: text, JSON, folded stacks,
 * a profile or a page. */
#ifndef MEMSTOW_DIFF_H
#define MEMSTOW_DIFF_H

#include "tools/views/cuda_devices.h"
#include "tools/diff/diff_blocks.h"
#include "tools/diff/diff_limits.h"
#include "tools/diff/gate.h"
#include "tools/views/groups.h"
#include "tools/symbols/json_stack.h"
#include "tools/subject/subject.h"
#include "tools/diff/thresholds.h"

struct side_total {
    char name[32];
    uint32_t pid;
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, sample_bytes;
    uint64_t bytes, blocks; /* in the measure that is compared: live or peak */
    bool cuda;              /* the process used CUDA */
    /* Live bytes and live blocks of the process on CUDA devices, and the peak of these bytes. */
    uint64_t cuda_bytes, cuda_blocks, cuda_peak;
    struct cuda_line devices[SNAP_CUDA_DEVICES];
    size_t device_count;
    char peak_words[256]; /* words of at_peak.h about the peak; "" if live memory is compared */
};

struct diff {
    const char *argument[2]; /* arrays of 2: the first file and the second, A and B */
    struct snap_header header[2];
    struct subject subject[2];
    struct symbols *symbols[2];
    struct json_stacks *stacks[2];
    /* loaded: the subject is open, so that call stacks can be read. gone: the file cannot be read again. */
    bool loaded[2], gone[2];
    struct side_total total[2];
    struct groups groups, cuda; /* cuda: rows of live device memory, also when peaks are compared */
    struct diff_blocks blocks;  /* for a page: large blocks and mappings of the host */
    struct thresholds thresholds;
    struct diff_limits limited;
    /* The file of suppressions. If it is given, growth is judged by gate.h, as in a check. NULL: growth is judged row
     * by row. */
    const char *suppressed_in;
    struct suppressions suppressions;
    struct figures figures[2];
    struct gate gate;
    struct over over;     /* the limit that was passed, and the row that passed it */
    char over_name[1024]; /* name of the owner or site that passed the limit; "": all memory together */
    enum view view;
    bool apart; /* the files are of two processes, whose runs are unrelated */
    bool view_given, peak, json;
    bool python;                    /* for --folded and --pprof: Python frames only */
    const char *form_name;          /* the option that chose the form; NULL: text */
    int (*form)(struct diff *diff); /* --html, --folded or --pprof; NULL: text or JSON */
    enum view root;   /* for --folded and --pprof: the kind of owner that is the outermost frame; BY_SITE: none */
    const char *page; /* file of the page; NULL: standard output */
    size_t top;       /* number of rows that are shown; SIZE_MAX: all */
    size_t form_top;  /* number of sites that the form does not merge (--top); SIZE_MAX: not given */
};

void diff_text(struct diff *diff);
void diff_json(struct diff *diff);
void diff_json_to(struct diff *diff, FILE *to);
/* The three functions below return 0, or an exit code after an error message. */
int diff_html(struct diff *diff);
int diff_folded(struct diff *diff);
int diff_pprof(struct diff *diff);

/* Growth of host memory from the first file to the second, in the measure that is compared. */
int64_t diff_grown_bytes(const struct diff *diff);
int64_t diff_grown_blocks(const struct diff *diff);
/* Whether the process of either file used CUDA. The two functions below return the growth of live memory on CUDA
 * devices. */
bool diff_has_cuda(const struct diff *diff);
int64_t diff_grown_cuda_bytes(const struct diff *diff);
int64_t diff_grown_cuda_blocks(const struct diff *diff);
/* The part of the host's growth that is suppressed, in bytes. */
uint64_t diff_suppressed(const struct diff *diff);
/* Returns the image of a side, without its totals. If need be, the file is read again; the ids of stacks stay the same.
 * Returns NULL if the file cannot be read again. */
const struct image *diff_image(struct diff *diff, int side);
/* Returns the image that has the call stack of a row. From now on diff->symbols has names for the frames of the stack.
 * Returns NULL if the row has no stack, or if the file cannot be read again. */
const struct image *diff_stacks(struct diff *diff, const struct row *row);

#endif
