/* grouping.h — turns sites into the rows of a view: by model, node, run, site, module or thread.
 * In: looks at a process. Out: rows with their figures, exact as of the last look; and which rows a focus or a search
 * keeps. */
#ifndef MEMSTOW_TOP_GROUPING_H
#define MEMSTOW_TOP_GROUPING_H

#include "tools/top/rows.h"
#include "tools/top/sampling.h"
#include "tools/views/groups.h"

/* A focus keeps only the sites of one owner or module. */
struct focus {
    bool on;
    enum view view;
    uint64_t key; /* key of the owner's or module's row in that view */
};

struct grouping {
    enum view view;
    struct rows rows;
    struct focus focus;
    uint64_t turns;   /* how often the rows were made anew */
    uint32_t *row_of; /* by site: 1 + row; 0: not known yet */
    size_t row_of_capacity;
    uint32_t *tags; /* by tag: the first tag with the same owners */
    size_t tag_count;
    uint32_t *modules; /* by module number: the first module with the same path */
    size_t module_count;
};

void grouping_begin(struct grouping *grouping, enum view view);
void grouping_end(struct grouping *grouping);
/* Brings the rows up to date after a look. Returns 0, or -1: no memory. */
int grouping_take(struct grouping *grouping, const struct sampling *sampling);
/* Groups the same look by another view, or for another focus. Returns 0, or -1: no memory. */
int grouping_turn(struct grouping *grouping, const struct sampling *sampling, enum view view);

/* What the key of a row consists of, which depends on the view. */
/* In the views by model, node and run: the id of the owner; 0: untagged memory. */
uint32_t grouping_owner(uint64_t key);
/* For the view by site. grouping_tag returns the tag of the row. grouping_stack returns its call stack, or 0 if it has
 * none. */
uint32_t grouping_tag(uint64_t key), grouping_stack(uint64_t key);
/* For the views by module and by site. Returns 1 + the id of the row's module, or 0 if the row has no module. In the
 * view by site, only the row of a site without a stack has a module. */
uint32_t grouping_module(enum view view, uint64_t key);

#endif
