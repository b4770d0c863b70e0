/* html_page.h — writes a page into a file: the page's data, and the script, the style and the HTML around the data.
 * In: a function that writes the data, and a path. Out: one HTML file that needs no other file. If `path` is a
 * regular file, or does not exist yet, the page appears there whole or not at all. */
#ifndef MEMSTOW_HTML_PAGE_H
#define MEMSTOW_HTML_PAGE_H

#include "tools/html/html_out.h"

/* A function that writes the data of a page. It returns 0, or -1: no memory. */
typedef int html_data(struct html_out *out, void *context);

enum {
    HTML_PAGE_MOST = 5000000, /* bytes of a page, at most */
    HTML_ABOUT_MOST = 20000,  /* bytes of the document "page" at most; it is written last */
};
/* How many bytes of a page are not data: the script, the style, and the parts around them. */
size_t html_page_parts(void);
/* Writes data into memory. The caller frees *text, whatever the result is. Returns 0, or -1: no memory. */
int html_page_pack(char **text, size_t *size, html_data *data, void *context);

/* Writes a page to `path`. If `path` is NULL, writes to standard output, which the caller then finishes. Returns 0, or
 * an exit code after an error message. */
int html_page_write(const char *path, html_data *data, void *context);
/* Refuses an empty path, and a terminal as standard output. Returns 0, or the exit code of wrong usage after an error
 * message. */
int html_page_check(const char *command, const char *path);

#endif
