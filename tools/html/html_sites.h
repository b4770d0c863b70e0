/* html_sites.h — the sites of one report as columns of a page, in the order of its tree.
 * In: a report. Out: the groups "lines", "segments", "tree", "sites", "tags" and "blocks". Sums over these columns
 * equal the sums of the report, to the byte. */
#ifndef MEMSTOW_HTML_SITES_H
#define MEMSTOW_HTML_SITES_H

#include "tools/html/html_fit.h"
#include "tools/html/html_owners.h"
#include "tools/report/report.h"

enum {
    HTML_BLOCKS_MOST = 100000, /* of all blocks and mappings, only the largest are in the page */
    /* The values of the column "kind" of blocks:
     * - a block of the host: 0
     * - a mapping: html_kind_of_mapping(), which is 2 * its kind, plus 1 if it is shared; a kind above 7 counts as 7
     * - a block on a device: HTML_KIND_ON_DEVICE + enum snap_cuda_kind */
    HTML_KIND_ON_DEVICE = 16,
};

uint32_t html_kind_of_mapping(const struct snap_mapping *mapping);

struct html_sites {
    const struct report *report;
    const struct html_owners *owners;
    struct html_lines lines;
    struct html_tree tree;
    struct listed_site *sites; /* sites of host memory, then of devices */
    size_t count, host_count, block_count;
    size_t blocks_shown;  /* how many blocks the page has: as many as fit */
    struct image devices; /* cuda_view of the image: its totals are those of device memory */
    struct listed *blocks;
    struct html_fit packed;    /* the columns of lines, stacks and sites */
    struct html_figures *sums; /* the figures of entries that stand for several sites */
    uint32_t *sum_of;          /* by entry: 1 + index in `sums`; 0: the entry is a single site */
};

/* `owners`: the owners that the page leaves out. `most`: how many sites the page may show singly; all others are
 * merged. `limit`: bytes for all columns. Returns 0, or -1: no memory. Call html_sites_end() whatever the result is. */
int html_sites_begin(struct html_sites *self, const struct report *report, const struct html_owners *owners,
                     size_t most, size_t limit);
int html_sites_write(struct html_sites *self, struct html_out *out);
void html_sites_end(struct html_sites *self);

#endif
