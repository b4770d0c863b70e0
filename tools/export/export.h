/* export.h — a report in the forms that other programs read; docs/formats.md says which program shows what.
 * In: an image and options. Out: the form on standard output, and on standard error what it leaves out. Names from a
 * file never break a form. The functions return 0, or -1: no memory. */
#ifndef MEMSTOW_EXPORT_H
#define MEMSTOW_EXPORT_H

#include "tools/report/report.h"

int report_folded(const struct report *report);
int report_pprof(const struct report *report);
int report_speedscope(const struct report *report);
int report_csv(const struct report *report);

#endif
