/* grouping.c — see grouping.h.
 *
 * The key of a row is a number: the id of an owner, the number of a module, or the slot of a thread. The key of a site
 * has its tag and its stack. If the site has no stack, the key has its module instead. */
#include "tools/top/grouping.h"
#include "tools/base/list.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_SHIFT = 32 };
#define IS_MODULE ((uint64_t)1 << 31)

uint32_t grouping_owner(uint64_t key) { return (uint32_t)key; }
uint32_t grouping_tag(uint64_t key) { return (uint32_t)(key >> TAG_SHIFT); }
uint32_t grouping_stack(uint64_t key) { return key & IS_MODULE ? 0 : (uint32_t)key; }
uint32_t grouping_module(enum view view, uint64_t key) {
    if (view == BY_MODULE) return (uint32_t)key;
    return key & IS_MODULE ? (uint32_t)(key & (IS_MODULE - 1)) : 0;
}

void grouping_begin(struct grouping *grouping, enum view view) {
    *grouping = (struct grouping){.view = view};
    rows_begin(&grouping->rows);
}

void grouping_end(struct grouping *grouping) {
    rows_end(&grouping->rows);
    free(grouping->row_of);
    free(grouping->tags);
    free(grouping->modules);
    *grouping = (struct grouping){0};
}

/* --- equal tags and modules --- */

static bool same_tag(const struct snap_tag *a, const struct snap_tag *b) {
    return a->model == b->model && a->node == b->node && a->run == b->run;
}

