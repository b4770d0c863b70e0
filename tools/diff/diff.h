/* diff.h — a comparison of two files and its three faces; cmd_diff.c makes it.
 * In: rows of both files, and what is known of each file. Out: text or JSON on stdout,
 * or a page. */
#ifndef MEMSTOW_DIFF_H
#define MEMSTOW_DIFF_H

#include "tools/views/cuda_devices.h"
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
    uint64_t bytes, blocks; /* of the measure */
    bool cuda;              /* it used CUDA; below: what is live on devices, and was at most */
    uint64_t cuda_bytes, cuda_blocks, cuda_peak;
    struct cuda_line devices[SNAP_CUDA_DEVICES];
    size_t device_count;
    char peak_words[256]; /* at_peak.h; "" unless the peaks are compared */
};

struct diff {
    const char *argument[2];
    struct snap_header header[2];
    struct subject subject[2]; /* loaded: what call stacks are read from; gone: it was, and cannot be read again */
    struct symbols *symbols[2];
    struct json_stacks *stacks[2];
    bool loaded[2], gone[2];
    struct side_total total[2];
    struct groups groups, cuda;   /* cuda: rows of device memory, live, also where peaks are compared */
    struct thresholds thresholds; /* the limits */
    struct diff_limits limited;
    const char *suppressed_in; /* NULL: growth is judged by rows; else as a check does, by figures */
    struct suppressions suppressions;
    struct figures figures[2];
    struct gate gate;
    struct over over;     /* the limit that was passed, and by what */
    char over_name[1024]; /* "": all memory together */
    enum view view;
    bool apart; /* they are of two processes, whose runs have nothing to do with each other */
    bool view_given, peak, json, html;
    const char *page; /* where a page goes; NULL: standard output */
    size_t top;       /* rows shown; SIZE_MAX: all */
    size_t html_top;  /* sites that stand by themselves in a page */
};

void diff_text(struct diff *diff);
void diff_json(struct diff *diff);
void diff_json_to(struct diff *diff, FILE *to);
int diff_html(struct diff *diff); /* 0, or an exit code after complaining */

int64_t diff_grown_bytes(const struct diff *diff);
int64_t diff_grown_blocks(const struct diff *diff);
/* Whether either used CUDA, and by how much more is live on its devices. */
bool diff_has_cuda(const struct diff *diff);
int64_t diff_grown_cuda_bytes(const struct diff *diff);
int64_t diff_grown_cuda_blocks(const struct diff *diff);
/* What is suppressed of the growth on the host. */
uint64_t diff_suppressed(const struct diff *diff);
/* What the call stack of a row is read from, with its names; NULL when there is none, or it cannot be read (again). Ids
 * of stacks stay what they were. */
const struct image *diff_stacks(struct diff *diff, const struct row *row);

#endif
