/* groups.c — see groups.h. */
#include "tools/views/groups.h"
#include "tools/base/list.h"
#include "tools/views/stacks.h"
#include "tools/views/thread_names.h"
#include "tools/base/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define SEPARATOR "\x1f" /* between the parts of an owner's key */

struct name {
    uint32_t id;
    UT_hash_handle hh;
    char text[];
};

static const char *const view_names[VIEWS] = {"model", "node", "run", "site", "module", "thread"};

bool groups_view_parse(const char *string, enum view *view) {
    for (int i = 0; i < VIEWS; i++)
        if (strcmp(string, view_names[i]) == 0) {
            *view = (enum view)i;
            return true;
        }
    return false;
}

const char *groups_view_name(enum view view) { return view_names[view]; }

/* Interns a name: equal names get the same id. Id 0 means untagged. Returns 0, or -1: no memory. */
static int groups_intern(struct groups *groups, const char *text, uint32_t *id) {
    struct name *name;
    size_t length = strlen(text);
    HASH_FIND(hh, groups->names, text, length, name);
    if (!name) {
        name = malloc(sizeof *name + length + 1);
        if (!name) return -1;
        memcpy(name->text, text, length + 1);
        name->id = groups->name_count;
        if (!LIST_GROW(groups->name_list, groups->name_count, groups->name_capacity)) {
            free(name);
            return -1;
        }
        groups->name_list[groups->name_count++] = name;
        HASH_ADD(hh, groups->names, text, length, name);
    }
    *id = name->id;
    return 0;
}

void groups_begin(struct groups *groups, enum view view, int sides) {
    *groups = (struct groups){.view = view, .sides = sides};
}

void groups_end(struct groups *groups) {
    HASH_CLEAR(hh, groups->names);
    for (uint32_t i = 0; i < groups->name_count; i++) free(groups->name_list[i]);
    free(groups->name_list);
    free(groups->rows);
    free(groups->slots.list);
    free(groups->order);
    *groups = (struct groups){0};
}

static uint64_t row_hash(const struct row *key) {
    uint64_t hash = (uint64_t)key->model << 32 | key->node;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) ^ ((uint64_t)key->run << 32 | key->member);
    hash = (hash ^ key->stack) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

static bool same_key(const struct row *a, const struct row *b) {
    return a->model == b->model && a->node == b->node && a->run == b->run && a->member == b->member &&
           a->stack == b->stack;
}

static int rows_grow(struct groups *groups, size_t more) {
    if (!list_grow(&groups->rows, sizeof *groups->rows, groups->count, more, &groups->capacity) ||
        !slots_renew(&groups->slots, groups->capacity))
        return -1;
    for (size_t i = 0; i < groups->count; i++) slots_enter(&groups->slots, row_hash(&groups->rows[i]), i);
    return 0;
}

static struct row *find_row(struct groups *groups, const struct row *key) {
    if (groups->count == groups->capacity && rows_grow(groups, 1) < 0) return NULL;
    size_t slot = slots_first(&groups->slots, row_hash(key));
    for (uint32_t row; (row = groups->slots.list[slot]); slot = slots_next(&groups->slots, slot))
        if (same_key(&groups->rows[row - 1], key)) return &groups->rows[row - 1];
    groups->slots.list[slot] = (uint32_t)++groups->count;
    groups->rows[groups->count - 1] = *key;
    return &groups->rows[groups->count - 1];
}

/* Names of an image's tags and modules, looked up once. */
struct cache {
    struct row *tags;  /* tag_count + 1 rows: the last is for untagged memory */
    uint32_t *modules; /* module_count + 1 names: the first is the unknown module's */
    uint64_t *stacks;  /* for each node, the hash of its call stack; NULL: the view needs no hashes */
};

/* *name: the id of the owner's key; 0: untagged. The key is made of name, origin and kind, because ids of owners are
 * valid in one file only. The key is never cut, however long the name is, because groups_owner_parts needs the two
 * separators between these parts. Returns 0, or -1: no memory. */
static int intern_owner(struct groups *groups, const struct image *image, uint32_t id, uint32_t *name) {
    const struct snap_owner *owner = image_owner(image, id);
    char *key;
    *name = 0;
    if (!owner) return 0;
    if (asprintf(&key, "%s" SEPARATOR "%s" SEPARATOR "%u", image_string(image, owner->name),
                 image_string(image, owner->origin), owner->kind) < 0)
        return -1;
    int result = groups_intern(groups, key, name);
    free(key);
    return result;
}

