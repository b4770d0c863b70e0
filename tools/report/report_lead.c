/* report_lead.c — the first two lines of a report in text: where most memory is, and which command to type next; see
 * report.h.
 * In: an image and its sites. Out: the lines "where" and "next". If the user chose another measure or a view, or gave
 * --match, nothing is printed, because then the user knows where to look. */
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

static void lead_line(const char *key, const char *sentence) {
    printf("  %-10s ", key);
    text_wrap(stdout, sentence, INDENT, INDENT);
}

static uint64_t report_lead_live_bytes(const struct image *image) {
    return image->host.live_bytes + image->mapped.live_bytes;
}

/* ---- the line "where" */

static void where_part(const struct report *report, uint64_t bytes, const char *words, const char *name) {
    struct text_line line;
    uint64_t live = report_lead_live_bytes(report->image);
    snprintf(line.s, sizeof line.s, "%s of %s live (%.0f %%) %s %.600s", text_size(bytes).s, text_size(live).s,
             live ? 100.0 * (double)bytes / (double)live : 0.0, words, name);
    lead_line("where", line.s);
}

/* The largest model; NULL if it holds nothing, or less than `floor` bytes. *bytes: its live bytes. */
static const struct snap_owner *largest_model(const struct roster *roster, uint64_t floor, uint64_t *bytes) {
    for (size_t i = 0; i < roster->count; i++) {
        if (roster->rows[i].owner->kind != SNAP_OWNER_MODEL) continue;
        *bytes = roster->rows[i].live_bytes;
        return *bytes && *bytes >= floor ? roster->rows[i].owner : NULL;
    }
    return NULL;
}

/* Prints the largest model, if it holds at least `floor` bytes. Returns 1 if it was printed, else 0; -1: no memory. */
static int where_model(const struct report *report, uint64_t floor) {
    struct roster roster;
    struct text_line words;
    uint64_t bytes;
    if (roster_make(&roster, report->image) < 0) return -1;
    const struct snap_owner *model = largest_model(&roster, floor, &bytes);
    const char *name = model ? image_owner_words(report->image, model->id, words.s, sizeof words.s) : NULL;
    if (name) where_part(report, bytes, "is in model", text_fit(name, NAME).s);
    roster_clear(&roster);
    return name != NULL;
}

static void where_site(const struct report *report, const struct listed_site *site) {
    struct innermost_line line;
    const struct total *total = &report->image->totals[site->first];
    const char *module = image_module_name(report->image, total->module);
    bool known = innermost_caller(&line, report->image, report->symbols, total->stack);
    struct text_line name = known ? symbol_text(line.frame, line.symbol, NAME) : text_fit_path(module, NAME);
    where_part(report, site->bytes, known ? "comes from one place:" : "belongs to", name.s);
}

static bool where_retained(const struct report *report) {
    const struct resident *resident = &report->resident;
    struct text_line line;
    if (!resident->measured || resident->retained < resident->rss / RETAINED_FROM) return false;
    snprintf(line.s, sizeof line.s, "%s of %s resident is freed memory that the allocator keeps: not a leak",
             text_size(resident->retained).s, text_size(resident->rss).s);
    lead_line("where", line.s);
    return true;
}

static int report_lead_where(const struct report *report) {
    size_t count;
    if (!report_lead_live_bytes(report->image) || where_retained(report)) return 0;
    struct report first = *report;
    first.top = 1;
    struct listed_site *sites = report_sites(&first, false, &count);
    int named = sites ? where_model(report, count ? sites[0].bytes : 0) : -1;
    if (named == 0 && count) where_site(report, &sites[0]);
    free(sites);
    return named < 0 ? -1 : 0;
}

/* ---- the line "next" */

static bool has_owner(const struct image *image, uint32_t kind) {
    size_t i = 0;
    while (i < image->owner_count && image->owners[i].kind != kind) i++;
    return i < image->owner_count;
}

static void next_command(const char *before, const char *subject, const char *after) {
    struct text_line line;
    snprintf(line.s, sizeof line.s, "memstow %s %.300s%s", before, TEXT_SAFE(subject), after);
    lead_line("next", line.s);
}

static void report_lead_next(const struct report *report) {
    const struct image *image = report->image;
    if (image->misuse_count)
        lead_line("next", "look at the misused blocks below first");
    else if (at_peak_since_freed(image))
        next_command("report --peak", report->argument, ": most of the peak was freed before the end");
    else if (has_owner(image, SNAP_OWNER_RUN))
        next_command("leaks", report->argument, ": what grows from run to run");
    else if (image->running)
        next_command("snapshot -o a.mst", report->argument, ", and later memstow diff a.mst with it: what grows");
    else if (has_owner(image, SNAP_OWNER_MODEL))
        next_command("owners", report->argument, ": the policy of each model");
    else
        next_command("report --html -o page.html", report->argument, ": all of it in a browser");
}

int report_text_lead(const struct report *report) {
    if (report->measure != MEASURE_LIVE || report->match || report->view_given) return 0;
    if (report_lead_where(report) < 0) return -1;
    report_lead_next(report);
    return 0;
}
