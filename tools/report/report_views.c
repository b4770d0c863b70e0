/* report_views.c — chooses the parts of a report in text, and the names of their figures; see report.h. */
#include "tools/views/at_peak.h"
#include "tools/report/report.h"

#include <stdio.h>

bool report_shows_stacks(const struct report *report) {
    return (!report->view_given || report->view == BY_SITE) && image_has_stacks(report->image);
}

bool report_shows_table(const struct report *report, enum view *view) {
    bool stacks = report_shows_stacks(report), owners = image_has_tags(report->image);
    *view = report->view_given ? report->view : owners ? BY_MODEL : BY_MODULE;
    return !stacks || (!report->view_given && owners);
}

struct text report_peak_label(const struct image *image) {
    struct text label = {"at peak"};
    if (!at_peak_of_highest(image))
        snprintf(label.s, sizeof label.s, "at %.20s", text_size(image->header.picture_bytes).s);
    return label;
}

struct text report_measure_words(const struct report *report) {
    if (report->measure == MEASURE_PEAK) return report_peak_label(report->image);
    if (report->measure == MEASURE_ALLOCATED) return (struct text){"allocated"};
    return (struct text){"live"};
}

const char *report_text_nothing(enum measure measure) {
    if (measure == MEASURE_PEAK) return "  nothing is known of the peak";
    return measure == MEASURE_ALLOCATED ? "  nothing was allocated" : "  nothing is live";
}

void report_text_view(const struct report *report, enum view view) {
    if (report->match && view != BY_THREAD)
        text_heading("By %s, of call stacks with \"%s\"", groups_view_name(view), text_fit(report->match, 40).s);
    else
        text_heading("By %s", groups_view_name(view));
}
