/* leaks.h — finds in a process: leaks, growth that only looks like a leak, memory that retired owners left, and the
 * Python objects that hold memory.
 * In: sites (leak_sites.h), and the image from which they were last read. Out: findings, one for each cause, the
 * largest loss first. leaks_text.c and leaks_json.c print them. docs/leaks-rules.md explains the rules. */
#ifndef MEMSTOW_LEAKS_H
#define MEMSTOW_LEAKS_H

#include "preload/shared/jsontext.h"
#include "tools/leaks/leak_sites.h"
#include "tools/symbols/symbols.h"

#include <stdio.h>

enum { LEAKS_STACKS = 3, LEAK_NO_SITE = UINT32_MAX };

/* A holder: the variable, class or function of a Python program that keeps memory, as a line HELD of the trace names
 * it. pack: the package whose code it is. held_at: the name of the variable, class or function. other_places: an array
 * of other places that keep some of the memory, and are as likely to be at fault. holders: the objects that keep the
 * memory. A text of length 0 is missing. */
struct leak_holder {
    uint32_t site; /* the site with the held memory; LEAK_NO_SITE: `name` or `path` says whose memory it is */
    uint32_t name; /* id of the name of the owner that left the memory; 0: none */
    uint64_t path; /* set if no Python object was found for the blocks of a call stack: that stack's path; 0: none */
    struct jsontext pack, held_at, other_places, holders;
    /* blocks: number of blocks that Python objects own. followed: number of these whose holders were looked for. held:
     * number of the followed blocks that this holder keeps. */
    uint64_t blocks, followed, held;
};

/* A growing site, or the rest of an owner: sites that are no findings by themselves, but grow in sum. Findings of one
 * cause are merged into one finding. The merged finding has the sums of their figures, and the site, owner and evidence
 * of the finding that grows most. */
struct leak_finding {
    uint32_t site;        /* LEAK_NO_SITE: the rest of an owner */
    uint32_t stacks;      /* number of growing stacks */
    uint32_t example;     /* the site whose stack is shown; for a rest, its site where runs left most memory.
                           * LEAK_NO_SITE: none */
    uint32_t model, node; /* ids of names; 0: none */
    uint64_t live_bytes, live_blocks;
    uint32_t oldest, newest; /* indices of the first and last run that left memory; UINT32_MAX: none */
    bool by_readings;        /* judged by readings, not by what is left of each run */
    bool is_retired;         /* a retired owner left some of the memory */
    struct leak_judgement judged;
    uint64_t key;                     /* findings of one cause have the same key (leaks_groups.c) */
    const struct leak_holder *holder; /* NULL: not known */
    size_t first_part, part_count;    /* the findings that were merged into this one, in leaks.parts */
};

/* Retired owners of one name that still have memory. */
struct leak_retired {
    uint32_t name, owners;
    uint64_t live_bytes, live_blocks, allocated_bytes;
    /* the memory of these owners, without owners that were retired just now */
    uint64_t old_live_bytes, old_allocated_bytes;
    uint32_t runs_since; /* runs that ended after the first of these owners was retired */
    bool is_leak;        /* false: they left little, or were retired just now */
    /* findings report these owners already: nearly all of the owners' live memory is in findings, or findings name all
     * places that hold the remaining memory */
    bool is_told;
    bool is_same;                     /* an entry before this one has the same holder: the two count as one leak */
    uint64_t rest_bytes, rest_blocks; /* the live memory that is in no finding */
    uint32_t rest_site;               /* the site that allocated most of rest_bytes, or LEAK_NO_SITE */
    const struct leak_holder *holder; /* the holder of most of rest_bytes; NULL: not known */
    const struct leak_holder *other;  /* another holder that the program has named for the owner; NULL: none */
    struct leak_stack {
        uint32_t stack, module;
        uint64_t path, live_bytes, live_blocks;
    } stacks[LEAKS_STACKS]; /* the stacks that allocated most of the live memory */
    uint32_t stack_count;
};

/* The sums over the sites with one verdict, without sites that are part of a leak. */
struct leak_rest {
    uint64_t sites, live_bytes;
};

struct leaks {
    const struct image *image;
    struct leak_sites *sites;
    uint64_t floor;
    struct leak_rule left_rule, moved_rule;
    uint32_t uncollected; /* runs that ended since Python's last full garbage collection; 0 also if that is not known */
    uint32_t runs_of[LEAK_POINTS_MOST]; /* moved_rule.runs points here */
    /* findings for sites and owners; after leaks_group, one for each cause. The largest loss comes first */
    struct leak_finding *list;
    size_t count, capacity;
    struct leak_finding *parts; /* the findings that were merged, cause by cause */
    size_t part_count;
    struct leak_retired *retired; /* leaks first */
    size_t retired_count, retired_leaks;
    uint64_t *run_ends; /* the times when runs ended, in order */
    /* first the holders for sites, sorted by site; then those for retired owners, sorted by name; then those for call
     * stacks for whose blocks no Python object was found */
    struct leak_holder *holders;
    size_t holder_count;
    struct leak_rest rest[LEAK_VERDICTS];
    uint64_t doubtful;         /* memory of sites that grew in too few runs for a verdict, or too unevenly */
    struct leak_finding *kept; /* growing sites whose owner has the policy `keep`: they do not leak */
    size_t kept_count, kept_capacity;
    uint64_t retained; /* bytes that the process freed and its allocator keeps; 0: none, or not measured */
    bool measured;     /* resident memory was measured, so `retained` is known */
};

