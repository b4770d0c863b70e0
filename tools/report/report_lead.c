/* report_lead.c — the two sentences that a report begins with: where most memory is, and which command to type next;
 * see report.h.
 * In: an image and its sites. Out: the sentences "where" and "next"; for a text, they are printed as lines. If the
 * user chose another measure or a view, or gave --match, there are no sentences, because such a user knows where to
 * look. */
#include "tools/reader/last_word.h"
#include "tools/report/report.h"
#include "tools/symbols/innermost.h"
#include "tools/views/at_peak.h"
#include "tools/views/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INDENT = 13,
    NAME = 60 /* columns of a name */,
    RETAINED_FROM = 3 /* retained memory is mentioned if it is at least 1/3 of the RSS */
};

static uint64_t report_lead_live_bytes(const struct image *image) {
    return image->host.live_bytes + image->mapped.live_bytes;
}

/* ---- the sentence "where" */

static void where_part(const struct report *report, struct report_lead *lead, uint64_t bytes, const char *words,
                       const char *name) {
    uint64_t live = report_lead_live_bytes(report->image);
    snprintf(lead->where.s, sizeof lead->where.s, "%s of %s live (%.0f %%) %s %.600s", text_size(bytes).s,
             text_size(live).s, live ? 100.0 * (double)bytes / (double)live : 0.0, words, name);
}

/* The model with the most live bytes of host memory; NULL if no model has `floor` bytes. *bytes: its live bytes. */
static const struct snap_owner *largest_model(const struct roster *roster, uint64_t floor, uint64_t *bytes) {
    const struct snap_owner *largest = NULL;
    *bytes = 0;
    for (size_t i = 0; i < roster->count; i++) {
        const struct roster_row *row = &roster->rows[i];
        if (row->owner->kind != SNAP_OWNER_MODEL || row->live_bytes < floor || row->live_bytes <= *bytes) continue;
        largest = row->owner;
        *bytes = row->live_bytes;
    }
    return largest;
}

/* Names the largest model, if it holds at least `floor` bytes on the host. Returns 1 if it was named, else 0; -1: no
 * memory. */
static int where_model(const struct report *report, struct report_lead *lead, uint64_t floor) {
    struct roster roster;
    struct text_line words;
    uint64_t bytes;
    if (roster_make(&roster, report->image) < 0) return -1;
    const struct snap_owner *model = largest_model(&roster, floor, &bytes);
    const char *name = model ? image_owner_words(report->image, model->id, words.s, sizeof words.s) : NULL;
    if (name) where_part(report, lead, bytes, "is in model", text_fit(name, NAME).s);
    roster_clear(&roster);
    return name != NULL;
}

static void where_site(const struct report *report, struct report_lead *lead, const struct listed_site *site) {
    if (report->image->header.stacks == SNAP_STACKS_NONE) return;
    struct innermost_line line;
    const struct total *total = &report->image->totals[site->first];
    const char *module = image_module_name(report->image, total->module);
    bool known = innermost_caller(&line, report->image, report->symbols, total->stack);
    struct text_line name = known ? symbol_text(line.frame, line.symbol, NAME) : text_fit_path(module, NAME);
    where_part(report, lead, site->bytes, known ? "comes from one place:" : "belongs to", name.s);
}

static bool where_retained(const struct report *report, struct report_lead *lead) {
    const struct resident *resident = &report->resident;
    if (!resident->measured || resident->retained < resident->rss / RETAINED_FROM) return false;
    snprintf(lead->where.s, sizeof lead->where.s,
             "%s of %s resident is freed memory that the allocator keeps: not a leak", text_size(resident->retained).s,
             text_size(resident->rss).s);
    return true;
}

/* Finds the call stack that holds most. The bytes of all sites with the same call stack are added up, whatever their
 * models, nodes and runs. A site without a call stack is counted alone. *place: one of the sites, with the sum as its
 * bytes. Returns 0, or -1: no memory. */
static int largest_place(const struct image *image, const struct listed_site *sites, size_t count,
                         struct listed_site *place) {
    uint64_t *by_node = calloc(image->node_count + 1, sizeof *by_node);
    for (size_t i = 0; by_node && i < count; i++) {
        uint32_t node = image->totals[sites[i].first].stack;
        uint64_t bytes = sites[i].bytes;
        if (node && node < image->node_count) bytes = by_node[node] += bytes;
        if (bytes <= place->bytes) continue;
        *place = sites[i];
        place->bytes = bytes;
    }
    bool failed = !by_node;
    free(by_node);
    return failed ? -1 : 0;
}

static int report_lead_where(const struct report *report, struct report_lead *lead) {
    size_t count;
    if (!report_lead_live_bytes(report->image) || where_retained(report, lead)) return 0;
    struct report all = *report;
    all.top = 0; /* unsorted */
    struct listed_site *sites = report_sites(&all, false, &count);
    struct listed_site place = {0};
    bool failed = !sites || largest_place(report->image, sites, count, &place) < 0;
    int named = failed ? -1 : where_model(report, lead, place.bytes);
    if (named == 0 && place.count) where_site(report, lead, &place);
    free(sites);
    return named < 0 ? -1 : 0;
}

/* ---- the sentence "next" */

static bool has_owner(const struct image *image, uint32_t kind) {
    size_t i = 0;
    while (i < image->owner_count && image->owners[i].kind != kind) i++;
    return i < image->owner_count;
}

static void next_command(struct report_lead *lead, const char *before, const char *subject, const char *after) {
    snprintf(lead->next.s, sizeof lead->next.s, "memstow %s %.300s%s", before, TEXT_SAFE(subject), after);
}

/* `page`: the sentence stands on the HTML page, which does not show misused blocks. */
static void report_lead_next(const struct report *report, bool page, struct report_lead *lead) {
    const struct image *image = report->image;
    const char *argument = report->argument;
    if (image->misuse_count && page)
        next_command(lead, "report", argument, ": it lists misused blocks, which come first");
    else if (image->misuse_count)
        snprintf(lead->next.s, sizeof lead->next.s, "look at the misused blocks below first");
    else if (at_peak_since_freed(image))
        next_command(lead, "report --peak", argument, ": most of the peak was freed before the end");
    else if (has_owner(image, SNAP_OWNER_RUN))
        next_command(lead, "leaks", argument, ": what grows from run to run");
    else if (image->running)
        next_command(lead, "snapshot -o a.mst", argument, ", and later memstow diff a.mst with it: what grows");
    else if (has_owner(image, SNAP_OWNER_MODEL))
        next_command(lead, "owners", argument, ": the policy of each model");
    else if (!page)
        next_command(lead, "report --html -o page.html", argument, ": all of it in a browser");
}

int report_lead(const struct report *report, bool page, struct report_lead *lead) {
    *lead = (struct report_lead){0};
    if (report->measure != MEASURE_LIVE || report->match || report->view_given) return 0;
    if (report_lead_where(report, lead) < 0) return -1;
    if (report->argument) report_lead_next(report, page, lead);
    return 0;
}

static void lead_line(const char *key, const char *sentence) {
    if (!*sentence) return;
    printf("  %-10s ", key);
    text_wrap(stdout, sentence, INDENT, INDENT);
}

int report_text_lead(const struct report *report) {
    struct report_lead lead;
    if (report_lead(report, false, &lead) < 0) return -1;
    lead_line("where", lead.where.s);
    lead_line("next", lead.next.s);
    return 0;
}
