/* leak_sites.c — see leak_sites.h. */
#include "tools/leaks/leak_sites.h"
#include "tools/base/list.h"
#include "tools/reader/cuda_image.h"
#include "tools/views/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct leak_name_slot {
    uint32_t id;
    UT_hash_handle hh;
    char key[];
};

enum { RUN_NONE = -1, RUN_ON = -2, POLICY_KEEP = 1 };

void leak_sites_begin(struct leak_sites *self) { memset(self, 0, sizeof *self); }

void leak_sites_end(struct leak_sites *self) {
    struct leak_name_slot *slot, *next;
    HASH_ITER(hh, self->name_table, slot, next) {
        HASH_DEL(self->name_table, slot);
        free(slot);
    }
    for (uint32_t i = 1; i < self->name_count; i++) {
        free(self->names[i]->name);
        free(self->names[i]->origin);
        free(self->names[i]);
    }
    free(self->names);
    free(self->list);
    free(self->slots.list);
    free(self->left.list);
    free(self->moved.list);
    free(self->runs);
    leak_sites_begin(self);
}

/* --- names of owners --- */

/* Makes capacity for one more name. The first call also makes name 0, which means "no owner". */
static int grow_names(struct leak_sites *self) {
    if (!LIST_GROW(self->names, self->name_count, self->name_capacity)) return -1;
    if (!self->name_count) self->names[self->name_count++] = NULL;
    return 0;
}

static uint32_t add_name(struct leak_sites *self, const char *key, size_t length, const struct leak_name *as) {
    struct leak_name_slot *slot = malloc(sizeof *slot + length + 1);
    struct leak_name *name = calloc(1, sizeof *name);
    if (slot && name && grow_names(self) == 0 && (name->name = strdup(as->name)) &&
        (name->origin = strdup(as->origin))) {
        name->kind = as->kind;
        memcpy(slot->key, key, length + 1);
        slot->id = self->name_count;
        self->names[self->name_count++] = name;
        HASH_ADD(hh, self->name_table, key, length, slot);
        return slot->id;
    }
    if (name) free(name->name);
    free(name);
    free(slot);
    return UINT32_MAX;
}

uint32_t leak_sites_name(struct leak_sites *self, const struct image *image, uint32_t id) {
    char key[4096];
    struct leak_name_slot *slot;
    const struct snap_owner *owner = image_owner(image, id);
    if (!owner) return 0;
    struct leak_name as = {(char *)image_string(image, owner->name), (char *)image_string(image, owner->origin),
                           owner->kind, id, false};
    snprintf(key, sizeof key, "%u\x1f%s\x1f%s", owner->kind, as.name, as.origin);
    size_t length = strlen(key);
    HASH_FIND(hh, self->name_table, key, length, slot);
    uint32_t found = slot ? slot->id : add_name(self, key, length, &as);
    if (found != UINT32_MAX) self->names[found]->owner = id;
    return found;
}

/* --- finding and adding sites --- */