enum { LEAKS_FLOOR = 1024 };

/* Finds the leaks: memory that grows by at least `floor` bytes a run. The image and the sites must outlive the result.
 * Returns 0, or -1: no memory. */
int leaks_find(struct leaks *self, struct leak_sites *sites, const struct image *image, uint64_t floor);
/* Merges the findings of one cause. Findings have one cause if one holder has their memory or, where no holder is
 * known, if one owner allocated it at one line of Python. If `symbols` is not NULL, also leaves out memory that grows
 * with the number of threads. Returns 0, or -1: no memory. */
int leaks_group(struct leaks *self, struct symbols *symbols);
void leaks_clear(struct leaks *self);
/* The number of leaks: causes, and retired owners that leak and are not reported with a cause. */
size_t leaks_total(const struct leaks *self);

enum leaks_verdict { LEAKS_NONE, LEAKS_FOUND, LEAKS_CANNOT_TELL };
enum leaks_verdict leaks_verdict(const struct leaks *self);
/* The reason why no verdict is possible, and advice to the user. Both are "" if a verdict is possible. */
struct leaks_doubt {
    char why[96], advice[80];
};
struct leaks_doubt leaks_doubt(const struct leaks *self);
/* Whether some runs were not judged, because what they left may be Python's garbage. */
bool leaks_has_garbage(const struct leaks *self);

/* --- shared by leaks.c, leaks_retired.c, leaks_holders.c and leaks_groups.c --- */

/* The number of runs that ended after `when`, by CLOCK_MONOTONIC. */
uint32_t leaks_runs_since(const struct leaks *self, uint64_t when);
/* Two steps of leaks_find. They fill in `holders` and `retired`. Each returns 0, or -1: no memory. */
int leaks_find_holders(struct leaks *self);
int leaks_find_retired(struct leaks *self);
/* Whether the memory that a retired owner left is more than a small remainder of its allocations. */
bool leaks_is_too_much(uint64_t live, uint64_t allocated);
/* leaks_holder_of_site: the holder from the newest HELD line about the site. If there is no such line, the holder from
 * the newest line about the site's call stack (leak_holder.path).
 * leaks_holder_of_owner: the holder from the newest HELD line about owners that are called `name`. A line whose holder
 * is an object without a name is used only if there is no other line about these owners.
 * Both return NULL if there is no line. */
const struct leak_holder *leaks_holder_of_site(const struct leaks *self, uint32_t site);
const struct leak_holder *leaks_holder_of_owner(const struct leaks *self, uint32_t name);
/* Whether `a` and `b` have the same pack and held_at. False if one is NULL or has no held_at. */
bool leaks_same_holder(const struct leak_holder *a, const struct leak_holder *b);
/* Each call gets one more place of a holder's other_places. Of *place, only pack and held_at are set. Before the first
 * call, set *next to 0. False: there are no more. */
bool leaks_next_place(const struct leak_holder *holder, size_t *next, struct leak_holder *place);
/* Whether the site is one of the sites in `rest`, which is a finding for the rest of an owner. */
bool leaks_is_in_rest(const struct leak_site *site, const struct leak_finding *rest);
/* For qsort: the finding that grows fastest comes first. */
int leaks_by_growth(const void *left, const void *right);

struct leaks_ask_stack;
/* Lists call stacks of findings and of retired owners. Leaves out stacks if the holders of their memory were looked for
 * already. The stacks of the largest finding come first; stacks with the same path stand side by side. The caller frees
 * the list. Returns 0, or -1: no memory. */
int leaks_unknown(const struct leaks *self, struct leaks_ask_stack **stacks, size_t *count);
/* The owner id of the last run that was judged. Blocks of later runs may be in use, so memstow does not ask what holds
 * them. 0: memstow asks about blocks of all runs, because a finding was judged by readings, or no run was judged. */
uint32_t leaks_last_judged(const struct leaks *self);

/* The printable name of the run with that index. */
const char *leaks_run(const struct leaks *self, uint32_t index);

/* Whether destructors and exit handlers of the process have run: they may have freed leaked memory. */
bool leaks_ended_in_order(const struct leaks *self);

/* Whether texts speak of runs (true) or, because no run ended between the readings, of readings (false). */
bool leaks_by_runs(const struct leaks *self);

struct leaks_view {
    size_t top;   /* number of findings that are shown */
    bool can_ask; /* the program is able to name the holders of memory, but was not asked */
    struct symbols *symbols;
};
void leaks_text(const struct leaks *self, const struct leaks_view *view);
void leaks_json(const struct leaks *self, const struct leaks_view *view, FILE *to);

#endif
