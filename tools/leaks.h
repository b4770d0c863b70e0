/* leaks.h — what leaks in a process, what only looks like it, and who holds what owners that are gone left behind.
 * In: sites that were read last from an image. Out: findings, those that lose most first. leaks_text.c and leaks_json.c
 * show them. docs/leaks.md says the rules in prose. */
#ifndef MEMSTOW_LEAKS_H
#define MEMSTOW_LEAKS_H

#include "../preload/jsontext.h"
#include "leak_sites.h"
#include "symbols.h"

#include <stdio.h>

enum { LEAKS_PLACES = 3, LEAK_NO_SITE = UINT32_MAX };

/* A site that keeps growing; or an owner that does, at sites none of which does by itself: then there is no site. */
struct leak_finding {
    uint32_t site;        /* or LEAK_NO_SITE */
    uint32_t stacks;      /* at so many it grew; of an owner the one that grew most is the */
    uint32_t example;     /* site to show, or LEAK_NO_SITE */
    uint32_t model, node; /* names; 0: none */
    uint64_t live_bytes, live_blocks;
    uint32_t oldest, newest; /* of what is left: run indices. UINT32_MAX: it is in no run */
    bool by_readings;        /* judged by the readings of a series, not by what runs left */
    bool is_retired;         /* some of it is what a retired owner left */
    struct leak_judgement judged;
};

/* Owners of one name that are retired and still have memory. */
struct leak_retired {
    uint32_t name, owners;
    uint64_t live_bytes, live_blocks, allocated_bytes;
    uint64_t old_live_bytes, old_allocated_bytes; /* of those that were retired before the last run ended */
    uint32_t runs_since;                          /* that ended after the first of them was retired */
    bool is_leak; /* else it is little of what they had, or they were retired just now */
    struct jsontext holders;
    struct leak_place {
        uint32_t stack, module;
        uint64_t path, live_bytes, live_blocks;
    } places[LEAKS_PLACES]; /* where most of it was allocated */
    uint32_t place_count;
};

/* Sites that are none. */
struct leak_rest {
    uint64_t sites, live_bytes;
};

struct leaks {
    const struct image *image;
    struct leak_sites *sites;
    uint64_t floor;
    struct leak_rule left_rule, moved_rule;
    uint32_t uncollected; /* runs that ended since Python last looked at all its garbage; 0 also where nobody says */
    uint32_t runs_of[LEAK_POINTS_MOST]; /* what moved_rule.runs points at */
    struct leak_finding *list;
    size_t count, room;
    struct leak_retired *retired; /* leaks first */
    size_t retired_count, retired_leaks;
    uint64_t *run_ends;       /* when runs ended, in order; as many as there are */
    struct jsontext *holders; /* by name */
    uint32_t holders_count;
    struct leak_rest rest[LEAK_VERDICTS];
    struct leak_finding *kept; /* that grow, with policy keep: they are no leaks */
    size_t kept_count, kept_room;
    uint64_t retained; /* freed memory that the allocator keeps; 0: none, or not measured */
    bool measured;
};

enum { LEAKS_FLOOR = 1024 };

/* 0, or -1: no memory. Image and sites must outlive it. */
int leaks_find(struct leaks *self, struct leak_sites *sites, const struct image *image, uint64_t floor);
void leaks_clear(struct leaks *self);
/* How many there are. */
size_t leaks_total(const struct leaks *self);

/* Between leaks.c and leaks_retired.c. So many runs ended after that: */
uint32_t leaks_runs_since(const struct leaks *self, uint64_t when);
int leaks_find_holders(struct leaks *self);
int leaks_find_retired(struct leaks *self);
/* Whose memory it is that a name has by the last HELD line of the trace; length 0: there is none. */
struct jsontext leaks_holders(const struct leaks *self, uint32_t name);

/* The name of the run with that index, made printable. */
const char *leaks_run(const struct leaks *self, uint32_t index);

/* Destructors and exit handlers have run: what leaked may be freed by now. */
bool leaks_ended_in_order(const struct leaks *self);

/* What the readings are called: runs, or snapshots where no run ended between them. */
bool leaks_by_runs(const struct leaks *self);

struct leaks_view {
    size_t top; /* findings that are shown */
    struct symbols *symbols;
};
void leaks_text(const struct leaks *self, const struct leaks_view *view);
void leaks_json(const struct leaks *self, const struct leaks_view *view, FILE *to);

#endif
