/* report_stacks.c — the call stacks of a report in text: the sites with the most memory; see report.h. Python frames
 * are marked "py". Only frames that are printed are looked up in symbol files. */
#include "tools/views/estimate.h"
#include "tools/symbols/innermost.h"
#include "tools/report/report.h"
#include "tools/symbols/site_lines.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE_INDENT = 26, SITE_BYTES = 12 };

static uint64_t site_error(const struct report *report, const struct listed_site *site) {
    return estimate_error(report_site_variance(report->image, site, report->measure));
}

static void print_site(const struct report *report, const struct listed_site *site) {
    struct innermost stack;
    struct margin margin = {.width = SITE_INDENT};
    struct total sum = report_site(report->image, site);
    struct text error = text_size(site_error(report, site));
    innermost_of(&stack, report->image, report->symbols, sum.stack);
    site_margin_add(&margin, "  %10s %11s", text_size(site->bytes).s,
                    text_count(total_measure_blocks(&sum, report->measure)).s);
    if (site_error(report, site))
        site_margin_add(&margin, "%*s± %s", SITE_BYTES - 2 - (int)strlen(error.s), "", error.s);
    const struct snap_tag *tag = image_tag(report->image, sum.tag);
    struct text_line model;
    site_owners(&margin, image_owner_words(report->image, tag->model, model.s, sizeof model.s),
                image_owner_name(report->image, tag->node), image_owner_name(report->image, tag->run));
    const char *module = image_module(report->image, sum.module);
    site_lines(&margin, &stack, module ? module : "(call stack unknown)");
}

int report_text_sites(const struct report *report) {
    size_t count;
    struct listed_site *sites = report_sites(report, false, &count);
    if (!sites) return -1;
    size_t shown = count < report->top ? count : report->top;
    report_text_view(report, BY_SITE);
    if (!count) {
        puts(report_text_nothing(report->measure));
        free(sites);
        return 0;
    }
    int wide = printf("  %10s", report_measure_words(report).s);
    printf(" %*s  call stack, innermost first\n", SITE_INDENT - 3 - wide, "blocks");
    for (size_t i = 0; i < shown; i++) print_site(report, &sites[i]);
    if (shown < count) printf("  … and %s more (--top=N shows N)\n", text_count(count - shown).s);
    free(sites);
    return 0;
}

void report_text_without_lines(const struct report *report) {
    const char *names[3];
    size_t most = sizeof names / sizeof *names, count = symbols_without_lines(report->symbols, names, most);
    if (!count) return;
    puts("\nNo debug information, so no lines and nothing inlined:");
    for (size_t i = 0; i < count && i < most; i++) printf("  %s\n", text_fit(names[i], text_width() - 2).s);
    if (count > most) printf("  … and %zu more file%s\n", count - most, count - most == 1 ? "" : "s");
}
