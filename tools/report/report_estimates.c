/* report_estimates.c — prints the note that call stacks are estimates; see report.h. */
#include "tools/base/complain.h"
#include "tools/views/estimate.h"
#include "tools/report/report.h"
#include "tools/base/text.h"

#include <stdio.h>

enum { WORDS = 512 };

void report_text_estimates(const struct report *report) {
    char words[WORDS];
    enum view view;
    bool table = report_shows_table(report, &view);
    if (!report->image->variances || (table && view == BY_THREAD)) return;
    estimate_words(report->image, report->measure, words, sizeof words);
    putchar('\n');
    text_wrap(stdout, words, 0, 0);
}

void report_tell_estimates(const struct report *report) {
    char words[WORDS];
    if (!report->image->variances) return;
    estimate_words(report->image, report->measure, words, sizeof words);
    complain("%s", words);
}
