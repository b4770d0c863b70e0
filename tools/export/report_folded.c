/* report_folded.c — the stacks of a report for flame graph programs; see export.h.
 * In: a report. Out: one line for each stack, and on standard error a note of merged stacks. */
#include "tools/export/export.h"
#include "tools/export/folded.h"
#include "tools/export/report_profile.h"

int report_folded(const struct report *report) {
    struct roots roots;
    struct folded folded;
    int result = roots_make(&roots, report);
    folded_begin(&folded, false);
    if (result == 0) report_tell_estimates(report);
    if (result == 0) result = report_profile(report, &roots, &folded.sink, "");
    folded_end(&folded);
    roots_clear(&roots);
    return result;
}