static int by_tag(const void *left, const void *right, void *context) {
    const struct snap_tag *tags = context;
    uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;
    const struct snap_tag *a = &tags[x], *b = &tags[y];
    if (a->model != b->model) return a->model < b->model ? -1 : 1;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    if (a->run != b->run) return a->run < b->run ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Finds for each tag the first tag with the same owners, because tags become equal when one owner adopts another.
 * *changed: a tag of the last call has another first tag now, or the last call had more tags. */
static int tags_match(struct grouping *grouping, const struct image *image, bool *changed) {
    size_t count = image->tag_count;
    uint32_t *order = malloc((count + 1) * sizeof *order), *first = malloc((count + 1) * sizeof *first);
    if (!order || !first) {
        free(order);
        free(first);
        return -1;
    }
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    if (count) qsort_r(order, count, sizeof *order, by_tag, image->tags);
    for (size_t i = 0, begin = 0; i < count; i++) {
        if (!same_tag(&image->tags[order[begin]], &image->tags[order[i]])) begin = i;
        first[order[i]] = order[begin];
    }
    size_t before = grouping->tag_count < count ? grouping->tag_count : count;
    *changed = grouping->tag_count > count || (before && memcmp(first, grouping->tags, before * sizeof *first) != 0);
    free(order);
    free(grouping->tags);
    grouping->tags = first;
    grouping->tag_count = count;
    return 0;
}

/* Finds for each module the first module with the same path. A slow search is enough, because modules are few and new
 * ones are rare. anew: the modules may be those of another program. */
static int modules_match(struct grouping *grouping, const struct image *image, bool anew) {
    if (!anew && grouping->module_count == image->module_count + 1) return 0;
    uint32_t *first = malloc((image->module_count + 1) * sizeof *first);
    if (!first) return -1;
    first[0] = 0;
    for (uint32_t i = 1; i <= image->module_count; i++) {
        const char *path = image_module_name(image, i);
        uint32_t k = 1;
        while (k < i && (first[k] != k || strcmp(path, image_module_name(image, k)) != 0)) k++;
        first[i] = k;
    }
    free(grouping->modules);
    grouping->modules = first;
    grouping->module_count = image->module_count + 1;
    return 0;
}

/* --- keys of rows --- */

static uint32_t module_first(const struct grouping *grouping, uint32_t module) {
    return module < grouping->module_count ? grouping->modules[module] : 0;
}

static uint64_t key_of(const struct grouping *grouping, enum view view, const struct image *image, uint32_t tag,
                       struct snap_site site) {
    uint32_t stack = snap_site_stack(site);
    switch (view) {
    case BY_MODEL:
        return image_tag(image, tag)->model;
    case BY_NODE:
        return image_tag(image, tag)->node;
    case BY_RUN:
        return image_tag(image, tag)->run;
    case BY_MODULE:
        return module_first(grouping, snap_site_module(site));
    default:
        tag = tag < grouping->tag_count ? grouping->tags[tag] : 0;
        return (uint64_t)tag << TAG_SHIFT |
               (stack ? stack : IS_MODULE | module_first(grouping, snap_site_module(site)));
    }
}

/* Whether the focus keeps a site with this tag and this record. */
static bool focus_keeps(const struct grouping *grouping, const struct image *image, uint32_t tag,
                        struct snap_site site) {
    const struct focus *focus = &grouping->focus;
    if (!focus->on || grouping->view != BY_SITE) return true;
    return key_of(grouping, focus->view, image, tag, site) == focus->key;
}

/* The row for a site with this tag and this record. Adds the row if it is new. ROWS_NONE: no memory. */
static uint32_t row_find(struct grouping *grouping, const struct image *image, uint32_t tag, struct snap_site site) {
    size_t before = grouping->rows.count;
    uint32_t row = rows_find(&grouping->rows, key_of(grouping, grouping->view, image, tag, site));
    if (grouping->rows.count > before) grouping->rows.matched[row] = focus_keeps(grouping, image, tag, site);
    return row;
}

/* The record of a site; its word is 0 if the record is not known. */
static struct snap_site site_at(const struct sampling *sampling, uint32_t id) {
    uint64_t word = id < sampling->site_count ? sampling->sites[id].word : 0;
    return (struct snap_site){word == SNAP_SITE_FREE ? 0 : word};
}

/* The row of a site. Adds the row if it is new. ROWS_NONE: no memory. */
static uint32_t row_of(struct grouping *grouping, const struct sampling *sampling, uint32_t id) {
    if (grouping->row_of[id]) return grouping->row_of[id] - 1;
    struct snap_site site = site_at(sampling, id);
    uint32_t row = row_find(grouping, &sampling->image, snap_site_tag(site), site);
    if (row != ROWS_NONE && id < sampling->site_count)
        grouping->row_of[id] = row + 1; /* records of later ids are not known yet */
    return row;
}

static int row_of_grow(struct grouping *grouping, size_t capacity) {
    size_t old = grouping->row_of_capacity;
    if (capacity <= old) return 0;
    uint32_t *grown = reallocarray(grouping->row_of, capacity, sizeof *grown);
    if (!grown) return -1;
    memset(grown + old, 0, (capacity - old) * sizeof *grown);
    grouping->row_of = grown;
    grouping->row_of_capacity = capacity;
    return 0;
}

/* --- adding up figures --- */

static int add_all(struct grouping *grouping, const struct sampling *sampling) {
    for (uint32_t id = 0; id < sampling->site_capacity; id++) {
        const struct sampling_site *site = &sampling->sites[id];
        int64_t live = (int64_t)(site->host + site->mapped), blocks = (int64_t)site->host_blocks + site->mapped_blocks;
        if (id == SNAP_SITE_INHERITED || !(live | blocks | (int64_t)site->began)) continue;
        uint32_t row = row_of(grouping, sampling, id);
        if (row == ROWS_NONE) return -1;
        rows_add(&grouping->rows, row, live, blocks);
        rows_add_began(&grouping->rows, row, (int64_t)site->began);
    }
    return 0;
}

static int add_changes(struct grouping *grouping, const struct sampling *sampling) {
    for (size_t i = 0; i < sampling->change_count; i++) {
        const struct sampling_change *change = &sampling->changes[i];
        if (change->site == SNAP_SITE_INHERITED) continue;
        uint32_t row = row_of(grouping, sampling, change->site);
        if (row == ROWS_NONE) return -1;
        rows_add(&grouping->rows, row, change->live, change->blocks);
    }
    return 0;
}

/* Adds CUDA memory of the kinds that are memory of a device. Records of CUDA sites are few: all of them are added up at
 * each look. */
static int add_devices(struct grouping *grouping, const struct sampling *sampling) {
    int64_t *device =
        sampling->cuda_site_count ? calloc(grouping->rows.capacity + sampling->cuda_site_count + 1, 8) : NULL;
    if (!sampling->cuda_site_count) return 0;
    if (!device) return -1;
    for (size_t i = 0; i < sampling->cuda_site_count; i++) {
        const struct snap_cuda_site *cuda = &sampling->cuda_sites[i];
        int64_t live = (int64_t)(cuda->counter.alloc_bytes - cuda->counter.free_bytes);
        if (!snap_cuda_on_device(cuda->kind) || live <= 0) continue;
        uint32_t row = row_find(grouping, &sampling->image, cuda->tag, site_at(sampling, cuda->site));
        if (row == ROWS_NONE) {
            free(device);
            return -1;
        }
        device[row] += live;
    }
    for (uint32_t row = 0; row < grouping->rows.count; row++) rows_set_device(&grouping->rows, row, device[row]);
    free(device);
    return 0;
}

/* Sets the rows by thread. A row has everything that was counted at a slot, for all threads that had the slot. */
static int set_threads(struct grouping *grouping, const struct sampling *sampling) {
    for (size_t slot = 0; slot < sampling->image.thread_count; slot++) {
        struct snap_counter total = sampling_thread(sampling, slot);
        if (!(total.alloc_blocks | total.free_blocks)) continue;
        uint32_t row = rows_find(&grouping->rows, slot);
        if (row == ROWS_NONE) return -1;
        rows_set(&grouping->rows, row, (int64_t)(total.alloc_bytes - total.free_bytes),
                 (int64_t)(total.alloc_blocks - total.free_blocks));
    }
    return 0;
}

static void threads_begin(struct grouping *grouping, const struct sampling *sampling) {
    struct rows *rows = &grouping->rows;
    for (uint32_t row = 0; row < rows->count; row++)
        if (rows->keys[row] < sampling->threads_began_count)
            rows_add_began(rows, row, sampling->threads_began[rows->keys[row]]);
}

/* It is not known how much each site had on devices when top began. So growth on devices is counted from the moment
 * when these rows were made: when the user chose the view, or when rows were joined. */
static void devices_begin(struct rows *rows) {
    for (uint32_t row = 0; row < rows->count; row++) rows_add_began(rows, row, rows->device[row]);
}

static int add_anew(struct grouping *grouping, const struct sampling *sampling) {
    rows_end(&grouping->rows);
    if (grouping->row_of) memset(grouping->row_of, 0, grouping->row_of_capacity * sizeof *grouping->row_of);
    if (row_of_grow(grouping, sampling->site_capacity) < 0) return -1;
    bool threads = grouping->view == BY_THREAD;
    if ((threads ? set_threads(grouping, sampling) : add_all(grouping, sampling)) < 0) return -1;
    if (!threads && add_devices(grouping, sampling) < 0) return -1;
    if (threads)
        threads_begin(grouping, sampling);
    else
        devices_begin(&grouping->rows);
    grouping->turns++;
    rows_settle(&grouping->rows);
    return 0;
}

int grouping_take(struct grouping *grouping, const struct sampling *sampling) {
    bool changed;
    if (sampling->stale) return 0;
    if (tags_match(grouping, &sampling->image, &changed) < 0 ||
        modules_match(grouping, &sampling->image, sampling->anew) < 0)
        return -1;
    if (changed || sampling->anew) return add_anew(grouping, sampling);
    rows_look(&grouping->rows);
    if (row_of_grow(grouping, sampling->site_capacity) < 0) return -1;
    if (grouping->view == BY_THREAD) return set_threads(grouping, sampling);
    return add_changes(grouping, sampling) < 0 ? -1 : add_devices(grouping, sampling);
}

int grouping_turn(struct grouping *grouping, const struct sampling *sampling, enum view view) {
    bool changed;
    grouping->view = view;
    if (tags_match(grouping, &sampling->image, &changed) < 0 ||
        modules_match(grouping, &sampling->image, sampling->anew) < 0)
        return -1;
    return add_anew(grouping, sampling);
}
