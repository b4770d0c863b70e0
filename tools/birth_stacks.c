/* birth_stacks.c — see birth_stacks.h. */
#include "birth_stacks.h"

#include <stdlib.h>

/* The stack of a site, as its record says; 0 for one that there is not. */
static uint32_t stack_of(const struct reader *reader, uint32_t id) {
    for (size_t i = 0; i < reader->section_count; i++) {
        const struct section *section = &reader->sections[i];
        struct snap_site site;
        if (section->head.type != SNAP_SITE || id < section->head.first) continue;
        uint64_t at = id - section->head.first;
        if (at >= section->head.count) continue;
        bool read =
            source_read(reader->source, section->data + at * section->head.record_size, &site, sizeof site) == 0;
        return read && site.word != SNAP_SITE_FREE ? snap_site_stack(site) : 0;
    }
    return 0;
}

/* Room for so many more, which are 0; NULL: no memory. */
static struct birth *add(struct reader *reader, size_t count) {
    struct image *image = reader->image;
    struct birth *grown = realloc(image->births, (image->birth_count + count + 1) * sizeof *grown);
    if (!grown) return NULL;
    image->births = grown;
    struct birth *added = grown + image->birth_count;
    for (size_t i = 0; i < count; i++) added[i] = (struct birth){0};
    image->birth_count += count;
    return added;
}

int birth_stacks_keep(struct reader *reader, const struct snap_birth *records, size_t count) {
    struct birth *births = add(reader, count);
    if (!births) return reader_memory(reader);
    for (size_t i = 0; i < count; i++)
        births[i] = (struct birth){.kind = records[i].kind,
                                   .key = records[i].key,
                                   .stack = stack_of(reader, records[i].site),
                                   .birth_ns = records[i].birth_ns,
                                   .device = records[i].device,
                                   .inode = records[i].inode};
    return 0;
}

int birth_stacks_keep_mapped(struct reader *reader, const struct snap_mapping *records, size_t count) {
    struct birth *births = add(reader, count);
    if (!births) return reader_memory(reader);
    for (size_t i = 0; i < count; i++)
        births[i] = (struct birth){.stack = stack_of(reader, records[i].site),
                                   .birth_ns = records[i].birth_ns,
                                   .start = records[i].address,
                                   .end = records[i].address + records[i].length};
    return 0;
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
