/* report_html.c — a report as a page; see report.h. docs/html-data.md has the format of its data. */
#include "tools/base/complain.h"
#include "tools/decisions/decisions.h"
#include "tools/html/html_page.h"
#include "tools/html/html_sites.h"
#include "tools/report/owners_json.h"

#include <stdlib.h>

enum { ROWS = 1000 /* limit for each list in the report's JSON */ };

static const char *measure_key(enum measure measure) {
    static const char *const keys[] = {"live", "peak", "allocated"};
    return keys[measure];
}

/* Writes the document "page": the command and the options that the page begins with, the number of merged sites, and
 * the number of blocks that are left out. */
static int write_about(const struct report *report, const struct html_sites *sites, struct html_out *out) {
    static struct json json;
    static struct report_lead lead;
    if (report_lead(report, true, &lead) < 0) return -1;
    FILE *to = html_document(out, "page");
    if (!to) return -1;
    size_t blocks = sites->block_count;
    json_begin(&json, to, "memstow-page");
    json_string(&json, "command", report->tab ? report->tab->command : "report");
    json_string(&json, "memstow", MEMSTOW_VERSION_TEXT);
    json_string(&json, "measure", measure_key(report->measure));
    json_string(&json, "match", report->match);
    json_string(&json, "where", *lead.where.s ? lead.where.s : NULL);
    json_string(&json, "next", *lead.next.s ? lead.next.s : NULL);
    json_number(&json, "sites_folded", sites->tree.folded);
    json_number(&json, "blocks_omitted", blocks > HTML_BLOCKS_MOST ? blocks - HTML_BLOCKS_MOST : 0);
    json_string(&json, "peak_words", report->image->has_picture ? report_peak_label(report->image).s : NULL);
    json_finish(&json);
    return fclose(to) == 0 ? 0 : -1;
}

/* Writes the report as JSON, without its sites, which are columns. Other lists are limited to ROWS entries. */
static int write_report(const struct report *report, struct html_out *out) {
    struct report without = *report;
    FILE *to = html_document(out, "report");
    if (!to) return -1;
    without.top_sites = 0;
    without.top = ROWS;
    int result = report_json_to(&without, to);
    return fclose(to) == 0 ? result : -1;
}

static int write_owners(const struct report *report, struct html_out *out) {
    struct roster roster;
    if (!report->image->owner_count) return 0;
    if (roster_make(&roster, report->image) < 0) return -1;
    FILE *to = html_document(out, "owners");
    if (to) owners_json(&roster, report->image, to);
    roster_clear(&roster);
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
    FILE *to = html_document(out, tab->command);
    if (!to) return -1;
    fwrite(tab->text, 1, tab->length, to);
    return fclose(to) == 0 ? 0 : -1;
}

struct page {
    const struct report *report;
    struct html_sites *sites;
};

static int write_data(struct html_out *out, void *context) {
    const struct page *page = context;
    if (write_about(page->report, page->sites, out) < 0 || write_report(page->report, out) < 0) return -1;
    if (page->report->tab && write_tab(page->report->tab, out) < 0) return -1;
    if (write_owners(page->report, out) < 0 || write_decisions(page->report, out) < 0) return -1;
    return html_sites_write(page->sites, out);
}

int report_html(const struct report *report) {
    struct html_sites sites;
    struct page page = {report, &sites};
    int code = EXIT_UNREADABLE;
    if (html_sites_begin(&sites, report, report->top) == 0)
        code = html_page_write(report->page, write_data, &page);
    else
        complain("not enough memory");
    html_sites_end(&sites);
    return code;
}
