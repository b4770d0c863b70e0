/* birth_stacks.c — see birth_stacks.h. */
#include "tools/reader/birth_stacks.h"

#include <stdlib.h>

/* What all sites are, once for all births: a hostile file has a million sections, and as many births. */
struct sites {
    struct snap_site *records;
    size_t count;
};

/* The stack of a site, as its record says; 0 for one that there is not. */
static uint32_t stack_of(const struct sites *sites, uint32_t id) {
    return id < sites->count && sites->records[id].word != SNAP_SITE_FREE ? snap_site_stack(sites->records[id]) : 0;
}

/* Room for so many more, which are 0; NULL: no memory. */
static struct birth *birth_add(struct reader *reader, size_t count) {
    struct image *image = reader->image;
    struct birth *grown = realloc(image->births, (image->birth_count + count + 1) * sizeof *grown);
    if (!grown) return NULL;
    image->births = grown;
    struct birth *added = grown + image->birth_count;
    for (size_t i = 0; i < count; i++) added[i] = (struct birth){0};
    image->birth_count += count;
    return added;
}

static int births_keep(struct reader *reader, const struct sites *sites, const struct snap_birth *records,
                       size_t count) {
    struct birth *births = birth_add(reader, count);
    if (!births) return reader_memory(reader);
    for (size_t i = 0; i < count; i++)
        births[i] = (struct birth){.kind = records[i].kind,
                                   .key = records[i].key,
                                   .stack = stack_of(sites, records[i].site),
                                   .birth_ns = records[i].birth_ns,
                                   .device = records[i].device,
                                   .inode = records[i].inode};
    return 0;
}

static int keep_mapped(struct reader *reader, const struct sites *sites, const struct snap_mapping *records,
                       size_t count) {
    struct birth *births = birth_add(reader, count);
    if (!births) return reader_memory(reader);
    for (size_t i = 0; i < count; i++)
        births[i] = (struct birth){.stack = stack_of(sites, records[i].site),
                                   .birth_ns = records[i].birth_ns,
                                   .start = records[i].address,
                                   .end = records[i].address + records[i].length};
    return 0;
}

int birth_stacks_keep(struct reader *reader, const struct snap_birth *births, size_t count,
                      const struct snap_mapping *mappings, size_t mapping_count) {
    struct sites sites = {NULL, 0};
    if (!count && !mapping_count) return 0;
    int failed = reader_table(reader, SNAP_SITE, sizeof *sites.records, (void **)&sites.records, &sites.count) < 0 ||
                 births_keep(reader, &sites, births, count) < 0 ||
                 keep_mapped(reader, &sites, mappings, mapping_count) < 0;
    free(sites.records);
    return failed ? -1 : 0;
}

int birth_stacks_lend(struct reader *reader) {
    const struct image *image = reader->image;
    for (size_t i = 0; i < image->birth_count; i++) {
        struct total total = {.stack = image->births[i].stack};
        if (reader_add_total(reader, &total) < 0) return -1;
    }
    return 0;
}

void birth_stacks_take_back(struct reader *reader) {
    struct image *image = reader->image;
    image->total_count -= image->birth_count;
    for (size_t i = 0; i < image->birth_count; i++)
        image->births[i].stack = image->totals[image->total_count + i].stack;
}
