/* reader.h — reads the header, sections and records of a ledger or snapshot.
 * In: a source, which is treated as hostile. Out: arrays of records, or one message in image->error. It never trusts a
 * length, count, offset or number, and allocates no more than the input can fill. */
#ifndef MEMSTOW_READER_H
#define MEMSTOW_READER_H

#include "tools/image/image.h"
#include "tools/reader/source.h"

/* Reads and checks the header alone. Returns 0, or -1 with the reason in `error`. */
int reader_header(struct snap_header *header, const struct source *source, char *error, size_t error_size);

struct section {
    struct snap_section head;
    uint64_t data;     /* offset of the first record */
    uint64_t capacity; /* how many records fit into the section */
};

/* For counters.c: the sections that hold wide counters. A chunk has one word for each counter. A counter that does not
 * fit into its word is a wide counter: it is in one of these sections, and the word has the wide counter's address in
 * the process. */
struct wide_counters {
    struct wide_section {
        struct section section;
        uint64_t address, length; /* the section's address in the process; the length of all its records */
    } sections[32];               /* each section is twice as large as the previous one */
    size_t count, last;           /* last: in which section a counter was last found. The next is often there */
    bool missing;                 /* a counter was in a section that is not in the list yet */
    uint64_t window;              /* for a process that is gone: the file offset of the window that was read last */
    size_t window_length;
    uint8_t window_bytes[4096];
};

struct reader {
    struct image *image;
    const struct source *source;
    bool live;
    bool figures; /* only figures are read: image_load_figures */
    struct section *sections;
    size_t section_count, section_capacity;
    uint32_t *site_of;          /* ledger only: the site of each total; counters_name_sites sets it */
    struct snap_counter *slots; /* ledger only: what was counted at each slot of a thread */
    size_t slot_capacity;
    struct wide_counters wide;
};

/* Each of these three functions sets image->error and returns -1. The error says that the file is damaged at byte
 * `offset`, that there is not enough memory, or that the file is truncated at byte `offset`. */
int reader_damaged(const struct reader *reader, uint64_t offset, const char *why);
int reader_memory(const struct reader *reader);
int reader_truncated(const struct reader *reader, uint64_t offset);

/* Refuses a table of more than 2 GiB. A sparse file could claim a table of any size, and reading it would not end.
 * `where`: the offset for the message. Returns 0 or -1. */
int reader_bound(const struct reader *reader, uint64_t where, uint64_t count, size_t record_size);

/* Lists in reader->sections all sections of types that this version reads. Returns 0 or -1. */
int reader_scan(struct reader *reader);

/* Copies all records of a type into a new array, *records, which the caller frees. Each record is cut to `record_size`,
 * or filled up with zeros. *count: the number of records. Returns 0 or -1. */
int reader_table(struct reader *reader, uint32_t type, size_t record_size, void **records, size_t *count);

/* Makes room for `count` totals in all. Returns 0 or -1. */
int reader_reserve_totals(struct reader *reader, size_t count);
/* Adds a total. Returns 0 or -1. */
int reader_add_total(struct reader *reader, const struct total *total);

#endif
