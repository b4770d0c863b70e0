/* export.h — a report in the forms that other programs read; docs/formats.md says which program reads which form.
 * In: an image and options. Out: the form on standard output, and on standard error a note of the parts that it leaves
 * out. Names from a file cannot break the syntax of a form. The functions return 0, -1 (no memory), or what is said
 * below. */
#ifndef MEMSTOW_EXPORT_H
#define MEMSTOW_EXPORT_H

#include "tools/report/report.h"

int report_folded(const struct report *report);
int report_pprof(const struct report *report);
int report_speedscope(const struct report *report);
int report_csv(const struct report *report);
/* Writes the memory over time that one file knows of, as snapshots. What massif calls a snapshot is the memory at one
 * time. report->massif has what is remembered of the earlier files of the process (struct massif, below). If the file
 * is damaged, prints an error message and returns EXIT_UNREADABLE. */
int report_massif(const struct report *report);
/* Writes the counters of one file; for the last file, also its history, slices and instants. If the file is damaged,
 * prints an error message and returns EXIT_UNREADABLE. */
int report_perfetto(const struct report *report);

/* What report_massif remembers from one file of a process to the next. The files come in order of time. The caller sets
 * all to 0 before the first file. */
struct massif {
    size_t snapshots;
    uint64_t start_ns, last_ns, peak_bytes; /* last_ns: time of the last snapshot, counted from start_ns */
};

#endif
