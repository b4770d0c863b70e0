/* origin_stacks.c — see origin_stacks.h. */
#include "tools/reader/origin_stacks.h"

#include <stdlib.h>

/* The table of all sites. It is read once for all origins, because a hostile file may have a million sections and as
 * many origins. */
struct sites {
    struct snap_site *records;
    size_t count;
};

/* The stack in a site's record; 0 for an unknown site. */
static uint32_t stack_of(const struct sites *sites, uint32_t id) {
    return id < sites->count && sites->records[id].word != SNAP_SITE_FREE ? snap_site_stack(sites->records[id]) : 0;
}

/* Adds `count` zeroed origins. NULL: no memory. */
static struct origin *origin_add(struct reader *reader, size_t count) {
    struct image *image = reader->image;
    struct origin *grown = realloc(image->origins, (image->origin_count + count + 1) * sizeof *grown);
    if (!grown) return NULL;
    image->origins = grown;
    struct origin *added = grown + image->origin_count;
    for (size_t i = 0; i < count; i++) added[i] = (struct origin){0};
    image->origin_count += count;
    return added;
}

static int origins_keep(struct reader *reader, const struct sites *sites, const struct snap_origin *records,
                        size_t count) {
    struct origin *origins = origin_add(reader, count);
    if (!origins) return reader_memory(reader);
    for (size_t i = 0; i < count; i++)
        origins[i] = (struct origin){.kind = records[i].kind,
                                     .key = records[i].key,
                                     .stack = stack_of(sites, records[i].site),
                                     .birth_ns = records[i].birth_ns,
                                     .device = records[i].device,
                                     .inode = records[i].inode};
    return 0;
}

static int keep_mapped(struct reader *reader, const struct sites *sites, const struct snap_mapping *records,
                       size_t count) {
    struct origin *origins = origin_add(reader, count);
    if (!origins) return reader_memory(reader);
    for (size_t i = 0; i < count; i++)
        origins[i] = (struct origin){.stack = stack_of(sites, records[i].site),
                                     .birth_ns = records[i].birth_ns,
                                     .start = records[i].address,
                                     .end = records[i].address + records[i].length};
    return 0;
}

int origin_stacks_keep(struct reader *reader, const struct snap_origin *origins, size_t count,
                       const struct snap_mapping *mappings, size_t mapping_count) {
    struct sites sites = {NULL, 0};
    if (!count && !mapping_count) return 0;
    int failed = reader_table(reader, SNAP_SITE, sizeof *sites.records, (void **)&sites.records, &sites.count) < 0 ||
                 origins_keep(reader, &sites, origins, count) < 0 ||
                 keep_mapped(reader, &sites, mappings, mapping_count) < 0;
    free(sites.records);
    return failed ? -1 : 0;
}

int origin_stacks_lend(struct reader *reader) {
    const struct image *image = reader->image;
    for (size_t i = 0; i < image->origin_count; i++) {
        struct total total = {.stack = image->origins[i].stack};
        if (reader_add_total(reader, &total) < 0) return -1;
    }
    return 0;
}

void origin_stacks_take_back(struct reader *reader) {
    struct image *image = reader->image;
    image->total_count -= image->origin_count;
    for (size_t i = 0; i < image->origin_count; i++)
        image->origins[i].stack = image->totals[image->total_count + i].stack;
}
