/* ranges.c — see ranges.h. */
#include "tools/subject/ranges.h"

#include <stdlib.h>
#include <string.h>

static int by_start(const void *left, const void *right) {
    const struct use_range *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int by_value(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void range_add(struct ranges *ranges, enum use use, uint64_t start, uint64_t end,
                      const struct snap_mapping *mapping) {
    if (start == 0 || end <= start) return;
    ranges->list[use][ranges->count[use]++] = (struct use_range){start, end, mapping};
    ranges->edges[ranges->edge_count++] = start;
    ranges->edges[ranges->edge_count++] = end;
}

static void collect_own(struct ranges *ranges, const struct snap_header *header) {
    size_t most = sizeof header->own / sizeof *header->own;
    size_t count = header->own_ranges < most ? header->own_ranges : most;
    for (size_t i = 0; i < count; i++)
        range_add(ranges, USE_OWN, header->own[i].start, header->own[i].start + header->own[i].length, NULL);
    const struct snap_range *map = &header->ledger_map;
    range_add(ranges, USE_OWN, map->start, map->start + map->length, NULL);
    map = &header->library_map;
    range_add(ranges, USE_OWN, map->start, map->start + map->length, NULL);
}

int ranges_collect(struct ranges *ranges, const struct image *image) {
    memset(ranges, 0, sizeof *ranges);
    size_t own = sizeof image->header.own / sizeof *image->header.own + 2;
    size_t all = own + image->mapping_count + image->thread_count + image->cuda.block_count;
    ranges->list[USE_OWN] = calloc(own, sizeof(struct use_range));
    ranges->list[USE_BACKUP] = calloc(image->cuda.block_count + 1, sizeof(struct use_range));
    ranges->list[USE_BUFFER] = calloc(image->cuda.block_count + 1, sizeof(struct use_range));
    ranges->list[USE_MAPPING] = calloc(image->mapping_count + 1, sizeof(struct use_range));
    ranges->list[USE_STACK] = calloc(image->thread_count + 1, sizeof(struct use_range));
    ranges->edges = calloc(2 * all, sizeof *ranges->edges);
    if (!ranges->list[USE_OWN] || !ranges->list[USE_BACKUP] || !ranges->list[USE_BUFFER] ||
        !ranges->list[USE_MAPPING] || !ranges->list[USE_STACK] || !ranges->edges) {
        ranges_clear(ranges);
        return -1;
    }
    collect_own(ranges, &image->header);
    for (size_t i = 0; i < image->cuda.block_count; i++) {
        const struct snap_cuda_block *block = &image->cuda.blocks[i];
        if (block->kind == SNAP_CUDA_BACKUP)
            range_add(ranges, USE_BACKUP, block->address, block->address + block->size, NULL);
        if (block->kind == SNAP_CUDA_BUFFER)
            range_add(ranges, USE_BUFFER, block->address, block->address + block->size, NULL);
    }
    for (size_t i = 0; i < image->mapping_count; i++) {
        const struct snap_mapping *mapping = &image->mappings[i];
        range_add(ranges, USE_MAPPING, mapping->address, mapping->address + mapping->length, mapping);
    }
    /* Stacks of ended threads count, too: glibc keeps them for the next thread. */
    for (size_t i = 0; i < image->thread_count; i++)
        range_add(ranges, USE_STACK, image->threads[i].stack_start, image->threads[i].stack_end, NULL);
    for (int use = USE_OWN; use < USE_KINDS; use++)
        qsort(ranges->list[use], ranges->count[use], sizeof(struct use_range), by_start);
    qsort(ranges->edges, ranges->edge_count, sizeof *ranges->edges, by_value);
    return 0;
}

void ranges_clear(struct ranges *ranges) {
    for (int use = 0; use < USE_KINDS; use++) free(ranges->list[use]);
    free(ranges->edges);
    memset(ranges, 0, sizeof *ranges);
}

/* The range of `use` that has the address; NULL: none. */
static const struct use_range *range_find(const struct ranges *ranges, enum use use, uint64_t address) {
    size_t low = 0, high = ranges->count[use];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->list[use][middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct use_range *last = low ? &ranges->list[use][low - 1] : NULL;
    return last && address < last->end ? last : NULL;
}

enum use ranges_use(const struct ranges *ranges, uint64_t address, const struct use_range **range) {
    for (enum use use = USE_OWN; use < USE_KINDS; use++) {
        *range = range_find(ranges, use, address);
        if (*range) return use;
    }
    return USE_UNKNOWN;
}

uint64_t ranges_next_edge(const struct ranges *ranges, uint64_t address, uint64_t limit) {
    size_t low = 0, high = ranges->edge_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->edges[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges->edge_count && ranges->edges[low] < limit ? ranges->edges[low] : limit;
}
