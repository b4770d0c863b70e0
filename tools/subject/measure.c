/* measure.c — see measure.h. The kernel merges neighbouring mappings into one region. So this file cuts a region
 * wherever the ledger says that the use of memory changes. Otherwise, the resident bytes of each use could not be told
 * apart later. */
#include "tools/subject/measure.h"
#include "tools/base/list.h"
#include "preload/shared/residency.h"
#include "tools/subject/ranges.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct visit {
    struct image *image;
    const struct residency *residency;
    const struct ranges *ranges;
    size_t capacity, strings_capacity;
};

static uint32_t add_string(struct visit *visit, const char *string) {
    struct image *image = visit->image;
    uint64_t length = strlen(string) + 1;
    /* Pieces of one region, and regions of one file, follow each other, so they can share one string. */
    if (image->region_count) {
        uint32_t last = image->regions[image->region_count - 1].path;
        if (strcmp(image_string(image, last), string) == 0) return last;
    }
    if (image->strings_size == 0 || image->strings_size + length > visit->strings_capacity) {
        uint64_t capacity = 2 * (image->strings_size + length) + 4096;
        char *grown = capacity < UINT32_MAX ? realloc(image->strings, capacity) : NULL;
        if (!grown) return 0;
        if (image->strings_size == 0) grown[image->strings_size++] = 0; /* offset 0 is "" */
        image->strings = grown;
        visit->strings_capacity = capacity;
    }
    if (length == 1) return 0;
    uint32_t offset = (uint32_t)image->strings_size;
    memcpy(image->strings + offset, string, length);
    image->strings_size += length;
    return offset;
}

static int add_region(struct visit *visit, const struct snap_region *region) {
    struct image *image = visit->image;
    if (!LIST_GROW(image->regions, image->region_count, visit->capacity)) return 1;
    image->regions[image->region_count++] = *region;
    return 0;
}

static int visit_region(void *context, const struct residency_region *seen) {
    struct visit *visit = context;
    uint32_t path = add_string(visit, seen->path);
    for (uint64_t start = seen->start, end; start < seen->end; start = end) {
        end = ranges_next_edge(visit->ranges, start, seen->end);
        end = (end + visit->residency->page_size - 1) / visit->residency->page_size * visit->residency->page_size;
        if (end > seen->end || end <= start) end = seen->end;
        struct snap_region region = {.start = start, .end = end, .path = path, .flags = seen->flags};
        region.resident = residency_count(visit->residency, start, end, &region.anonymous);
        if (add_region(visit, &region) != 0) return 1;
    }
    return 0;
}

static void measure_blocks(struct image *image, const struct residency *residency) {
    for (size_t i = 0; i < image->large_count; i++) {
        struct snap_large *large = &image->large[i];
        large->resident = residency_count(residency, large->address, large->address + large->size, NULL);
    }
    for (size_t i = 0; i < image->mapping_count; i++) {
        struct snap_mapping *mapping = &image->mappings[i];
        mapping->resident = residency_count(residency, mapping->address, mapping->address + mapping->length, NULL);
    }
}

static void forget_regions(struct image *image) {
    free(image->regions);
    image->regions = NULL;
    image->region_count = 0;
    image->rss = image->header.rss_bytes = 0;
    image->header.flags &= ~(uint32_t)SNAP_RESIDENCY;
}

bool measure_residency(struct image *image, pid_t pid) {
    struct residency residency;
    struct ranges ranges;
    struct timespec now;
    forget_regions(image);
    if (ranges_collect(&ranges, image) < 0) return false;
    if (residency_open(&residency, pid) < 0) {
        ranges_clear(&ranges);
        return false;
    }
    struct visit visit = {.image = image, .residency = &residency, .ranges = &ranges};
    int result = residency_regions(&residency, visit_region, &visit);
    measure_blocks(image, &residency);
    image->header.rss_bytes = residency_rss(&residency);
    residency_close(&residency);
    ranges_clear(&ranges);
    if (result != 0 || image->region_count == 0) {
        forget_regions(image);
        return false;
    }
    for (size_t i = 0; i < image->region_count; i++) image->rss += image->regions[i].resident;
    clock_gettime(CLOCK_MONOTONIC, &now);
    image->header.residency_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    image->header.flags |= SNAP_RESIDENCY;
    image_sum_rss(image);
    return true;
}
