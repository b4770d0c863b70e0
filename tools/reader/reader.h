/* reader.h — bytes of a ledger or snapshot → struct image.
 * In: a source, which is treated as hostile. Out: tables and totals, or one message in image->error. It never
 * trusts a length, a count, an offset or a number, and allocates no more than the input can fill. */
#ifndef MEMSTOW_READER_H
#define MEMSTOW_READER_H

#include "tools/reader/image.h"
#include "tools/reader/source.h"

/* 0, or -1 with image->error set. `live`: the process is alive and writes while this reads. */
int reader_load(struct image *image, struct source *source, bool live);

/* The header alone, checked as far as it goes. */
int reader_header(struct snap_header *header, const struct source *source, char *error, size_t error_size);

/* Between reader.c and counters.c. */
struct section {
    struct snap_section head;
    uint64_t data;     /* offset of the first record */
    uint64_t capacity; /* records that its length has room for */
};

/* counters.c: the sections that hold wide counters. */
struct wide_counters {
    struct wide_section {
        struct section section;
        uint64_t address; /* where it was in the process */
    } sections[32];       /* each is twice as large as the one before */
    size_t count;
    bool missing;    /* there were more, in sections that are not known yet */
    uint64_t window; /* of a process that is gone: offset of what was read last */
    size_t window_length;
    uint8_t window_bytes[4096];
};

struct reader {
    struct image *image;
    const struct source *source;
    bool live;
    struct section *sections;
    size_t section_count;
    uint32_t *site_of; /* ledger: site of each total */
    struct wide_counters wide;
};

/* Says why, "damaged at OFFSET: …", and gives -1. */
int reader_damaged(const struct reader *reader, uint64_t offset, const char *why);
int reader_memory(const struct reader *reader);

/* All records of a type in one array of the size that this version knows: *records and *count. 0 or -1. */
int reader_table(struct reader *reader, uint32_t type, size_t record_size, void **records, size_t *count);

/* Adds a total; 0 or -1. */
int reader_add_total(struct reader *reader, const struct total *total);

/* counters.c, for a ledger, in this order: where the wide counters are; totals by site; what the sites are; and, once
 * the tables are there, totals by thread, and a total (1 + index) in place of the site of each large block and mapping.
 */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
uint64_t counters_chunks(const struct reader *reader);

/* picture.c: once the totals are there, in the order of their sites. */
int picture_load(struct reader *reader);

#endif
