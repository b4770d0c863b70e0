/* report.h — the two faces of a report; cmd_report.c chooses.
 * In: an image, its split of resident memory, and what was asked for. Out: text or JSON on stdout. */
#ifndef MEMSTOW_REPORT_H
#define MEMSTOW_REPORT_H

#include "groups.h"
#include "image.h"
#include "resident.h"
#include "subject.h"
#include "text.h"

struct report {
    const struct image *image;
    const struct subject *subject;
    struct resident resident;
    enum view view;
    size_t top; /* rows of a list; SIZE_MAX: all */
};

int report_text(const struct report *report); /* 0, or -1: no memory */
int report_json(const struct report *report);
/* The column "at peak" of the text, where there is one, and what it shows. */
bool report_has_peak_column(const struct report *report);
struct text report_peak_label(const struct image *image);
void report_text_peak(const struct report *report);
/* What those of the rows mean that are no thread. */
void report_text_thread_notes(const struct groups *groups, size_t shown);
void report_text_residency(const struct report *report); /* the part of the text that tells where the RSS is */

/* Rows that both list: large blocks and mappings, the biggest first. */
struct listed {
    uint64_t address, size, birth_ns, resident;
    uint32_t site, thread;
    const struct snap_mapping *mapping; /* NULL for a large block */
};
struct listed *report_listed(const struct image *image, bool large, bool mappings, size_t *count);

/* "exited", "still running" … */
const char *report_state(const struct image *image);
const char *mapping_kind_name(uint32_t kind);
uint64_t age_ns(const struct image *image, uint64_t birth_ns);

#endif
