/* report_csv.c — the sites of a report as a table for spreadsheets and data bases; see export.h. The form is that of
 * RFC 4180. Each site has a line, and the largest site comes first. Lines end with CR and LF. A text that needs
 * quotes has them. Texts are UTF-8. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
#include "tools/export/export.h"
#include "tools/export/report_profile.h"
#include "tools/reader/cuda_image.h"
#include "tools/symbols/innermost.h"
#include "tools/views/estimate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_COLUMNS = 1000 };

static const char header[] = "memory,function,kind,module,file,line,model,node,run,live_bytes,live_blocks,peak_bytes,"
                             "peak_blocks,allocated_bytes,allocated_blocks,live_error_bytes\r\n";

/* ---- writing fields */

/* Whether some spreadsheets would take the text for a formula. They look at its first character after blanks. */
static bool is_formula(const char *text) {
    text += strspn(text, " ");
    return *text && strchr("=+-@", *text);
}

static void report_csv_put_text(const char *text) {
    struct text_line safe = text_fit(text ? text : "", TEXT_COLUMNS);
    bool formula = is_formula(safe.s);
    bool quoted = formula || safe.s[strcspn(safe.s, "\",")] || *safe.s == ' ';
    if (quoted) putchar('"');
    if (formula) putchar('\'');
    for (const char *c = safe.s; *c; c++) {
        if (*c == '"') putchar('"');
        putchar(*c);
    }
    if (quoted) putchar('"');
    putchar(',');
}

static void put_path(const char *path) { report_csv_put_text(path ? text_fit_path(path, TEXT_COLUMNS).s : ""); }

static void put_number(uint64_t number, char after) { printf("%" PRIu64 "%c", number, after); }

/* ---- writing rows */

static void put_stack(const struct report *report, const struct total *sum) {
    struct innermost_line line;
    char nameless[SYMBOL_NAMELESS];
    if (!innermost_caller(&line, report->image, report->symbols, sum->stack)) {
        report_csv_put_text(report_no_frames(report, sum->module));
        report_csv_put_text("");
        put_path(image_module(report->image, sum->module));
        fputs(",,", stdout);
        return;
    }
    report_csv_put_text(line.symbol->function ? line.symbol->function : symbol_nameless(line.frame, nameless));
    report_csv_put_text(line.frame->python ? "python" : "native");
    put_path(line.frame->module);
    put_path(line.symbol->file);
    if (line.symbol->line) printf("%" PRIu32, line.symbol->line);
    putchar(',');
}

static void put_owner(const struct report *report, uint32_t id) {
    char words[2048];
    report_csv_put_text(image_owner_words(report->image, id, words, sizeof words));
}

static void put_figures(const struct total *sum, double variance) {
    put_number(total_live_bytes(sum), ',');
    put_number(total_live_blocks(sum), ',');
    put_number(sum->peak_bytes, ',');
    put_number(sum->peak_blocks, ',');
    put_number(sum->alloc_bytes, ',');
    put_number(sum->alloc_blocks, ',');
    put_number(estimate_error(variance), '\r');
    putchar('\n');
}

static void put_site(const struct report *report, const struct listed_site *site, const char *memory) {
    struct total sum = report_site(report->image, site);
    const struct snap_tag *tag = image_tag(report->image, sum.tag);
    report_csv_put_text(memory);
    put_stack(report, &sum);
    put_owner(report, tag->model);
    put_owner(report, tag->node);
    put_owner(report, tag->run);
    put_figures(&sum, report_site_variance(report->image, site, MEASURE_LIVE));
}

/* One row for all sites that --top leaves out, so that the columns add up. */
static void report_csv_put_rest(const struct report *report, const struct listed_site *sites, size_t count,
                                const char *memory) {
    struct total rest = {0};
    double variance = 0;
    char name[64];
    uint64_t live_bytes = 0, live_blocks = 0;
    for (size_t i = 0; i < count; i++) {
        struct total sum = report_site(report->image, &sites[i]);
        live_bytes += total_live_bytes(&sum);
        live_blocks += total_live_blocks(&sum);
        rest.alloc_bytes += sum.alloc_bytes;
        rest.alloc_blocks += sum.alloc_blocks;
        rest.peak_bytes += sum.peak_bytes;
        rest.peak_blocks += sum.peak_blocks;
        variance += report_site_variance(report->image, &sites[i], MEASURE_LIVE);
    }
    rest.free_bytes = rest.alloc_bytes - live_bytes;
    rest.free_blocks = rest.alloc_blocks - live_blocks;
    snprintf(name, sizeof name, "(%zu more)", count);
    report_csv_put_text(memory);
    report_csv_put_text(name);
    fputs(",,,,,,,", stdout);
    put_figures(&rest, variance);
}

static int put_sites(const struct report *report, const char *memory) {
    size_t count;
    struct listed_site *sites = report_sites(report, false, &count);
    if (!sites) return -1;
    size_t shown = count < report->top ? count : report->top;
    for (size_t i = 0; i < shown; i++) put_site(report, &sites[i], memory);
    if (shown < count) report_csv_put_rest(report, sites + shown, count - shown, memory);
    free(sites);
    return 0;
}

static int put_devices(const struct report *report) {
    struct report devices = *report;
    struct image view = cuda_view(report->image);
    devices.image = &view;
    int result = view.totals ? put_sites(&devices, "device") : -1;
    cuda_view_end(&view);
    return result;
}

int report_csv(const struct report *report) {
    report_tell_estimates(report);
    fputs(header, stdout);
    int result = put_sites(report, "host");
    return result == 0 && report->image->cuda.used ? put_devices(report) : result;
}
