/* report_match.c — how much memory --match leaves in a report; see report.h. */
#include "tools/base/complain.h"
#include "tools/report/report.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = sizeof(struct text_line) + 200 };

struct matched {
    uint64_t bytes, blocks, of_bytes;
};

static struct matched add_up(const struct report *report) {
    const struct image *image = report->image;
    struct matched sum = {0};
    for (size_t i = 0; i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (total->flags & (TOTAL_INHERITED | TOTAL_REMAINDER)) continue;
        sum.of_bytes += total_measure(total, report->measure);
        if (!report_keeps(report, total)) continue;
        sum.bytes += total_measure(total, report->measure);
        sum.blocks += total_measure_blocks(total, report->measure);
    }
    return sum;
}

static void match_nothing(const struct report *report, char *text) {
    snprintf(text, WORDS - 1, "nothing matches \"%s\": %s", text_fit(report->match, 100).s,
             image_has_stacks(report->image)
                 ? "no call stack with memory has this text in a function, a file or a module"
                 : "there are no call stacks in this file");
}

bool report_text_match(const struct report *report) {
    struct matched sum = add_up(report);
    char text[WORDS];
    if (!report->match) return true;
    putchar('\n');
    if (!sum.bytes && !sum.blocks) {
        match_nothing(report, text);
        text[0] = 'N';
        strcat(text, ".");
        text_wrap(stdout, text, 0, 0);
        return false;
    }
    snprintf(text, sizeof text, "Call stacks with \"%s\" hold %s in %s, %.1f %% of what is %s.",
             text_fit(report->match, 100).s, text_size(sum.bytes).s, text_block_count(sum.blocks).s,
             sum.of_bytes ? 100.0 * (double)sum.bytes / (double)sum.of_bytes : 0.0, report_measure_words(report).s);
    text_wrap(stdout, text, 0, 0);
    return true;
}

void report_tell_match(const struct report *report) {
    struct matched sum = add_up(report);
    char text[WORDS];
    if (!report->match || sum.bytes || sum.blocks) return;
    match_nothing(report, text);
    complain("%s", text);
}
