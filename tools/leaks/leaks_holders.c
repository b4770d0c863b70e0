/* leaks_holders.c — reads the holders of memory from lines HELD of the trace, and finds the call stacks whose holders
 * nobody has looked for yet; see leaks.h. A line HELD is about a retired owner (it has "owner"), or about one call
 * stack of a model and a node (it has "path"). */
#include "tools/reader/cuda_image.h"
#include "tools/base/list.h"
#include "tools/leaks/leaks.h"
#include "tools/leaks/leaks_ask.h"
#include "tools/views/stacks.h"
#include "tools/reader/trace_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- lines of the trace --- */

static uint64_t leaks_holders_number_of(struct jsontext line, const char *key) {
    struct jsontext value;
    uint64_t number = 0;
    return jsontext_member(line, key, &value) && jsontext_number(value, &number) ? number : 0;
}

/* The id of the name of the owner that a line has under `key`; 0: the line has no owner, or the image lacks it.
 * UINT32_MAX: no memory. */
static uint32_t leaks_holders_name_of(struct leaks *self, struct jsontext line, const char *key) {
    uint64_t owner = leaks_holders_number_of(line, key);
    return owner && owner <= UINT32_MAX ? leak_sites_name(self->sites, self->image, (uint32_t)owner) : 0;
}

static struct jsontext text_of(struct jsontext line, const char *key) {
    struct jsontext value;
    return jsontext_member(line, key, &value) && value.length > 2 && *value.at == '"' ? value
                                                                                      : (struct jsontext){NULL, 0};
}

static struct jsontext array_of(struct jsontext line, const char *key) {
    struct jsontext value;
    return jsontext_member(line, key, &value) && *value.at == '[' ? value : (struct jsontext){NULL, 0};
}

static bool is_held_line(struct jsontext line, struct leak_holder *holder) {
    char kind[8];
    struct jsontext value;
    *holder = (struct leak_holder){.site = LEAK_NO_SITE};
    return jsontext_member(line, "kind", &value) && jsontext_string(value, kind, sizeof kind) &&
           strcmp(kind, "HELD") == 0 && jsontext_member(line, "holders", &holder->holders) && holder->holders.length &&
           *holder->holders.at == '[';
}

/* Reads the path (leak_site.path) of a line, in hexadecimal digits. False: the line has no path. */
static bool path_of(struct jsontext line, uint64_t *path) {
    char text[24], *end;
    struct jsontext value;
    if (!jsontext_member(line, "path", &value) || !jsontext_string(value, text, sizeof text) || !*text) return false;
    errno = 0;
    *path = strtoull(text, &end, 16);
    return !errno && !*end;
}

/* Finds what a line is about: a site, a retired owner or, if no Python object was found ("blocks" is 0), only a path.
 * Returns 1 if the subject was found, 0 if the image has no such site or owner, and -1 if there is no memory. */
static int find_subject(struct leaks *self, struct jsontext line, struct leak_holder *holder) {
    uint64_t path;
    if (!path_of(line, &path)) {
        holder->name = leaks_holders_name_of(self, line, "owner");
        return holder->name == UINT32_MAX ? -1 : holder->name != 0;
    }
    if (!leaks_holders_number_of(line, "blocks")) {
        holder->path = path;
        return path != 0;
    }
    uint32_t model = leaks_holders_name_of(self, line, "model"), node = leaks_holders_name_of(self, line, "node");
    if (model == UINT32_MAX || node == UINT32_MAX) return -1;
    const struct leak_site *site = leak_sites_look(self->sites, model, node, path);
    if (site) holder->site = (uint32_t)(site - self->sites->list);
    return site != NULL;
}

static int holder_keep(struct leaks *self, size_t *capacity, const struct leak_holder *holder) {
    if (!list_grow(&self->holders, sizeof *self->holders, self->holder_count, 1, capacity)) return -1;
    self->holders[self->holder_count++] = *holder;
    return 0;
}

/* --- looking up holders --- */

