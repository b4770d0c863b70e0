/* report_html.c — a report as a page; see report.h. docs/html-data.md has the format of its data. */
#include "tools/base/complain.h"
#include "tools/decisions/decisions.h"
#include "tools/html/html_page.h"
#include "tools/html/html_sites.h"
#include "tools/html/html_snapshots.h"
#include "tools/report/owners_json.h"

#include <stdlib.h>

enum {
    ROWS = 1000,                         /* limit for each list in the report's JSON */
    DOCUMENTS_MOST = HTML_PAGE_MOST / 2, /* if the documents are larger, owners are left out until they fit */
};

/* What a page is made of. The documents are written first, into memory, because the columns get the rest of the
 * page. */
struct page {
    struct report report; /* without the owners that are left out */
    struct roster roster;
    struct html_owners owners;
    struct html_sites sites;
    char *documents; /* all but "page" */
    size_t documents_size;
};

static const char *measure_key(enum measure measure) {
    static const char *const keys[] = {"live", "peak", "allocated"};
    return keys[measure];
}

/* Writes the document "page": the command and the options that the page begins with, the number of merged sites, and
 * the numbers of blocks and owners that are left out. */
static int write_about(const struct page *page, struct html_out *out) {
    static struct json json;
    const struct report *report = &page->report;
    static struct report_lead lead;
    if (report_lead(report, true, &lead) < 0) return -1;
    FILE *to = html_document(out, "page");
    if (!to) return -1;
    json_begin(&json, to, "memstow-page");
    json_string(&json, "command", report->tab && report->tab->in_front ? report->tab->name : "report");
    json_string(&json, "memstow", MEMSTOW_VERSION_TEXT);
    json_string(&json, "measure", measure_key(report->measure));
    json_string(&json, "match", report->match);
    json_string(&json, "where", *lead.where.s ? lead.where.s : NULL);
    json_string(&json, "next", *lead.next.s ? lead.next.s : NULL);
    json_number(&json, "sites_folded", page->sites.tree.folded);
    json_number(&json, "blocks_omitted", page->sites.block_count - page->sites.blocks_shown);
    json_number(&json, "owners_omitted", page->owners.count);
    json_number(&json, "omitted_owner", page->owners.stand_in);
    json_string(&json, "peak_words", report->image->has_picture ? report_peak_label(report->image).s : NULL);
    json_finish(&json);
    return fclose(to) == 0 ? 0 : -1;
}

/* Writes the report as JSON, without its sites: the page has the sites as columns. Other lists are limited to ROWS
 * entries. */
static int write_report(const struct report *report, struct html_out *out) {
    struct report without = *report;
    FILE *to = html_document(out, "report");
    if (!to) return -1;
    without.top_sites = 0;
    without.top = ROWS;
    int result = report_json_to(&without, to);
    return fclose(to) == 0 ? result : -1;
}

/* Writes the owners that are not left out. */
static int write_owners(const struct page *page, struct html_out *out) {
    const struct image *image = page->report.image;
    struct roster shown = page->roster;
    if (!image->owner_count) return 0;
    shown.count = 0;
    shown.rows = calloc(page->roster.count + 1, sizeof *shown.rows);
    if (!shown.rows) return -1;
    for (size_t i = 0; i < page->roster.count; i++)
        if (!html_owners_hides(&page->owners, page->roster.rows[i].owner))
            shown.rows[shown.count++] = page->roster.rows[i];
    FILE *to = html_document(out, "owners");
    if (to) owners_json(&shown, image, to);
    free(shown.rows);
    return to && fclose(to) == 0 ? 0 : -1;
}

static int write_decisions(const struct report *report, struct html_out *out) {
    struct decisions decisions;
    FILE *to = NULL;
    int result = decisions_load(&decisions, report->image);
    bool any = result == 0 && decisions.event_count;
    if (any) to = html_document(out, "decisions");
    if (to) decisions_json(&decisions, report->image, to);
    if (any && (!to || fclose(to) != 0)) result = -1;
    decisions_clear(&decisions);
    return result;
}

static int write_tab(const struct report_tab *tab, struct html_out *out) {
    FILE *to = html_document(out, tab->name);
    if (!to) return -1;
    fwrite(tab->text, 1, tab->length, to);
    return fclose(to) == 0 ? 0 : -1;
}

/* Writes what the process held at earlier times, if the report knows this. A report of several files knows it. So does
 * a report of a file with the readings of a series. */
static int write_snapshots(const struct report *report, struct html_out *out) {
    if (report->snapshots && report->snapshots->count) return html_snapshots_write(report->snapshots, report, out);
    int result = report->image->series_size ? html_snapshots_write_series(report, out) : 0;
    if (result > -2) return result;
    complain("%s: damaged: a series that does not add up, so the page does not have it", TEXT_SAFE(report->argument));
    return 0;
}

static int write_documents(struct html_out *out, void *context) {
    const struct page *page = context;
    const struct report *report = &page->report;
    if (write_report(report, out) < 0 || (report->tab && write_tab(report->tab, out) < 0)) return -1;
    if (write_owners(page, out) < 0 || write_decisions(report, out) < 0) return -1;
    return write_snapshots(report, out);
}

static int write_data(struct html_out *out, void *context) {
    struct page *page = context;
    if (write_about(page, out) < 0) return -1;
    html_out_text(out, page->documents, page->documents_size);
    return html_sites_write(&page->sites, out);
}

/* Writes the documents. They have at most `most` owners: those that have the most memory. */
static int pack_documents(struct page *page, size_t most) {
    free(page->documents);
    page->documents = NULL;
    html_owners_end(&page->owners);
    if (html_owners_begin(&page->owners, page->report.image, &page->roster, most) < 0) return -1;
    page->report.hidden_owners = page->owners.hidden;
    return html_page_pack(&page->documents, &page->documents_size, write_documents, page);
}

static int page_begin(struct page *page, const struct report *report) {
    *page = (struct page){.report = *report};
    if (roster_make(&page->roster, report->image) < 0) return -1;
    size_t most = page->roster.count, others = html_page_parts() + HTML_ABOUT_MOST;
    if (pack_documents(page, most) < 0) return -1;
    while (page->documents_size > DOCUMENTS_MOST && most)
        if (pack_documents(page, most /= 4) < 0) return -1;
    others += page->documents_size;
    size_t limit = others < HTML_PAGE_MOST ? HTML_PAGE_MOST - others : 0;
    return html_sites_begin(&page->sites, &page->report, &page->owners, report->top, limit);
}

static void page_end(struct page *page) {
    html_sites_end(&page->sites);
    html_owners_end(&page->owners);
    roster_clear(&page->roster);
    free(page->documents);
}

/* Adds one of several files. The last one gets the page. */
static int add_file(const struct report *report) {
    bool several = report->snapshots && (report->more || report->snapshots->count);
    return several ? html_snapshots_add(report->snapshots, report) : 0;
}

int report_html(const struct report *report) {
    static struct page page;
    int code = EXIT_UNREADABLE, added = add_file(report);
    if (added == 0 && report->more) return EXIT_FINE;
    if (added == 0 && page_begin(&page, report) == 0)
        code = html_page_write(report->page, write_data, &page);
    else
        complain("not enough memory");
    page_end(&page);
    return code;
}
