/* suppressions.h — known growth, which does not count: a file with lines such as
 *
 *     function=json_cache_* module=libjson*.so  until=2027-03-31   # the cache is filled once
 *     owner=model:UNET*
 *
 * In: that file, which is not trusted; names of figures. Out: the line that suppresses a figure. All conditions of a
 * line must match. The globs of function and module must match the same frame of a call site's name. The glob of owner
 * must match kind:name or the name alone, each with or without the origin in brackets behind it. A line suppresses
 * nothing after the day in `until`. */
#ifndef MEMSTOW_SUPPRESSIONS_H
#define MEMSTOW_SUPPRESSIONS_H

#include "tools/symbols/figures.h"
#include "tools/base/scan.h"

struct suppression {
    char *function, *module, *owner; /* NULL: any */
    uint32_t until;                  /* 20270331; 0: no limit */
    uint32_t line;
    bool expired, used;
};

struct suppressions {
    struct suppression *list;
    size_t count;
};

/* `today`: the day as a number such as 20261122. Returns 0, or -1 with the reason in scan->error. */
int suppressions_read(struct suppressions *suppressions, struct scan *scan, uint32_t today);
void suppressions_end(struct suppressions *suppressions);
/* The current day in UTC, as 20261122. */
uint32_t suppressions_today(void);

/* Finds the first line that suppresses the figure, and marks it as used. Returns NULL if there is none. The total is
 * never suppressed. */
const struct suppression *suppressions_match(struct suppressions *suppressions, const struct figure *figure);

#endif