static int cache_tag(struct groups *groups, const struct image *image, const struct snap_tag *tag, struct row *key) {
    bool all = groups->view == BY_SITE;
    memset(key, 0, sizeof *key);
    if ((all || groups->view == BY_MODEL) && intern_owner(groups, image, tag->model, &key->model) < 0) return -1;
    if ((all || groups->view == BY_NODE) && intern_owner(groups, image, tag->node, &key->node) < 0) return -1;
    bool runs = groups->view == BY_RUN || (all && !groups->without_runs);
    if (runs && intern_owner(groups, image, tag->run, &key->run) < 0) return -1;
    return 0;
}

static int cache_fill(struct groups *groups, const struct image *image, struct cache *cache) {
    cache->tags = calloc(image->tag_count + 1, sizeof *cache->tags);
    cache->modules = calloc(image->module_count + 1, sizeof *cache->modules);
    if (!cache->tags || !cache->modules) return -1;
    for (size_t i = 0; i < image->tag_count; i++)
        if (cache_tag(groups, image, &image->tags[i], &cache->tags[i]) < 0) return -1;
    if (groups->view != BY_MODULE && groups->view != BY_SITE) return 0;
    if (groups->view == BY_SITE && image->node_count && !(cache->stacks = stack_hashes(image))) return -1;
    for (size_t i = 0; i <= image->module_count; i++) {
        if (groups_intern(groups, image_module_name(image, (uint32_t)i), &cache->modules[i]) < 0) return -1;
    }
    return 0;
}

/* Makes the key of the row to which a total belongs. Some totals are remainders: the exact figure of a tag minus the
 * estimates of the tag's call stacks. `by_stack` is true if rows depend on call stacks, because they are sites or
 * modules, or because groups->matched selects stacks. If it is true, the remainders of all tags share one row. If it is
 * false, a remainder belongs to the row of its tag, so that owners are exact. Returns 0, or -1 if there is no memory.
 */
static int key_of(struct groups *groups, const struct image *image, const struct cache *cache,
                  const struct total *total, bool by_stack, struct row *key) {
    uint32_t node = total->stack < image->node_count ? total->stack : 0;
    if (total->flags & TOTAL_REMAINDER && by_stack) {
        *key = (struct row){0};
        return groups_intern(groups, GROUPS_REMAINDER, &key->member);
    }
    *key = cache->tags[total->tag < image->tag_count ? total->tag : image->tag_count];
    if (cache->stacks && cache->stacks[node])
        key->stack = cache->stacks[node];
    else
        key->member = cache->modules[total->module <= image->module_count ? total->module : 0];
    return 0;
}

static void add_to_row(const struct groups *groups, struct row *row, const struct total *total, int side) {
    enum measure measure = groups->sides == 1 ? MEASURE_LIVE : groups->measure;
    row->side[side].live_bytes += total_measure(total, measure);
    row->side[side].live_blocks += total_measure_blocks(total, measure);
    if (groups->sides > 1) return;
    row->alloc_bytes += total->alloc_bytes;
    row->peak_bytes += total->peak_bytes;
}

enum { AHEAD = 16 }; /* totals */

/* For the view by site: prefetches the slot that add_totals will read for the total at this index. There may be a
 * million slots, and waiting for a slot takes longer than all other work for a total. */
static void expect_site(struct groups *groups, const struct image *image, const struct cache *cache, size_t index) {
    struct row key;
    if (index >= image->total_count || image->totals[index].flags & TOTAL_REMAINDER) return;
    if (key_of(groups, image, cache, &image->totals[index], true, &key) < 0) return;
    __builtin_prefetch(&groups->slots.list[slots_first(&groups->slots, row_hash(&key))]);
}

static int add_totals(struct groups *groups, const struct image *image, const struct cache *cache, int side) {
    bool by_stack = groups->view == BY_SITE || groups->view == BY_MODULE || groups->matched;
    uint32_t left_out = TOTAL_INHERITED | (by_stack && groups->sides == 1 ? TOTAL_REMAINDER : 0);
    groups->estimated |= by_stack && image->variances;
    for (size_t i = 0; i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        uint32_t node = total->stack < image->node_count ? total->stack : 0;
        struct row key, *row;
        if (groups->view == BY_SITE) expect_site(groups, image, cache, i + AHEAD);
        if (total->flags & left_out || (groups->matched && !groups->matched[node])) continue;
        if (key_of(groups, image, cache, total, by_stack, &key) < 0 || !(row = find_row(groups, &key))) return -1;
        if (by_stack) row->variance += (float)image_variance(image, total, groups->measure);
        add_to_row(groups, row, total, side);
        if (groups->row_of) groups->row_of[i] = (uint32_t)(row - groups->rows) + 1;
        row->stack_node = node & INT32_MAX; /* fits, because an image has at most INT32_MAX nodes */
        row->stack_side = side & 1;
    }
    return 0;
}

