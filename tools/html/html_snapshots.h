/* html_snapshots.h — what several snapshots of a process know, for the page of the last one.
 * In: reports of snapshots of one process, in order of time; or one report of a series (series.h). Out: the document
 * "snapshots": when each snapshot was taken, and the memory of owners and sites in it. The document's size is bounded:
 * it has the owners and sites that held or changed most, and the number of all others.
 * Owners of two snapshots are the same if their ids are equal; call stacks are the same if their frames are equal. */
#ifndef MEMSTOW_HTML_SNAPSHOTS_H
#define MEMSTOW_HTML_SNAPSHOTS_H

#include "tools/html/html_out.h"
#include "tools/html/html_track.h"
#include "tools/report/report.h"

enum { HTML_SNAPSHOTS_MOST = 100 };

struct html_snapshots {
    struct html_snapshot {
        uint64_t taken_ns, live_bytes[2]; /* of the host, of devices */
        char name[304];                   /* the argument of the command, cut to fit */
    } list[HTML_SNAPSHOTS_MOST];
    size_t count;
    struct groups groups[2];               /* rows by site: of the host, of devices */
    uint8_t *seen[2];                      /* by row: whether the latest snapshot has it */
    struct html_track sites[2], owners[2]; /* items: rows; numbers of owners */
    struct html_owner_number *numbers;     /* a hash table by id */
    size_t owner_count;
};

/* Adds the next snapshot. There may be at most HTML_SNAPSHOTS_MOST. Returns 0, or -1: no memory. */
int html_snapshots_add(struct html_snapshots *self, const struct report *report);
void html_snapshots_end(struct html_snapshots *self);

/* Writes the document. `report` is the report that was added last. Returns 0, or -1 if there is no memory. */
int html_snapshots_write(struct html_snapshots *self, const struct report *report, struct html_out *out);
/* Writes the document from the readings of a report's series. The document then has no owners, and has only those sites
 * that hold something in the file itself. Returns 0; -1: no memory; -2: the series is damaged. */
int html_snapshots_write_series(const struct report *report, struct html_out *out);

#endif