static int leaks_holders_compare(const struct leak_holder *a, const struct leak_holder *b) {
    if (a->site != b->site) return a->site < b->site ? -1 : 1;
    if (a->path != b->path) return a->path < b->path ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

/* Whether the holder is an object without a name: the object that a search had reached when its time was over. */
static bool is_nameless(const struct leak_holder *holder) { return holder->held_at.length && !holder->pack.length; }

/* Compares for qsort: by site, path and name. Of several lines about the same thing, the newest comes first, because
 * holder_find() returns the first. But among lines about owners of one name, those with a nameless object come after
 * all others. */
static int by_subject(const void *left, const void *right) {
    const struct leak_holder *a = left, *b = right;
    int order = leaks_holders_compare(a, b);
    if (!order && a->name) order = is_nameless(a) - is_nameless(b);
    return order ? order : a->holders.at > b->holders.at ? -1 : a->holders.at < b->holders.at;
}

int leaks_find_holders(struct leaks *self) {
    struct leak_holder holder;
    struct trace_line line;
    size_t capacity = 0;
    for (size_t at = 0; trace_lines_next(self->image, &at, &line);) {
        if (!is_held_line(line.object, &holder)) continue;
        int result = find_subject(self, line.object, &holder);
        holder.pack = text_of(line.object, "pack");
        holder.held_at = text_of(line.object, "place");
        holder.other_places = array_of(line.object, "other_places");
        holder.blocks = leaks_holders_number_of(line.object, "blocks");
        holder.followed = leaks_holders_number_of(line.object, "followed");
        holder.held = leaks_holders_number_of(line.object, "held");
        if (result < 0 || (result > 0 && holder_keep(self, &capacity, &holder) < 0)) return -1;
    }
    if (self->holder_count) qsort(self->holders, self->holder_count, sizeof *self->holders, by_subject);
    return 0;
}

static const struct leak_holder *holder_find(const struct leaks *self, uint32_t site, uint64_t path, uint32_t name) {
    const struct leak_holder wanted = {.site = site, .path = path, .name = name};
    size_t low = 0, high = self->holder_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (leaks_holders_compare(&self->holders[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < self->holder_count && leaks_holders_compare(&self->holders[low], &wanted) == 0 ? &self->holders[low]
                                                                                                : NULL;
}

const struct leak_holder *leaks_holder_of_site(const struct leaks *self, uint32_t site) {
    const struct leak_holder *found = holder_find(self, site, 0, 0);
    return found ? found : holder_find(self, LEAK_NO_SITE, self->sites->list[site].path, 0);
}

const struct leak_holder *leaks_holder_of_owner(const struct leaks *self, uint32_t name) {
    return name ? holder_find(self, LEAK_NO_SITE, 0, name) : NULL;
}

static bool same_text(struct jsontext a, struct jsontext b) {
    return a.length == b.length && (!a.length || memcmp(a.at, b.at, a.length) == 0);
}

bool leaks_same_holder(const struct leak_holder *a, const struct leak_holder *b) {
    return a && b && a->held_at.length && same_text(a->held_at, b->held_at) && same_text(a->pack, b->pack);
}

bool leaks_next_place(const struct leak_holder *holder, size_t *next, struct leak_holder *place) {
    struct jsontext value;
    while (holder && holder->other_places.length && jsontext_next(holder->other_places, next, NULL, &value)) {
        if (*value.at != '{') continue;
        *place = (struct leak_holder){.pack = text_of(value, "pack"), .held_at = text_of(value, "place")};
        if (place->held_at.length) return true;
    }
    return false;
}

/* --- call stacks whose holders nobody has looked for --- */

enum { SITES_EACH = 3 };

/* A path that is asked for. order: the position of the path's site in the list of wanted sites. If several sites have
 * the path, this is the lowest of their positions. */
struct unknown_path {
    uint64_t path;
    uint32_t order;
};

struct unknown {
    const struct leaks *leaks;
    struct unknown_path *list;
    size_t count, capacity;
    bool failed; /* no memory */
};

static bool can_be_asked(const struct leaks *self, uint32_t site) {
    return !self->sites->sampled && self->sites->list[site].stack && self->sites->list[site].live_bytes;
}

static void add_site(struct unknown *unknown, uint32_t site) {
    if (unknown->failed || !can_be_asked(unknown->leaks, site)) return;
    unknown->failed = !LIST_GROW(unknown->list, unknown->count, unknown->capacity);
    if (unknown->failed) return;
    unknown->list[unknown->count] =
        (struct unknown_path){unknown->leaks->sites->list[site].path, (uint32_t)unknown->count};
    unknown->count++;
}

/* Adds the largest sites without a known holder, among the sites for which `is` returns true. `is` says whether a site
 * belongs to a retired owner, or to the rest of an owner. `context` is passed to `is`. */
static void add_largest(struct unknown *unknown, bool (*is)(const struct leak_site *site, const void *context),
                        const void *context) {
    const struct leak_sites *sites = unknown->leaks->sites;
    uint32_t largest[SITES_EACH];
    size_t count = 0;
    for (uint32_t i = 0; i < sites->count; i++) {
        if (!is(&sites->list[i], context) || leaks_holder_of_site(unknown->leaks, i)) continue;
        size_t at = count < SITES_EACH ? count++ : SITES_EACH;
        for (; at > 0 && sites->list[largest[at - 1]].live_bytes < sites->list[i].live_bytes; at--)
            if (at < SITES_EACH) largest[at] = largest[at - 1];
        if (at < SITES_EACH) largest[at] = i;
    }
    for (size_t i = 0; i < count; i++) add_site(unknown, largest[i]);
}

static bool is_of_finding(const struct leak_site *site, const void *finding) {
    return site->live_bytes && leaks_is_in_rest(site, finding);
}

static bool is_of_retired(const struct leak_site *site, const void *retired) {
    return site->gone_bytes && site->model == ((const struct leak_retired *)retired)->name;
}

static void add_finding(struct unknown *unknown, const struct leak_finding *finding) {
    const struct leaks *self = unknown->leaks;
    if (finding->holder) return;
    for (size_t i = 0; i < finding->part_count && i < SITES_EACH; i++) {
        const struct leak_finding *part = &self->parts[finding->first_part + i];
        if (part->site != LEAK_NO_SITE)
            add_site(unknown, part->site);
        else
            add_largest(unknown, is_of_finding, part);
    }
}

/* Compares for qsort and bsearch. */
static int unknown_path_compare(const void *left, const void *right) {
    const struct unknown_path *a = left, *b = right;
    return a->path < b->path ? -1 : a->path > b->path;
}

static int unknown_path_order(const void *left, const void *right) {
    const struct unknown_path *a = left, *b = right;
    int order = unknown_path_compare(a, b);
    return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

/* Sorts the list by path, and leaves each path in it once, with its lowest position. */
static void unknown_sort(struct unknown *unknown) {
    size_t kept = 0;
    if (!unknown->count) return;
    qsort(unknown->list, unknown->count, sizeof *unknown->list, unknown_path_order);
    for (size_t i = 0; i < unknown->count; i++)
        if (!kept || unknown->list[kept - 1].path != unknown->list[i].path) unknown->list[kept++] = unknown->list[i];
    unknown->count = kept;
}

static int by_order(const void *left, const void *right) {
    const struct leaks_ask_stack *a = left, *b = right;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

struct unknown_stacks {
    struct leaks_ask_stack *list;
    size_t count, capacity;
};

/* Adds a place if its path is asked for. Returns 0, or -1: no memory. */
static int unknown_place(const struct unknown *unknown, struct unknown_stacks *to, uint64_t path, uint32_t place) {
    const struct unknown_path wanted = {.path = path};
    const struct unknown_path *found =
        path ? bsearch(&wanted, unknown->list, unknown->count, sizeof wanted, unknown_path_compare) : NULL;
    if (!found) return 0;
    if (!LIST_GROW(to->list, to->count, to->capacity)) return -1;
    to->list[to->count++] = (struct leaks_ask_stack){path, place, found->order};
    return 0;
}

/* Lists the stacks with the wanted paths, in the order of the paths. Each stack has its place, which is its number in
 * the process. One path may have several places, because a call in one line of Python may be at several instructions.
 * Returns 0, or -1: no memory. */
static int find_places(const struct unknown *unknown, struct unknown_stacks *to) {
    const struct image *image = unknown->leaks->image;
    uint64_t *hashes = stack_hashes(image);
    int result = hashes ? 0 : -1;
    for (size_t i = 0; result == 0 && i < image->place_count; i++) {
        uint64_t path = hashes[image->places[i].node];
        result = unknown_place(unknown, to, path, image->places[i].place);
        if (result == 0 && path) result = unknown_place(unknown, to, leak_path_on_cuda(path), image->places[i].place);
    }
    free(hashes);
    if (to->count) qsort(to->list, to->count, sizeof *to->list, by_order);
    return result;
}

int leaks_unknown(const struct leaks *self, struct leaks_ask_stack **stacks, size_t *count) {
    struct unknown unknown = {.leaks = self};
    struct unknown_stacks found = {.list = NULL};
    for (size_t i = 0; i < self->count; i++) add_finding(&unknown, &self->list[i]);
    for (size_t i = 0; i < self->retired_leaks; i++)
        if (!self->retired[i].is_told && !self->retired[i].holder)
            add_largest(&unknown, is_of_retired, &self->retired[i]);
    unknown_sort(&unknown);
    int result = unknown.failed ? -1 : unknown.count ? find_places(&unknown, &found) : 0;
    free(unknown.list);
    if (result < 0) free(found.list);
    *stacks = result < 0 ? NULL : found.list;
    *count = result < 0 ? 0 : found.count;
    return result;
}