static uint64_t site_hash(uint32_t model, uint32_t node, uint64_t path) {
    uint64_t hash =
        (((uint64_t)model << 32 | node) * UINT64_C(0x9e3779b97f4a7c15) ^ path) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

static bool is_same(const struct leak_site *site, uint32_t model, uint32_t node, uint64_t path) {
    return site->model == model && site->node == node && site->path == path;
}

/* The slot of the site, or the free slot for it. */
static uint32_t *leak_sites_find_slot(const struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path) {
    const struct slots *slots = &self->slots;
    size_t slot = slots_first(slots, site_hash(model, node, path));
    while (slots->list[slot] && !is_same(&self->list[slots->list[slot] - 1], model, node, path))
        slot = slots_next(slots, slot);
    return &slots->list[slot];
}

/* Makes the capacity for sites at least `capacity`. */
static int sites_grow(struct leak_sites *self, size_t capacity) {
    if (!list_grow(&self->list, sizeof *self->list, 0, capacity, &self->capacity) ||
        !slots_renew(&self->slots, self->capacity))
        return -1;
    for (size_t i = 0; i < self->count; i++) {
        const struct leak_site *site = &self->list[i];
        slots_enter(&self->slots, site_hash(site->model, site->node, site->path), i);
    }
    return 0;
}

struct leak_site *leak_sites_look(const struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path) {
    uint32_t found = self->slots.count ? *leak_sites_find_slot(self, model, node, path) : 0;
    if (found && self->list[found - 1].joined) found = self->list[found - 1].joined;
    return found ? &self->list[found - 1] : NULL;
}

struct leak_site *leak_sites_find(struct leak_sites *self, uint32_t model, uint32_t node, uint64_t path) {
    if (self->count == self->capacity && sites_grow(self, self->count + 1) < 0) return NULL;
    uint32_t *slot = leak_sites_find_slot(self, model, node, path);
    if (!*slot) {
        self->list[self->count++] = (struct leak_site){.model = model, .node = node, .path = path};
        *slot = (uint32_t)self->count;
    }
    return &self->list[*slot - 1];
}

/* --- adding and sorting entries --- */

int leak_entries_add(struct leak_entries *entries, uint32_t site, struct leak_change change) {
    if (!LIST_GROW(entries->list, entries->count, entries->capacity)) return -1;
    entries->list[entries->count++] = (struct leak_entry){site, change};
    return 0;
}

/* Sorts entries by site or by point, stably: one pass of a counting sort. All keys are below `values`. Returns 0, or
 * -1: no memory. */
static int sort_by(struct leak_entries *entries, size_t values, bool by_site) {
    size_t *starts = calloc(values + 1, sizeof *starts);
    struct leak_entry *sorted = malloc((entries->count + 1) * sizeof *sorted);
    if (!starts || !sorted) {
        free(starts);
        free(sorted);
        return -1;
    }
    for (size_t i = 0; i < entries->count; i++)
        starts[1 + (by_site ? entries->list[i].site : entries->list[i].change.point)]++;
    for (size_t i = 1; i <= values; i++) starts[i] += starts[i - 1];
    for (size_t i = 0; i < entries->count; i++)
        sorted[starts[by_site ? entries->list[i].site : entries->list[i].change.point]++] = entries->list[i];
    free(starts);
    free(entries->list);
    entries->list = sorted;
    entries->capacity = entries->count + 1;
    return 0;
}

static void leak_sites_unite(struct leak_entries *entries) {
    size_t kept = 0;
    for (size_t i = 0; i < entries->count; i++) {
        const struct leak_entry *entry = &entries->list[i];
        struct leak_entry *last = kept ? &entries->list[kept - 1] : NULL;
        if (last && last->site == entry->site && last->change.point == entry->change.point) {
            last->change.bytes = leak_sum(last->change.bytes, entry->change.bytes);
            last->change.blocks = leak_sum(last->change.blocks, entry->change.blocks);
            last->change.allocated += entry->change.allocated;
        } else {
            entries->list[kept++] = *entry;
        }
    }
    entries->count = kept;
}

/* Whether the entries are sorted already. Entries from a series are, and there may be millions of them, which would
 * take long to sort. */
static bool are_in_order(const struct leak_entries *entries) {
    for (size_t i = 1; i < entries->count; i++) {
        const struct leak_entry *a = &entries->list[i - 1], *b = &entries->list[i];
        if (a->site > b->site || (a->site == b->site && a->change.point > b->change.point)) return false;
    }
    return true;
}

int leak_entries_sort(struct leak_entries *entries, size_t sites, uint32_t points) {
    if (are_in_order(entries)) {
        leak_sites_unite(entries);
        return 0;
    }
    if (sort_by(entries, points, false) < 0 || sort_by(entries, sites, true) < 0) return -1;
    leak_sites_unite(entries);
    return 0;
}

size_t leak_entries_first(const struct leak_entries *entries, uint32_t site) {
    size_t low = 0, high = entries->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries->list[middle].site < site)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- reading an image --- */

/* What add_total needs of an image's tags, stacks and modules. */
struct known {
    struct whose {
        uint32_t model, node;
        int32_t run; /* index of the run; RUN_NONE: no run; RUN_ON: the run has not ended */
        bool gone;   /* the model is retired */
    } * tags;
    uint64_t *stacks, *modules; /* paths (leak_site.path): stacks by node, modules by 1 + id of the module */
    uint64_t *python;           /* by node: hash of the stack's Python frames; 0: it has none */
};

static int by_number(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static int find_runs(struct leak_sites *self, const struct image *image) {
    free(self->runs);
    self->run_count = 0;
    self->runs = malloc((image->owner_count + 1) * sizeof *self->runs);
    if (!self->runs) return -1;
    for (size_t i = 0; i < image->owner_count; i++)
        if (leak_run_has_ended(&image->owners[i])) self->runs[self->run_count++] = image->owners[i].id;
    return 0;
}

static int32_t run_of(const struct leak_sites *self, uint32_t run) {
    if (!run) return RUN_NONE;
    const uint32_t *found = bsearch(&run, self->runs, self->run_count, sizeof run, by_number);
    return found ? (int32_t)(found - self->runs) : RUN_ON;
}

static void note_policies(struct leak_sites *self, const struct image *image) {
    for (uint32_t i = 1; i < self->name_count; i++) self->names[i]->kept = false;
    for (size_t i = 0; i < image->owner_count; i++) {
        const struct snap_owner *owner = &image->owners[i];
        if (owner->policy != POLICY_KEEP || owner->state == SNAP_OWNER_RETIRED) continue;
        uint32_t name = leak_sites_name(self, image, owner->id);
        if (name && name != UINT32_MAX) self->names[name]->kept = true;
    }
}

bool leak_owner_is_gone(const struct snap_owner *owner) {
    return owner && (owner->kind == SNAP_OWNER_MODEL || owner->kind == SNAP_OWNER_CUSTOM) &&
           owner->state == SNAP_OWNER_RETIRED && !owner->adopted_by;
}

static int know_tags(struct leak_sites *self, const struct image *image, struct known *known) {
    known->tags = calloc(image->tag_count + 1, sizeof *known->tags);
    if (!known->tags) return -1;
    known->tags[image->tag_count].run = RUN_NONE;
    for (size_t i = 0; i < image->tag_count; i++) {
        const struct snap_tag *tag = &image->tags[i];
        struct whose whose = {leak_sites_name(self, image, tag->model), leak_sites_name(self, image, tag->node),
                              run_of(self, tag->run), leak_owner_is_gone(image_owner(image, tag->model))};
        if (whose.model == UINT32_MAX || whose.node == UINT32_MAX) return -1;
        known->tags[i] = whose;
    }
    return 0;
}

uint64_t leak_path_of(const char *module) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *module; module++) hash = (hash ^ (uint8_t)*module) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t leak_path_on_cuda(uint64_t path) { return path ^ UINT64_C(0xc4ceb9fe1a85ec53); }

static int leak_sites_know(struct leak_sites *self, const struct image *image, struct known *known) {
    if (find_runs(self, image) < 0 || grow_names(self) < 0 || know_tags(self, image, known) < 0) return -1;
    note_policies(self, image);
    known->modules = calloc(image->module_count + 1, sizeof *known->modules);
    known->stacks = stack_hashes(image);
    known->python = stack_python_hashes(image);
    if (!known->modules || !known->stacks || !known->python) return -1;
    for (size_t i = 0; i <= image->module_count; i++)
        known->modules[i] = leak_path_of(image_module_name(image, (uint32_t)i));
    return 0;
}

/* Makes leak_site.line from the hash of the Python frames and the class of memory. Mappings and blocks get different
 * values, because a mapping may be an arena of Python's: one line maps it, but other lines use it, too. */
static uint64_t leak_sites_line_of(uint64_t python, uint8_t class) {
    return python ? (python ^ class) * UINT64_C(0xff51afd7ed558ccd) : 0;
}

static int add_total(struct leak_sites *self, const struct image *image, const struct known *known,
                     const struct total *total) {
    struct whose whose = known->tags[total->tag < image->tag_count ? total->tag : image->tag_count];
    uint64_t bytes = total_live_bytes(total), blocks = total_live_blocks(total), path = 0;
    uint32_t stack = 0, module = 0;
    if (whose.run == RUN_ON || total->flags & TOTAL_INHERITED) return 0;
    if (!self->sampled) {
        stack = total->stack < image->node_count ? total->stack : 0;
        module = total->module <= image->module_count ? total->module : 0;
        path = known->stacks[stack] ? known->stacks[stack] : known->modules[module];
    }
    if (total->class == SNAP_ON_CUDA) path = leak_path_on_cuda(path);
    struct leak_site *site = leak_sites_find(self, whose.model, whose.node, path);
    if (!site) return -1;
    if (bytes || !site->stack) {
        site->stack = stack;
        site->module = module;
        site->line = leak_sites_line_of(known->python[stack], total->class);
    }
    site->on_cuda = total->class == SNAP_ON_CUDA;
    site->live_bytes += bytes;
    site->live_blocks += blocks;
    if (whose.gone) site->gone_bytes += bytes, site->gone_blocks += blocks;
    if (whose.run == RUN_NONE) return 0;
    struct leak_change change = {(uint32_t)whose.run, (int64_t)bytes, (int64_t)blocks, total->alloc_bytes};
    return leak_entries_add(&self->left, (uint32_t)(site - self->list), change);
}

/* Clears the figures of the previous image. Makes capacity for all sites of the new image at once, because there may be
 * a million. */
static int leak_sites_prepare(struct leak_sites *self, const struct image *image) {
    size_t all = cuda_every_count(image);
    self->sampled = image->header.sample_bytes != 0;
    self->left.count = 0;
    for (size_t i = 0; i < self->count; i++) {
        struct leak_site *site = &self->list[i];
        site->live_bytes = site->live_blocks = site->gone_bytes = site->gone_blocks = 0;
        site->stack = site->module = 0;
    }
    return all > self->capacity ? sites_grow(self, all) : 0;
}

int leak_sites_read(struct leak_sites *self, const struct image *image) {
    struct known known = {0};
    int result = leak_sites_prepare(self, image) < 0 || leak_sites_know(self, image, &known) < 0 ? -1 : 0;
    for (size_t i = 0; result == 0 && i < cuda_every_count(image); i++) {
        struct total total;
        if (cuda_every_total(image, i, &total)) result = add_total(self, image, &known, &total);
    }
    free(known.tags);
    free(known.stacks);
    free(known.python);
    free(known.modules);
    return result < 0 ? -1 : leak_entries_sort(&self->left, self->count, self->run_count);
}

/* --- making and merging points --- */

int leak_sites_halve(struct leak_sites *self) {
    for (uint32_t i = 0; i < self->point_count; i++) {
        struct leak_point point = self->points[i];
        if (i % 2) point.runs += self->points[i / 2].runs;
        self->points[i / 2] = point;
    }
    self->point_count = (self->point_count + 1) / 2;
    for (size_t i = 0; i < self->moved.count; i++) self->moved.list[i].change.point /= 2;
    return leak_entries_sort(&self->moved, self->count, self->point_count);
}

/* Drops the changes of sites that had nothing at the newest point, because nobody needs them any more. The number of
 * changes is limited: without this, points would be merged sooner. */
static void forget_gone(struct leak_sites *self) {
    size_t kept = 0;
    for (size_t i = 0; i < self->moved.count; i++) {
        const struct leak_site *site = &self->list[self->moved.list[i].site];
        if (site->last_bytes || site->last_blocks) self->moved.list[kept++] = self->moved.list[i];
    }
    self->moved.count = kept;
}

static int grow_points(struct leak_sites *self) {
    if (self->moved.count >= LEAK_CHANGES_MOST) forget_gone(self);
    if (self->point_count < LEAK_POINTS_MOST && self->moved.count < LEAK_CHANGES_MOST) return 0;
    return self->point_count > 1 ? leak_sites_halve(self) : 0;
}

int leak_sites_point(struct leak_sites *self, const struct image *image) {
    if (grow_points(self) < 0) return -1;
    uint32_t at = self->point_count;
    struct leak_point point = {.run = self->run_count ? self->runs[self->run_count - 1] : 0,
                               .runs = at && self->run_count > self->ended ? self->run_count - self->ended : 0,
                               .taken_ns = image_now(image)};
    for (size_t i = 0; i < self->count; i++) {
        struct leak_site *site = &self->list[i];
        struct leak_change change = {at, (int64_t)(site->live_bytes - site->last_bytes),
                                     (int64_t)(site->live_blocks - site->last_blocks), 0};
        if ((change.bytes || change.blocks) && leak_entries_add(&self->moved, (uint32_t)i, change) < 0) return -1;
        site->last_bytes = site->live_bytes;
        site->last_blocks = site->live_blocks;
        point.live_bytes += site->live_bytes;
        point.live_blocks += site->live_blocks;
    }
    self->ended = self->run_count;
    self->points[at] = point;
    self->point_count = at + 1;
    return 0;
}
