/* image.c — a ledger or snapshot in memory; see image.h. */
#include "tools/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void image_clear(struct image *image) {
    free(image->strings);
    free(image->facts);
    free(image->modules);
    free(image->tags);
    free(image->owners);
    free(image->threads);
    free(image->large);
    free(image->mappings);
    free(image->origins);
    free(image->misuses);
    free(image->points);
    free(image->cuda_points);
    free(image->marks);
    free(image->owner_marks);
    free(image->regions);
    free(image->nodes);
    free(image->words);
    free(image->frames);
    free(image->codes);
    free(image->places);
    free(image->trace);
    free(image->series);
    free(image->totals);
    free(image->variances);
    free(image->cuda.devices);
    free(image->cuda.sites);
    free(image->cuda.totals);
    free(image->cuda.blocks);
    free(image->cupti.blocks);
    free(image->nvml.devices);
    free(image->nvml.processes);
    memset(image, 0, sizeof *image);
}

void image_drop_totals(struct image *image) {
    free(image->totals);
    free(image->variances);
    image->totals = NULL;
    image->variances = NULL;
    image->total_count = image->total_capacity = 0;
}

double image_variance(const struct image *image, const struct total *total, enum measure measure) {
    return image->variances ? image->variances[total - image->totals][measure] : 0;
}

void image_sum(struct image *image) {
    image->host = image->mapped = image->inherited = (struct sum){0};
    image->inexact = 0;
    for (size_t i = 0; i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        image->inexact += total->flags & TOTAL_INEXACT;
        if (total->flags & TOTAL_INHERITED)
            total_sum_add(&image->inherited, total);
        else
            total_sum_add(total->class == SNAP_MAPPED ? &image->mapped : &image->host, total);
    }
    /* For inherited memory only frees are counted. So its live bytes are the bytes that existed at the fork, which the
     * header has, minus the freed bytes. */
    uint64_t existed = image->header.inherited_bytes, freed = image->inherited.free_bytes;
    image->inherited.live_bytes = existed > freed ? existed - freed : 0;
}

void image_sum_rss(struct image *image) {
    image->rss = 0;
    if (!(image->header.flags & SNAP_RESIDENCY)) return;
    for (size_t i = 0; i < image->region_count; i++) image->rss += image->regions[i].resident;
    if (image->header.rss_bytes) image->rss = image->header.rss_bytes;
}

const char *image_string(const struct image *image, uint32_t offset) {
    return offset < image->strings_size ? image->strings + offset : "";
}

const char *image_fact(const struct image *image, uint32_t key) {
    for (size_t i = 0; i < image->fact_count; i++)
        if (image->facts[i].key == key) return image_string(image, image->facts[i].string);
    return "";
}

const char *image_module(const struct image *image, uint32_t module) {
    if (module == 0 || module > image->module_count) return NULL;
    const char *path = image_string(image, image->modules[module - 1].path);
    return *path ? path : NULL;
}

const char *image_module_name(const struct image *image, uint32_t module) {
    const char *path = image_module(image, module);
    if (path) return path;
    return image->header.stacks == SNAP_STACKS_NONE ? "(no call sites)" : "(unknown module)";
}

const struct total *image_total(const struct image *image, uint32_t site) {
    return site && site <= image->total_count ? &image->totals[site - 1] : NULL;
}

const struct snap_tag *image_tag(const struct image *image, uint32_t tag) {
    static const struct snap_tag untagged;
    return tag < image->tag_count ? &image->tags[tag] : &untagged;
}

static int by_id(const void *left, const void *right) {
    const struct snap_owner *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

void image_sort_owners(struct image *image) {
    if (image->owner_count) qsort(image->owners, image->owner_count, sizeof *image->owners, by_id);
}

const struct snap_owner *image_owner(const struct image *image, uint32_t id) {
    struct snap_owner key = {.id = id};
    if (id == 0 || image->owner_count == 0) return NULL;
    return bsearch(&key, image->owners, image->owner_count, sizeof key, by_id);
}

const char *image_owner_name(const struct image *image, uint64_t id) {
    const struct snap_owner *owner = id <= UINT32_MAX ? image_owner(image, (uint32_t)id) : NULL;
    return owner ? image_string(image, owner->name) : NULL;
}

const char *image_owner_words(const struct image *image, uint64_t id, char *to, size_t size) {
    const char *name = image_owner_name(image, id);
    if (!name) return NULL;
    const struct snap_owner *owner = image_owner(image, (uint32_t)id);
    const char *origin = image_string(image, owner->origin);
    bool told = *origin && (owner->kind == SNAP_OWNER_MODEL || owner->kind == SNAP_OWNER_CUSTOM);
    snprintf(to, size, told ? "%s (%s)" : "%s", name, origin);
    return to;
}

/* The number of steps is limited to the number of owners, because in a damaged file owners may have adopted each other
 * in a circle. */
const struct snap_owner *image_heir(const struct image *image, uint32_t id) {
    const struct snap_owner *owner = image_owner(image, id), *next;
    for (size_t steps = 0; owner && owner->adopted_by && steps < image->owner_count; steps++, owner = next)
        if (!(next = image_owner(image, owner->adopted_by))) break;
    return owner;
}

uint32_t image_final_owner(const struct image *image, uint32_t id) {
    const struct snap_owner *last = image_heir(image, id);
    if (!last) return id;
    return last->adopted_by ? last->adopted_by : last->id;
}

void image_adopt(struct image *image) {
    for (size_t i = 0; i < image->tag_count; i++) image->tags[i].model = image_final_owner(image, image->tags[i].model);
}

bool image_has_tags(const struct image *image) {
    for (size_t i = 0; i < image->tag_count; i++)
        if (image->tags[i].model || image->tags[i].node || image->tags[i].run) return true;
    return false;
}

bool image_has_stacks(const struct image *image) {
    for (size_t i = 0; i < image->total_count; i++)
        if (image->totals[i].stack && image->totals[i].stack < image->node_count) return true;
    return false;
}

bool image_knows_now(const struct image *image) {
    return image->header.end_ns || image->header.taken_ns || image->running;
}

uint64_t image_now(const struct image *image) {
    if (image->header.end_ns) return image->header.end_ns;
    if (image->header.taken_ns) return image->header.taken_ns;
    if (!image_knows_now(image)) /* the last known time of the header */
        return image->header.total_peak_ns > image->header.start_ns ? image->header.total_peak_ns
                                                                    : image->header.start_ns;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t image_peak(const struct image *image) {
    uint64_t live = image->host.live_bytes + image->mapped.live_bytes;
    return image->header.total_peak > live ? image->header.total_peak : live;
}

bool image_same_process(const struct snap_header *a, const struct snap_header *b) {
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->exec_generation == b->exec_generation &&
           memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0;
}