static int add_thread_row(struct groups *groups, const char *name, const struct snap_counter *counter, int side) {
    struct row key = {0};
    if (!(counter->alloc_blocks | counter->free_blocks)) return 0;
    if (groups_intern(groups, name, &key.member) < 0) return -1;
    struct row *row = find_row(groups, &key);
    if (!row) return -1;
    row->side[side].live_bytes += counter->alloc_bytes - counter->free_bytes;
    row->side[side].live_blocks += counter->alloc_blocks - counter->free_blocks;
    if (groups->sides == 1) row->alloc_bytes += counter->alloc_bytes;
    return 0;
}

/* Adds the row for memory that a forked child inherited. A thread that frees inherited memory gets fewer live bytes in
 * its own row. The row for inherited memory gets these bytes, so that all rows add up to the live memory. */
static int add_inherited(struct groups *groups, const struct image *image, int side) {
    struct row key = {0}, *row;
    if (!image->inherited.free_blocks) return 0;
    if (groups_intern(groups, THREADS_INHERITED, &key.member) < 0 || !(row = find_row(groups, &key))) return -1;
    row->side[side].live_bytes += image->inherited.free_bytes;
    row->side[side].live_blocks += image->inherited.free_blocks;
    return 0;
}

/* Adds the rows of threads. A slot may have served several threads. `before` has the figures of the earlier threads,
 * whose names are gone. */
static int add_threads(struct groups *groups, const struct image *image, int side) {
    for (size_t i = 0; i < image->thread_count; i++) {
        const struct snap_thread *thread = &image->threads[i];
        const struct snap_counter *total = &thread->total, *before = &thread->before;
        struct snap_counter present = {
            total->alloc_bytes - before->alloc_bytes,
            total->alloc_blocks - before->alloc_blocks,
            total->free_bytes - before->free_bytes,
            total->free_blocks - before->free_blocks,
        };
        if (add_thread_row(groups, thread_name(image, i, groups->tids).text, &present, side) < 0 ||
            add_thread_row(groups, THREADS_EARLIER, before, side) < 0)
            return -1;
    }
    return add_inherited(groups, image, side);
}

int groups_add(struct groups *groups, const struct image *image, int side) {
    struct cache cache = {0};
    uint32_t untagged;
    if (groups->name_count == 0 && groups_intern(groups, "", &untagged) < 0) return -1;
    if (groups->view == BY_THREAD) return add_threads(groups, image, side);
    /* allocates all rows at once, because there may be a million sites */
    if (groups->view == BY_SITE && !groups->capacity && rows_grow(groups, image->total_count + 1) < 0) return -1;
    int result = cache_fill(groups, image, &cache);
    if (result == 0) result = add_totals(groups, image, &cache, side);
    free(cache.tags);
    free(cache.modules);
    free(cache.stacks);
    return result;
}

const char *groups_owner(const struct groups *groups, uint32_t name) {
    return name ? groups->name_list[name]->text : NULL;
}

const char *groups_member(const struct groups *groups, const struct row *row) {
    return groups->name_list[row->member]->text;
}

bool groups_owner_parts(const struct groups *groups, uint32_t name, struct groups_owner *owner) {
    const char *text = groups_owner(groups, name), *origin = text ? strstr(text, SEPARATOR) : NULL;
    if (!origin) return false;
    owner->name = text;
    owner->name_length = (int)(origin - text);
    owner->origin = origin + 1;
    owner->origin_length = (int)strcspn(owner->origin, SEPARATOR);
    owner->kind = (uint32_t)strtoul(owner->origin + owner->origin_length + 1, NULL, 10);
    return true;
}

bool groups_owner_words(const struct groups *groups, uint32_t name, bool origin, char *to, size_t size) {
    struct groups_owner owner;
    *to = 0;
    if (!groups_owner_parts(groups, name, &owner)) return false;
    if (origin && owner.origin_length && (owner.kind == SNAP_OWNER_MODEL || owner.kind == SNAP_OWNER_CUSTOM))
        snprintf(to, size, "%.*s (%.*s)", owner.name_length, owner.name, owner.origin_length, owner.origin);
    else
        snprintf(to, size, "%.*s", owner.name_length, owner.name);
    return true;
}

