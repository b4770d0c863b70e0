/* report_list.c — what text and JSON of a report have in common: the rows of their lists, and words for states and
 * kinds; see report.h. */
#include "tools/reader/cuda_image.h"
#include "tools/reader/last_word.h"
#include "tools/report/report.h"
#include "tools/base/top.h"

#include <stdlib.h>

static int report_list_by_size(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (a->birth_ns != b->birth_ns) return a->birth_ns < b->birth_ns ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* Whether the blocks of a site are listed. With --match, the site must be known, and --match must keep it. */
static bool report_list_lists(const struct report *report, const struct total *total) {
    return !report->matched || (total && report_keeps(report, total));
}

struct listed *report_listed(const struct report *report, unsigned which, size_t *count) {
    const struct image *image = report->image;
    size_t most = image->large_count + image->mapping_count + image->cuda.block_count;
    struct listed *list = calloc(most + 1, sizeof *list);
    *count = 0;
    if (!list) return NULL;
    for (size_t i = 0; which & LISTED_BLOCKS && i < image->large_count; i++) {
        const struct snap_large *at = &image->large[i];
        if (!report_list_lists(report, image_total(image, at->site))) continue;
        list[(*count)++] = (struct listed){.address = at->address,
                                           .size = at->size,
                                           .birth_ns = at->birth_ns,
                                           .resident = at->resident,
                                           .site = at->site,
                                           .thread = at->thread};
    }
    for (size_t i = 0; which & LISTED_MAPPINGS && i < image->mapping_count; i++) {
        const struct snap_mapping *at = &image->mappings[i];
        if (!report_list_lists(report, image_total(image, at->site))) continue;
        list[(*count)++] = (struct listed){.address = at->address,
                                           .size = at->length,
                                           .birth_ns = at->birth_ns,
                                           .resident = at->resident,
                                           .site = at->site,
                                           .thread = at->tid,
                                           .mapping = at};
    }
    for (size_t i = 0; image->cuda.used && which & LISTED_ON_DEVICES && i < image->cuda.block_count; i++) {
        const struct snap_cuda_block *at = &image->cuda.blocks[i];
        if (!cuda_block_is_whole(at)) continue;
        if (!report_list_lists(report, cuda_block_total(&image->cuda, at))) continue;
        list[(*count)++] = (struct listed){.address = at->address,
                                           .size = at->size,
                                           .birth_ns = at->birth_ns,
                                           .site = at->count,
                                           .thread = at->thread,
                                           .on_device = at};
    }
    qsort(list, *count, sizeof *list, report_list_by_size);
    return list;
}

bool report_keeps(const struct report *report, const struct total *total) {
    if (total->flags & (TOTAL_INHERITED | TOTAL_REMAINDER)) return false;
    return !report->matched || report->matched[total->stack < report->image->node_count ? total->stack : 0];
}

static int report_list_by_bytes(const void *left, const void *right, void *context) {
    const struct listed_site *a = left, *b = right;
    (void)context;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static bool report_list_holds(const struct total *total, enum measure measure) {
    return total_measure(total, measure) || total_measure_blocks(total, measure);
}

struct listed_site *report_sites(const struct report *report, bool empty_too, size_t *count) {
    const struct image *image = report->image;
    struct listed_site *sites = calloc(image->total_count + 1, sizeof *sites);
    *count = 0;
    for (size_t i = 0, step; sites && i < image->total_count; i += step) {
        const struct total *total = &image->totals[i];
        step = i + 1 < image->total_count && total_same_site(total, total + 1) ? 2 : 1;
        if (!report_keeps(report, total)) continue;
        if (!empty_too && !report_list_holds(total, report->measure) &&
            (step == 1 || !report_list_holds(total + 1, report->measure)))
            continue;
        uint64_t bytes = total_measure(total, report->measure);
        if (step == 2) bytes += total_measure(total + 1, report->measure);
        sites[(*count)++] = (struct listed_site){(uint32_t)i, (uint32_t)step, bytes};
    }
    if (sites) top_sort(sites, *count, sizeof *sites, report->top, report_list_by_bytes, NULL);
    return sites;
}

/* Adds up the totals of a site: its heap memory and its mapped memory. The frees of the sum are its allocations minus
 * the live memory of both totals. The frees of the totals are not added up: if one total has more frees than
 * allocations, its live memory counts as 0, but its surplus of frees would reduce the live memory of the sum. */
struct total report_site(const struct image *image, const struct listed_site *site) {
    struct total sum = image->totals[site->first];
    const struct total *mapped = &image->totals[site->first + 1];
    if (site->count < 2) return sum;
    uint64_t live_bytes = total_live_bytes(&sum) + total_live_bytes(mapped);
    uint64_t live_blocks = total_live_blocks(&sum) + total_live_blocks(mapped);
    sum.alloc_bytes += mapped->alloc_bytes;
    sum.alloc_blocks += mapped->alloc_blocks;
    sum.peak_bytes += mapped->peak_bytes;
    sum.peak_blocks += mapped->peak_blocks;
    sum.flags |= mapped->flags;
    sum.free_bytes = sum.alloc_bytes - live_bytes;
    sum.free_blocks = sum.alloc_blocks - live_blocks;
    return sum;
}

double report_site_variance(const struct image *image, const struct listed_site *site, enum measure measure) {
    const struct total *total = &image->totals[site->first];
    return image_variance(image, total, measure) + (site->count > 1 ? image_variance(image, total + 1, measure) : 0);
}

static const char *state_words(const struct image *image) {
    switch (image->header.state) {
    case SNAP_RUNNING:
        return image->running ? "running" : "was running when this snapshot was taken";
    case SNAP_EXITED:
        return "exited";
    case SNAP_ABRUPT_EXIT:
        return "ended by _exit";
    case SNAP_EXECED:
        return "replaced itself by another program (exec)";
    default:
        return "in an unknown state";
    }
}

struct text_line report_state(const struct image *image) {
    struct text_line line;
    if (last_word_is_untold(image)) return last_word_of_untold(&image->header);
    snprintf(line.s, sizeof line.s, "%s", state_words(image));
    return line;
}

const char *report_mapping_kind(uint32_t kind) {
    switch (kind) {
    case SNAP_MAP_ANONYMOUS:
        return "anonymous";
    case SNAP_MAP_FILE:
        return "file";
    case SNAP_MAP_RESERVED:
        return "reserved";
    case SNAP_MAP_BRK:
        return "brk";
    default:
        return "unknown";
    }
}

uint64_t report_age_ns(const struct image *image, uint64_t birth_ns) {
    uint64_t now = image_now(image);
    return now > birth_ns ? now - birth_ns : 0;
}
