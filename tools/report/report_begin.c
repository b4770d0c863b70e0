/* report_begin.c — reads, from a file or process, the data that every report needs; see report.h. */
#include "tools/views/at_peak.h"
#include "tools/views/estimate.h"
#include "tools/reader/nvml_image.h"
#include "tools/report/report.h"

int report_begin(struct report *report, struct subject *subject) {
    report->image = &subject->image;
    report->subject = subject;
    int result = nvml_image_ask(&subject->image, subject->pid);
    at_peak_choose(&subject->image);
    if (result == 0) result = resident_split(&report->resident, &subject->image);
    if (result == 0) result = estimate_stacks(&subject->image);
    if (result == 0) report->symbols = symbols_begin(report->image, subject->pid);
    return report->symbols ? 0 : -1;
}

void report_end(struct report *report) {
    symbols_end(report->symbols);
    resident_clear(&report->resident);
    report->symbols = NULL;
}