static void append_owner(const struct groups *groups, uint32_t name, bool origin, char *label, size_t size) {
    size_t used = strlen(label), blank = used ? 1 : 0;
    if (used + blank + 1 >= size ||
        !groups_owner_words(groups, name, origin, label + used + blank, size - used - blank))
        return;
    if (blank) label[used] = ' ';
}

static void write_label(const struct groups *groups, const struct row *row, bool origin, char *label, size_t size) {
    label[0] = 0;
    append_owner(groups, row->model, origin, label, size);
    append_owner(groups, row->node, origin, label, size);
    append_owner(groups, row->run, origin, label, size);
    const char *member = groups_member(groups, row);
    size_t used = strlen(label);
    if (*member)
        snprintf(label + used, size - used, "%s%s", used ? " " : "", member);
    else if (!used)
        snprintf(label, size, "untagged");
}

void groups_label(const struct groups *groups, const struct row *row, char *label, size_t size) {
    write_label(groups, row, false, label, size);
}

void groups_words(const struct groups *groups, const struct row *row, char *label, size_t size) {
    write_label(groups, row, true, label, size);
}

static int compare_name(const struct groups *groups, uint32_t a, uint32_t b) {
    return a == b ? 0 : strcmp(groups->name_list[a]->text, groups->name_list[b]->text);
}

/* Compares the names of two rows, for a stable order. */
static int row_compare_names(const struct groups *groups, const struct row *a, const struct row *b) {
    int order = compare_name(groups, a->model, b->model);
    order = order ? order : compare_name(groups, a->node, b->node);
    order = order ? order : compare_name(groups, a->run, b->run);
    return order ? order : compare_name(groups, a->member, b->member);
}

int64_t groups_row_growth(const struct row *row) {
    return (int64_t)(row->side[1].live_bytes - row->side[0].live_bytes);
}

uint64_t groups_row_change(const struct row *row) {
    int64_t growth = groups_row_growth(row);
    return growth < 0 ? -(uint64_t)growth : (uint64_t)growth;
}

int64_t groups_row_growth_blocks(const struct row *row) {
    return (int64_t)(row->side[1].live_blocks - row->side[0].live_blocks);
}

const struct row *groups_row(const struct groups *groups, size_t rank) { return &groups->rows[groups->order[rank]]; }

/* The key by which a row is sorted. Keys are sorted instead of rows, because rows are large and may be a million. */
struct rank {
    int64_t first, second; /* the highest comes first */
    uint64_t stack;
    uint32_t row;
};

static struct rank groups_rank_of(const struct groups *groups, uint32_t index, enum measure measure, bool growth) {
    const struct row *row = &groups->rows[index];
    if (growth) return (struct rank){groups_row_growth(row), groups_row_growth_blocks(row), row->stack, index};
    uint64_t bytes = groups->view == BY_THREAD || measure == MEASURE_ALLOCATED ? row->alloc_bytes
                     : measure == MEASURE_PEAK                                 ? row->peak_bytes
                                                                               : row->side[0].live_bytes;
    return (struct rank){(int64_t)(bytes >> 1), (int64_t)(bytes & 1), row->stack, index};
}

static int by_rank(const void *left, const void *right, void *context) {
    const struct rank *a = left, *b = right;
    const struct groups *groups = context;
    if (a->first != b->first) return a->first > b->first ? -1 : 1;
    if (a->second != b->second) return a->second > b->second ? -1 : 1;
    if (a->stack != b->stack) return a->stack < b->stack ? -1 : 1;
    return row_compare_names(groups, &groups->rows[a->row], &groups->rows[b->row]);
}

static int rows_sort(struct groups *groups, enum measure measure, bool growth, size_t most) {
    struct rank *ranks = malloc((groups->count + 1) * sizeof *ranks);
    free(groups->order);
    groups->order = malloc((groups->count + 1) * sizeof *groups->order);
    groups->ordered = 0;
    int result = ranks && groups->order ? 0 : -1;
    for (size_t i = 0; result == 0 && i < groups->count; i++)
        if (!growth || groups_row_growth(&groups->rows[i]) || groups_row_growth_blocks(&groups->rows[i]))
            ranks[groups->ordered++] = groups_rank_of(groups, (uint32_t)i, measure, growth);
    if (result == 0) top_sort(ranks, groups->ordered, sizeof *ranks, most, by_rank, groups);
    for (size_t i = 0; i < groups->ordered; i++) groups->order[i] = ranks[i].row;
    free(ranks);
    return result;
}

int groups_sort_by(struct groups *groups, enum measure measure, size_t most) {
    return rows_sort(groups, measure, false, most);
}

int groups_sort_by_growth(struct groups *groups, size_t most) { return rows_sort(groups, MEASURE_LIVE, true, most); }
