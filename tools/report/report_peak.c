/* report_peak.c — the sentence that says which peak the column "at peak" shows; see report.h. */
#include "tools/views/at_peak.h"
#include "tools/report/report.h"
#include "tools/base/text.h"

#include <stdio.h>

/* Whether the text has figures of the peak. */
static bool has_peak_figures(const struct report *report) {
    enum view view;
    bool table = report_shows_table(report, &view) && view != BY_THREAD;
    if (!report->image->has_picture || report->measure == MEASURE_ALLOCATED) return false;
    return table || (report->measure == MEASURE_PEAK && report_shows_stacks(report));
}

void report_text_peak(const struct report *report) {
    char text[256], sentence[320];
    if (!has_peak_figures(report)) return;
    at_peak_words(report->image, text, sizeof text);
    snprintf(sentence, sizeof sentence, "The column \"%s\" shows %s", report_peak_label(report->image).s, text);
    putchar('\n');
    text_wrap(stdout, sentence, 0, 0);
}
