/* suppressions.h — growth that is known, and does not count: a file of lines such as
 *
 *     function=json_cache_* module=libjson*.so  until=2027-03-31   # the cache is filled once
 *     owner=model:UNET*
 *
 * In: that file, of which nothing is believed; names of figures. Out: the line that suppresses one. Globs of function
 * and module are of one and the same frame among those that name a call site; that of owner is of kind:name, or of the
 * name alone. All that a line says has to match. After the day that it gives, a line suppresses nothing any more. */
#ifndef MEMSTOW_SUPPRESSIONS_H
#define MEMSTOW_SUPPRESSIONS_H

#include "tools/symbols/figures.h"
#include "tools/base/scan.h"

struct suppression {
    char *function, *module, *owner; /* NULL: any */
    uint32_t until;                  /* 20270331; 0: for good */
    uint32_t line;
    bool expired, used;
};

struct suppressions {
    struct suppression *list;
    size_t count;
};

/* today: 20261122. 0, or -1 and why in scan->error. */
int suppressions_read(struct suppressions *suppressions, struct scan *scan, uint32_t today);
void suppressions_end(struct suppressions *suppressions);
/* The day by UTC, as above. */
uint32_t suppressions_today(void);

/* The first line that suppresses the figure, which is then used; or NULL. The total never is. */
const struct suppression *suppressions_match(struct suppressions *suppressions, const struct figure *figure);

#endif
