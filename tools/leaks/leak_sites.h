/* leak_sites.h — the memory of each site, by run, and its changes from reading to reading.
 * In: one image, or several images of one process in order of time. Out: sites (model, node and call stack, for all
 * runs together), the memory that is left of each run's allocations at each site, and the changes at each reading.
 * Owners are matched by kind, name and origin; stacks by their frames. */
#ifndef MEMSTOW_LEAK_SITES_H
#define MEMSTOW_LEAK_SITES_H

#include "tools/base/slots.h"
#include "tools/image/image.h"
#include "tools/leaks/leak_judge.h"

struct leak_name {
    char *name, *origin;
    uint32_t kind;  /* enum snap_owner_kind */
    uint32_t owner; /* id of an owner with this name in the newest image */
    bool kept;      /* an owner with this name has the policy keep, and is not retired */
};

struct leak_site {
    uint32_t model, node; /* ids of names; 0: none */
    uint32_t stack;       /* node in the tree of the newest image; 0: no stack was recorded */
    uint32_t module;      /* 1 + id in the newest image */
    uint64_t path;        /* identifies the stack in any image; host and CUDA memory have different paths */
    uint64_t line;        /* identifies the stack's Python frames and the class of memory; 0: no Python */
    uint32_t joined;      /* 1 + index of the site that has this site's memory now; 0: none (leak_lines.h) */
    bool on_cuda;         /* memory of CUDA devices */
    /* set by leaks.c. verdict: the site's own; in_rest: the site is part of a finding for the rest of its owner's
     * sites */
    enum leak_verdict verdict;
    bool in_rest;
    uint64_t live_bytes, live_blocks;
    uint64_t gone_bytes, gone_blocks; /* the part that retired owners left behind */
    uint64_t last_bytes, last_blocks; /* what the site held at the newest point */
};

struct leak_entry {
    uint32_t site;
    struct leak_change change;
};
struct leak_entries {
    struct leak_entry *list;
    size_t count, capacity;
};

/* The figures of a reading. */
struct leak_point {
    uint32_t run;  /* owner id of the newest run that had ended at that time */
    uint32_t runs; /* runs that ended since the previous point */
    uint64_t taken_ns, live_bytes, live_blocks;
};
enum { LEAK_POINTS_MOST = 1024, LEAK_CHANGES_MOST = 1 << 21 };

struct leak_sites {
    struct leak_name **names;
    uint32_t name_count;
    size_t name_capacity;
    struct leak_name_slot *name_table;
    struct leak_site *list;
    size_t count, capacity;
    struct slots slots;        /* by model, node and path */
    struct leak_entries left;  /* memory left of runs, in the newest image: change.point is an index of `runs` */
    struct leak_entries moved; /* changes between points: change.point is an index of `points` */
    uint32_t *runs;            /* owner ids of the runs in the newest image that have ended */
    uint32_t run_count;
    struct leak_point points[LEAK_POINTS_MOST];
    uint32_t point_count, ended; /* ended: number of runs that had ended at the newest point */
    bool sampled;                /* stacks are samples: sites are then owners only, whose figures are exact */
};

void leak_sites_begin(struct leak_sites *self);
void leak_sites_end(struct leak_sites *self);

/* Reads the memory of the image, without allocations of runs that have not ended. Returns 0, or -1: no memory. */
int leak_sites_read(struct leak_sites *self, const struct image *image);
/* Makes a point of what leak_sites_read read last. If there are too many points or changes, merges points in pairs
 * before that. Returns 0, or -1: no memory. */
int leak_sites_point(struct leak_sites *self, const struct image *image);
/* Sorts entries by site, then by point, and merges those with equal site and point. Returns 0, or -1: no memory. */
int leak_entries_sort(struct leak_entries *entries, size_t sites, uint32_t points);
/* The index of a site's first entry, or where it would be. */
size_t leak_entries_first(const struct leak_entries *entries, uint32_t site);
/* leak_path_of: the path for memory without call stack, from the name of its module. leak_path_on_cuda: the path for
 * memory on CUDA devices, from the path of the same stack for host memory. */
uint64_t leak_path_of(const char *module);
uint64_t leak_path_on_cuda(uint64_t path);
/* Adds an entry at the end. Returns 0, or -1: no memory. */
int leak_entries_add(struct leak_entries *entries, uint32_t site, struct leak_change change);
/* The site with these names and that path, made if it is new. NULL: no memory. */
struct leak_site *leak_sites_find(struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path);
/* Like leak_sites_find, but makes no site. If the site is joined to another one, returns the other. NULL: there is
 * none. */
struct leak_site *leak_sites_look(const struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path);
/* Whether the owner is a retired model or custom owner that was not adopted. */
bool leak_owner_is_gone(const struct snap_owner *owner);
/* The id of an owner's name; 0 for no owner; UINT32_MAX: no memory. */
uint32_t leak_sites_name(struct leak_sites *self, const struct image *image, uint32_t id);
/* Merges points in pairs. Returns 0, or -1: no memory. */
int leak_sites_halve(struct leak_sites *self);

#endif
