/* report_list.c — what the text and the JSON report list alike; see report.h. */
#include "report.h"

#include <stdlib.h>

static int by_size(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (a->birth_ns != b->birth_ns) return a->birth_ns < b->birth_ns ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

struct listed *report_listed(const struct image *image, bool large, bool mappings, size_t *count) {
    struct listed *list = calloc(image->large_count + image->mapping_count + 1, sizeof *list);
    *count = 0;
    if (!list) return NULL;
    for (size_t i = 0; large && i < image->large_count; i++) {
        const struct snap_large *block = &image->large[i];
        list[(*count)++] = (struct listed){block->address, block->size, block->birth_ns, block->resident, block->site,
                                           block->thread,  NULL};
    }
    for (size_t i = 0; mappings && i < image->mapping_count; i++) {
        const struct snap_mapping *mapping = &image->mappings[i];
        list[(*count)++] =
            (struct listed){mapping->address, mapping->length, mapping->birth_ns, mapping->resident, mapping->site,
                            mapping->tid,     mapping};
    }
    qsort(list, *count, sizeof *list, by_size);
    return list;
}

const char *report_state(const struct image *image) {
    switch (image->header.state) {
    case SNAP_RUNNING:
        if (image->running) return "running";
        return image->header.kind == SNAP_SNAPSHOT ? "was running when this snapshot was taken"
                                                   : "ended without saying so (killed?)";
    case SNAP_EXITED:
        return "exited";
    case SNAP_ABRUPT_EXIT:
        return "ended by _exit";
    case SNAP_EXECED:
        return "replaced itself by another program (exec)";
    default:
        return "in an unknown state";
    }
}

const char *mapping_kind_name(uint32_t kind) {
    switch (kind) {
    case SNAP_MAP_ANONYMOUS:
        return "anonymous";
    case SNAP_MAP_FILE:
        return "file";
    case SNAP_MAP_RESERVED:
        return "reserved";
    case SNAP_MAP_BRK:
        return "brk";
    default:
        return "unknown";
    }
}

uint64_t age_ns(const struct image *image, uint64_t birth_ns) {
    uint64_t now = image_now(image);
    return now > birth_ns ? now - birth_ns : 0;
}
