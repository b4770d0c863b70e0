/* html_page.h — a page: what stands around its data, and the file that it is written to.
 * In: a way to write the data, and a path. Out: one HTML file that needs nothing else. A file appears whole or not at
 * all. */
#ifndef MEMSTOW_HTML_PAGE_H
#define MEMSTOW_HTML_PAGE_H

#include "tools/html/html_out.h"

/* Writes the data; 0, or -1: no memory. */
typedef int html_data(struct html_out *out, void *context);

/* To the path, or to standard output where it is NULL. 0, or an exit code after complaining; standard output is for the
 * caller to finish. */
int html_page_write(const char *path, html_data *data, void *context);
/* "A page goes to a file": 0, or the exit code of wrong usage after complaining. */
int html_page_check(const char *command, const char *path);

#endif
