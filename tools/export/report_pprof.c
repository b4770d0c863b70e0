/* report_pprof.c — a report as a compressed profile for pprof and similar programs; see export.h and pprof.h. */
#include "tools/export/export.h"
#include "tools/export/pprof.h"
#include "tools/export/report_profile.h"
#include "tools/views/estimate.h"

#include <stdio.h>
#include <stdlib.h>

struct writer {
    const struct report *report;
    struct roots roots;
    struct pprof pprof;
};

/* Used instead of a tag for values that belong to several owners. */
#define MANY_TAGS UINT32_MAX

/* A call stack and its values. */
struct profiled {
    uint32_t stack, module, tag;
    const char *inner;            /* a name in place of inner frames that were merged; NULL: the stack is whole */
    int64_t values[PPROF_VALUES]; /* alloc_objects, alloc_space, inuse_objects, inuse_space */
};

/* ---- the values of samples */

static struct profiled site_figures(const struct report *report, const struct listed_site *site) {
    struct total sum = report_site(report->image, site);
    bool peak = report->measure == MEASURE_PEAK;
    return (struct profiled){.stack = sum.stack,
                             .module = sum.module,
                             .tag = sum.tag,
                             .values = {(int64_t)sum.alloc_blocks, (int64_t)sum.alloc_bytes,
                                        (int64_t)(peak ? sum.peak_blocks : total_live_blocks(&sum)),
                                        (int64_t)(peak ? sum.peak_bytes : total_live_bytes(&sum))}};
}

static void figures_add(struct profiled *to, const struct profiled *one) {
    for (int i = 0; i < PPROF_VALUES; i++) to->values[i] += one->values[i];
}

static void put_sample(struct writer *writer, const struct profiled *one) {
    const struct report *report = writer->report;
    const struct snap_tag *tag = image_tag(report->image, one->tag);
    char model[2048];
    struct pprof_sample sample = {.stack = one->stack,
                                  .module = one->module,
                                  .inner = one->inner,
                                  .nowhere = report_no_frames(report, one->module)};
    if (one->tag != MANY_TAGS) sample.root = writer->roots.names[roots_of(&writer->roots, one->tag)];
    sample.labels[PPROF_MODEL] = image_owner_words(report->image, tag->model, model, sizeof model);
    sample.labels[PPROF_NODE] = image_owner_name(report->image, tag->node);
    sample.labels[PPROF_RUN] = image_owner_name(report->image, tag->run);
    for (int i = 0; i < PPROF_VALUES; i++) sample.values[i] = one->values[i];
    pprof_put(&writer->pprof, &sample);
}

/* ---- writing merged samples */

/* Writes one sample for everything that --top leaves out. */
static void report_pprof_put_rest(struct writer *writer, const struct listed_site *sites, size_t count) {
    char name[64];
    struct profiled rest = {.inner = name, .tag = MANY_TAGS};
    snprintf(name, sizeof name, "(%zu more)", count);
    for (size_t i = 0; i < count; i++) {
        struct profiled one = site_figures(writer->report, &sites[i]);
        figures_add(&rest, &one);
    }
    put_sample(writer, &rest);
}

/* Returns an array with one entry for each node: the nearest node that has at least --min bytes, from the node itself
 * outwards, or 0 if there is none. The bytes of a node include those of all nodes below it. NULL: no memory. */
static uint32_t *large_nodes(const struct report *report) {
    const struct image *image = report->image;
    uint64_t *bytes = calloc(image->node_count + 1, sizeof *bytes);
    uint32_t *large = calloc(image->node_count + 1, sizeof *large);
    for (size_t i = 0; bytes && i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (total->stack < image->node_count && report_keeps(report, total))
            bytes[total->stack] += total_measure(total, report->measure);
    }
    for (size_t node = image->node_count; bytes && node-- > 1;) bytes[image->nodes[node].parent] += bytes[node];
    for (uint32_t node = 1; bytes && large && node < image->node_count; node++)
        large[node] = bytes[node] >= report->min ? node : large[image->nodes[node].parent];
    if (!bytes) free(large);
    free(bytes);
    return bytes ? large : NULL;
}

static int by_stack(const void *left, const void *right) {
    const struct profiled *a = left, *b = right;
    if (a->stack != b->stack) return a->stack < b->stack ? -1 : 1;
    if (a->tag != b->tag) return a->tag < b->tag ? -1 : 1;
    if (a->module != b->module) return a->module < b->module ? -1 : 1;
    return (a->inner != NULL) - (b->inner != NULL);
}

/* Writes the samples if --min was given. Each stack is cut so that it ends at its innermost node with at least --min
 * bytes. A frame named "(smaller)" replaces the frames that were cut off. After that, equal stacks with the same tag
 * become one sample. A stack that was cut loses its module, because a difference in modules would keep stacks apart. */
static int put_large(struct writer *writer, const struct listed_site *sites, size_t count) {
    const struct image *image = writer->report->image;
    uint32_t *large = large_nodes(writer->report);
    struct profiled *list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; large && list && i < count; i++) {
        list[i] = site_figures(writer->report, &sites[i]);
        uint32_t stack = list[i].stack, kept = stack < image->node_count ? large[stack] : 0;
        if (!stack || kept == stack) continue;
        list[i].stack = kept;
        list[i].module = 0;
        list[i].inner = "(smaller)";
    }
    if (large && list) qsort(list, count, sizeof *list, by_stack);
    for (size_t i = 0, next; large && list && i < count; i = next) {
        for (next = i + 1; next < count && by_stack(&list[i], &list[next]) == 0; next++)
            figures_add(&list[i], &list[next]);
        put_sample(writer, &list[i]);
    }
    int result = large && list ? 0 : -1;
    free(large);
    free(list);
    return result;
}

static int put_samples(struct writer *writer, const struct listed_site *sites, size_t count) {
    size_t shown = count < writer->report->top ? count : writer->report->top;
    if (writer->report->min) return put_large(writer, sites, count);
    for (size_t i = 0; i < shown; i++) {
        struct profiled one = site_figures(writer->report, &sites[i]);
        put_sample(writer, &one);
    }
    if (shown < count) report_pprof_put_rest(writer, sites + shown, count - shown);
    return 0;
}

/* ---- the whole profile */

static int write_profile(struct writer *writer, const struct listed_site *sites, size_t count) {
    static const struct pprof_type types[PPROF_VALUES] = {
        {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
    const struct report *report = writer->report;
    char words[512];
    estimate_words(report->image, report->measure, words, sizeof words);
    struct pprof_head head = {.header = &report->image->header,
                              .now = image_now(report->image),
                              .images = {report->image},
                              .symbols = {report->symbols},
                              .types = types,
                              .type_count = PPROF_VALUES,
                              .chosen = report->measure == MEASURE_ALLOCATED ? 1 : 3,
                              .comment = report->image->variances ? words : NULL,
                              .python = report->python,
                              .to = stdout};
    int result = pprof_begin(&writer->pprof, &head);
    if (result == 0) result = put_samples(writer, sites, count);
    return pprof_end(&writer->pprof) < 0 ? -1 : result;
}

int report_pprof(const struct report *report) {
    size_t count;
    struct listed_site *sites = report_sites(report, true, &count);
    static struct writer writer;
    int result = roots_make(&writer.roots, report);
    writer.report = report;
    report_tell_estimates(report);
    if (result == 0) result = sites ? write_profile(&writer, sites, count) : -1;
    roots_clear(&writer.roots);
    free(sites);
    return result;
}
