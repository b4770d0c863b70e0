/* report_peak.c — the column "at peak", and the sentence that says how true it is; see report.h. */
#include "at_peak.h"
#include "report.h"
#include "text.h"

#include <stdio.h>

bool report_shows_peak(const struct report *report) {
    enum view view;
    bool table = report_shows_table(report, &view) && view != BY_THREAD;
    if (!report->image->has_picture || report->measure == MEASURE_ALLOCATED) return false;
    return table || (report->measure == MEASURE_PEAK && report_shows_stacks(report));
}

struct text report_peak_label(const struct image *image) {
    struct text label = {"at peak"};
    if (!at_peak_of_highest(image))
        snprintf(label.s, sizeof label.s, "at %.20s", text_size(image->header.picture_bytes).s);
    return label;
}

static const char *live_when(const struct image *image) {
    if (image->header.kind == SNAP_SNAPSHOT) return "when this snapshot was taken";
    return image->running ? "now" : "at the end";
}

void report_text_peak(const struct report *report) {
    const struct image *image = report->image;
    const struct snap_header *header = &image->header;
    if (!report_shows_peak(report)) return;
    int64_t off = at_peak_distance(image);
    struct text distance = text_size((uint64_t)(off < 0 ? -off : off));
    uint64_t after = header->picture_ns > header->start_ns ? header->picture_ns - header->start_ns : 0;
    if (image->picture_is_live)
        printf("\nThe column \"at peak\" shows what was live %s: no picture of the ledger\nis nearer to the peak. "
               "It is %s off.\n",
               live_when(image), distance.s);
    else if (at_peak_of_highest(image))
        printf("\nThe column \"at peak\" shows the ledger at %s, %s after the start,\n%s off the peak.\n",
               text_size(header->picture_bytes).s, text_duration(after).s, distance.s);
    else
        printf("\nThe column \"%s\" shows the ledger %s after the start. The peak came\nlater and was %s higher: there "
               "is no picture of it.\n",
               report_peak_label(image).s, text_duration(after).s, distance.s);
}
