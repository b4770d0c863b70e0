/* leaks_tab.h — the view of leaks on the pages of `memstow report --html` and `memstow leaks --html`.
 * In: the images of a process, the oldest first. Out: the document that `memstow leaks --json` prints for them. A
 * process without runs has no document, unless there are several images or the readings of a series. */
#ifndef MEMSTOW_LEAKS_TAB_H
#define MEMSTOW_LEAKS_TAB_H

#include "tools/leaks/leaks.h"
#include "tools/report/report.h"
#include "tools/subject/subject.h"

struct leaks_tab {
    struct leak_sites sites;
    bool begun;
    struct report_tab tab;
};

/* Reads an image, which must not have been changed by a report. several: more than one image will be read. Returns 0,
 * or -1: no memory. */
int leaks_tab_read(struct leaks_tab *self, const struct image *image, bool several);
/* Finds the leaks in the last image that was read, and sets *tab to their document, which `self` owns. Sets *tab to
 * NULL if there is no document. Returns 0, or -1: no memory. */
int leaks_tab_write(struct leaks_tab *self, const struct subject *subject, const struct report_tab **tab);
void leaks_tab_end(struct leaks_tab *self);

/* Makes the document of leaks that were found. The caller frees tab->text. Returns 0, or -1: no memory. */
int leaks_tab_make(struct report_tab *tab, const struct leaks *leaks, const struct leaks_view *view);

#endif
