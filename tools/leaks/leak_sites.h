/* leak_sites.h — collects the figures by which leaks are found: for each site, what is left of each run's allocations,
 * and how its memory changed over time. A site is one call stack of one model and one node, for all runs together. A
 * reading is one image of the process; a point is a reading that is kept, or several such readings that were merged.
 * In: one image, or several images of one process in order of time. Out: sites, the memory that is left of each run's
 * allocations at each site, and the change of each site's memory at each point. Owners of two images are the same if
 * kind, name and origin are equal; stacks are the same if all frames are equal. */
#ifndef MEMSTOW_LEAK_SITES_H
#define MEMSTOW_LEAK_SITES_H

#include "tools/base/slots.h"
#include "tools/image/image.h"
#include "tools/leaks/leak_judge.h"

struct leak_name {
    char *name, *origin;
    uint32_t kind;  /* enum snap_owner_kind */
    uint32_t owner; /* id of an owner with this name in the newest image */
    bool kept;      /* an owner with this name has the policy `keep`, and is not retired */
};

struct leak_site {
    uint32_t model, node; /* ids of names; 0: none */
    uint32_t stack;       /* node in the tree of the newest image; 0: no stack was recorded */
    uint32_t module;      /* 1 + id in the newest image */
    uint64_t path;        /* hash of the stack's frames, the same in all images; CUDA memory has a path of its own */
    uint64_t line;        /* hash of the stack's Python frames and the class of memory; 0: no Python frames */
    uint32_t joined;      /* 1 + index of the site that has taken over this site's memory (leak_lines.h); 0: none */
    bool on_cuda;         /* memory of CUDA devices */
    /* set by leaks.c. verdict: on this site alone. in_rest: this site is no finding by itself, but part of a finding
     * for all such sites of its owner */
    enum leak_verdict verdict;
    bool in_rest;
    uint64_t live_bytes, live_blocks;
    uint64_t gone_bytes, gone_blocks; /* the part of the live memory that retired owners left behind */
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

/* A point: one reading, or several readings that were merged. The time, and the memory of all sites, are those of the
 * newest of these readings. */
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
    struct leak_entries left;  /* what is left of each run in the newest image; change.point is an index of `runs` */
    struct leak_entries moved; /* changes from point to point; change.point is an index of `points` */
    uint32_t *runs;            /* owner ids of the runs in the newest image that have ended */
    uint32_t run_count;
    struct leak_point points[LEAK_POINTS_MOST];
    uint32_t point_count, ended; /* ended: number of runs that had ended at the newest point */
    /* true: stacks are only sampled. In this case, a site has no stack: it has all memory of its model and node */
    bool sampled;
};

void leak_sites_begin(struct leak_sites *self);
void leak_sites_end(struct leak_sites *self);

/* Reads the memory of the image into the sites, except allocations of runs that have not ended. Returns 0, or -1: no
 * memory. */
int leak_sites_read(struct leak_sites *self, const struct image *image);
/* Adds a point with the figures that the latest leak_sites_read has read. If there are too many points or changes,
 * first merges the earlier points in pairs. Returns 0, or -1: no memory. */
int leak_sites_point(struct leak_sites *self, const struct image *image);
/* Sorts entries by site, then by point, and merges those with equal site and point. All sites are below `sites`, all
 * points below `points`. Returns 0, or -1: no memory. */
int leak_entries_sort(struct leak_entries *entries, size_t sites, uint32_t points);
/* The index of a site's first entry or, if the site has no entry, the index where it would be. */
size_t leak_entries_first(const struct leak_entries *entries, uint32_t site);
/* leak_path_of: the path (leak_site.path) of memory without a call stack, made from the name of the memory's module.
 * leak_path_on_cuda: the path of memory on CUDA devices, made from the path that host memory of the same stack has. */
uint64_t leak_path_of(const char *module);
uint64_t leak_path_on_cuda(uint64_t path);
/* Adds an entry at the end. Returns 0, or -1: no memory. */
int leak_entries_add(struct leak_entries *entries, uint32_t site, struct leak_change change);
/* Finds the site with these owners (ids of names) and this path, or makes it. NULL: no memory. */
struct leak_site *leak_sites_find(struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path);
/* Like leak_sites_find, but makes no site. If another site has taken over this site's memory, returns the other site.
 * NULL: there is no such site. */
struct leak_site *leak_sites_look(const struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path);
/* Whether the owner is a run that has ended. */
static inline bool leak_run_has_ended(const struct snap_owner *owner) {
    return owner->kind == SNAP_OWNER_RUN && owner->state == SNAP_OWNER_RETIRED;
}
/* Whether the owner is a retired model or custom owner that was not adopted. */
bool leak_owner_is_gone(const struct snap_owner *owner);
/* The id of the name of the owner with this id; 0: there is no such owner; UINT32_MAX: no memory. */
uint32_t leak_sites_name(struct leak_sites *self, const struct image *image, uint32_t id);
/* Merges points in pairs. Returns 0, or -1: no memory. */
int leak_sites_halve(struct leak_sites *self);

#endif
