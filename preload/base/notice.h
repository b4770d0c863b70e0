/* notice.h — a line for people on standard error.
 * In: texts and numbers. Out: one line, which begins with "memstow: " and is cut where it is too long. libc's formatted
 * output may allocate, so it is not used. */
#ifndef MEMSTOW_NOTICE_H
#define MEMSTOW_NOTICE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { NOTICE_MOST = 1024 };

struct notice {
    size_t used;
    char text[NOTICE_MOST];
};

void notice_begin(struct notice *self);
void notice_put(struct notice *self, const char *text);
void notice_number(struct notice *self, uint64_t number);
/* Ends the line and writes it. In these cases, writes nothing:
 * - The process is in a sandbox.
 * - Nobody reads what is written to descriptor 2.
 * - Descriptor 2 is another file than when this library was loaded, and that file is no log. A file that is opened to
 *   append counts as a log. */
void notice_write(struct notice *self);

#pragma GCC visibility pop

#endif
