/* leak_sites.h — what each site holds, of which run, and how that changed from reading to reading.
 * In: one image, or several of one process in the order in which they were taken. Out: sites (model, node and call
 * stack, whatever the run), what is left at each of what each run allocated, and what each reading changed. Owners are
 * matched by kind, name and origin, stacks by what their frames are. */
#ifndef MEMSTOW_LEAK_SITES_H
#define MEMSTOW_LEAK_SITES_H

#include "tools/image/image.h"
#include "tools/leaks/leak_judge.h"

struct leak_name {
    char *name, *origin;
    uint32_t kind;  /* enum snap_owner_kind */
    uint32_t owner; /* one of the last image that is called so */
    bool kept;      /* one that is not retired has the policy keep */
};

struct leak_site {
    uint32_t model, node; /* names; 0: none */
    uint32_t stack;       /* of the last image; 0: none was recorded */
    uint32_t module;      /* 1 + id, the same */
    uint64_t path;        /* what the stack is, in any image; one of host memory is another than one of CUDA's */
    bool on_cuda;         /* memory of CUDA devices */
    uint64_t live_bytes, live_blocks;
    uint64_t gone_bytes, gone_blocks; /* of them, what retired owners left behind */
    uint64_t last_bytes, last_blocks; /* at the last point */
};

struct leak_entry {
    uint32_t site;
    struct leak_change change;
};
struct leak_entries {
    struct leak_entry *list;
    size_t count, room;
};

/* A reading. */
struct leak_point {
    uint32_t run;  /* owner id of the last run that had ended */
    uint32_t runs; /* that ended since the point before */
    uint64_t taken_ns, live_bytes, live_blocks;
};
enum { LEAK_POINTS_MOST = 1024, LEAK_CHANGES_MOST = 1 << 21 };

struct leak_sites {
    struct leak_name **names;
    uint32_t name_count, name_room;
    struct leak_name_slot *name_table;
    struct leak_site *list;
    size_t count, room, slot_count;
    uint32_t *slots;           /* open addressing: 1 + site */
    struct leak_entries left;  /* of the last image: change.point is an index of `runs` */
    struct leak_entries moved; /* between points: change.point is an index of `points` */
    uint32_t *runs;            /* owner ids of the last image's runs that have ended */
    uint32_t run_count;
    struct leak_point points[LEAK_POINTS_MOST];
    uint32_t point_count, ended; /* runs that had ended at the last point */
    bool sampled;                /* stacks are samples: sites are owners only, which are exact */
};

void leak_sites_begin(struct leak_sites *self);
void leak_sites_end(struct leak_sites *self);

/* What the image holds now. What the run that is on has allocated is left out. 0, or -1: no memory. */
int leak_sites_read(struct leak_sites *self, const struct image *image);
/* Makes a point of what was read last: of many points and changes two become one. 0, or -1. */
int leak_sites_point(struct leak_sites *self, const struct image *image);
/* In the order of sites, then points; one of each. 0, or -1. */
int leak_entries_sort(struct leak_entries *entries, size_t sites, uint32_t points);
/* The first of a site, or where it would be. */
size_t leak_entries_first(const struct leak_entries *entries, uint32_t site);
/* The path of what has no call stack, by the name of its module; that of memory on CUDA devices for it. */
uint64_t leak_path_of(const char *module);
uint64_t leak_path_on_cuda(uint64_t path);
int leak_entries_add(struct leak_entries *entries, uint32_t site, struct leak_change change);
/* The site of these names and that path, made if there is none. NULL: no memory. */
struct leak_site *leak_sites_find(struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path);
/* The same, not made: NULL. */
struct leak_site *leak_sites_look(const struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path);
/* Whether it is a model or custom that is retired, and whose memory is still its own. */
bool leak_owner_is_gone(const struct snap_owner *owner);
/* The name of an owner of the image, or 0; UINT32_MAX: no memory. */
uint32_t leak_sites_name(struct leak_sites *self, const struct image *image, uint32_t owner);
/* Two points become one, each. 0, or -1. */
int leak_sites_halve(struct leak_sites *self);

#endif
