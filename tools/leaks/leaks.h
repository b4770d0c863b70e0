/* leaks.h — what leaks in a process, what only looks like it, and who holds what owners that are gone left behind.
 * In: sites that were read last from an image. Out: findings, those that lose most first, of which each is one cause.
 * leaks_text.c and leaks_json.c show them. docs/leaks.md says the rules in prose. */
#ifndef MEMSTOW_LEAKS_H
#define MEMSTOW_LEAKS_H

#include "preload/shared/jsontext.h"
#include "tools/leaks/leak_sites.h"
#include "tools/symbols/symbols.h"

#include <stdio.h>

enum { LEAKS_PLACES = 3, LEAK_NO_SITE = UINT32_MAX };

/* What holds memory, by a HELD line of the trace. Texts of a length of 0 are not there. */
struct leak_holder {
    uint32_t site; /* of what it holds, or LEAK_NO_SITE: all that an owner left behind */
    uint32_t name; /* of that owner */
    uint64_t path; /* of a call stack of whose blocks no Python object was found; 0: none */
    struct jsontext pack, place, holders;
    uint64_t blocks, followed,
        held; /* that Python objects have; of those that were followed, and that this one holds */
};

/* A site that keeps growing; or an owner that does, at sites none of which does by itself: then there is no site. Those
 * of one cause are one finding, which has the figures of them all, and site, owner and evidence of the one that grows
 * most. */
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
    uint64_t key;                     /* of its cause: leaks_groups.c */
    const struct leak_holder *holder; /* NULL: not known */
    size_t first_part, part_count;    /* those that it is made of: in leaks.parts */
};

/* Owners of one name that are retired and still have memory. */
struct leak_retired {
    uint32_t name, owners;
    uint64_t live_bytes, live_blocks, allocated_bytes;
    uint64_t old_live_bytes, old_allocated_bytes; /* of those that were retired before the last run ended */
    uint32_t runs_since;                          /* that ended after the first of them was retired */
    bool is_leak; /* else it is little of what they had, or they were retired just now */
    bool is_told; /* what grows, or what is held at the same place, is a finding, and this is the same cause */
    bool is_same; /* the same place holds what another owner left, which is counted */
    uint64_t rest_bytes, rest_blocks; /* of what lives, that which is no part of what grows; */
    uint32_t rest_site;               /* where the most of it was allocated, or LEAK_NO_SITE */
    const struct leak_holder *holder; /* of the most of it; NULL: not known */
    const struct leak_holder *other;  /* another place, that the program has named for the owner; NULL: none */
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
    struct leak_finding *list;          /* sites and owners, and by leaks_group causes, those that lose most first */
    size_t count, room;
    struct leak_finding *parts; /* what causes are made of, one after the other */
    size_t part_count;
    struct leak_retired *retired; /* leaks first */
    size_t retired_count, retired_leaks;
    uint64_t *run_ends;          /* when runs ended, in order; as many as there are */
    struct leak_holder *holders; /* of sites, in their order, then of owners, in that of their names */
    size_t holder_count;
    struct leak_rest rest[LEAK_VERDICTS];
    struct leak_finding *kept; /* that grow, with policy keep: they are no leaks */
    size_t kept_count, kept_room;
    uint64_t retained; /* freed memory that the allocator keeps; 0: none, or not measured */
    bool measured;
};

enum { LEAKS_FLOOR = 1024 };

/* 0, or -1: no memory. Image and sites must outlive it. */
int leaks_find(struct leaks *self, struct leak_sites *sites, const struct image *image, uint64_t floor);
/* Makes one finding of what has one cause: one holder, else one owner and one line of Python; and leaves out what comes
 * with threads. 0 or -1. `symbols`: or NULL, then that is not left out. */
int leaks_group(struct leaks *self, struct symbols *symbols);
void leaks_clear(struct leaks *self);
/* How many causes there are. */
size_t leaks_total(const struct leaks *self);

enum leaks_verdict { LEAKS_NONE, LEAKS_FOUND, LEAKS_CANNOT_TELL };
enum leaks_verdict leaks_verdict(const struct leaks *self);
/* When it cannot be told: why, and what to do about that; else both are "". */
struct leaks_doubt {
    char why[80], advice[80];
};
struct leaks_doubt leaks_doubt(const struct leaks *self);
/* Python may have garbage of so many runs that runs are left out because of it. */
bool leaks_has_garbage(const struct leaks *self);

/* Between leaks.c, leaks_retired.c, leaks_holders.c and leaks_groups.c. So many runs ended after that: */
uint32_t leaks_runs_since(const struct leaks *self, uint64_t when);
int leaks_find_holders(struct leaks *self);
int leaks_find_retired(struct leaks *self);
bool leaks_is_too_much(uint64_t live, uint64_t allocated);
/* By the last HELD line of the trace that is about the site, or the owner of that name. NULL: there is none. */
const struct leak_holder *leaks_holder_of_site(const struct leaks *self, uint32_t site);
const struct leak_holder *leaks_holder_of_owner(const struct leaks *self, uint32_t name);
/* Whether both are the same place. */
bool leaks_same_holder(const struct leak_holder *a, const struct leak_holder *b);
int leaks_by_growth(const void *left, const void *right);

struct leaks_ask_stack;
/* The call stacks of findings of which nobody has looked for holders: those that have most first, stacks of one path
 * one after the other. To be freed. 0 or -1. */
int leaks_unknown(const struct leaks *self, struct leaks_ask_stack **stacks, size_t *count);
/* Blocks of later runs than this one may be in use; 0: of any run. */
uint32_t leaks_last_judged(const struct leaks *self);

/* The name of the run with that index, made printable. */
const char *leaks_run(const struct leaks *self, uint32_t index);

/* Destructors and exit handlers have run: what leaked may be freed by now. */
bool leaks_ended_in_order(const struct leaks *self);

/* What the readings are called: runs, or snapshots where no run ended between them. */
bool leaks_by_runs(const struct leaks *self);

struct leaks_view {
    size_t top;   /* findings that are shown */
    bool can_ask; /* the program would say what holds memory, if it were asked for that */
    struct symbols *symbols;
};
void leaks_text(const struct leaks *self, const struct leaks_view *view);
void leaks_json(const struct leaks *self, const struct leaks_view *view, FILE *to);

#endif
