/* resident.h — where the resident memory of a process is: its RSS, split by use.
 * In: an image with regions. Out: the parts, which add up to the RSS, and a sentence of advice. */
#ifndef MEMSTOW_RESIDENT_H
#define MEMSTOW_RESIDENT_H

#include "tools/image/image.h"

struct resident_file {
    const char *path;
    uint64_t bytes;
};

struct resident {
    bool measured;
    uint64_t rss;
    uint64_t live;         /* live blocks; what of them is not resident is capped away */
    uint64_t overhead;     /* what the allocator adds to live blocks, headers and rounding: an estimate */
    uint64_t retained;     /* freed memory that the allocator keeps: an estimate, never more than was freed */
    uint64_t anonymous;    /* mappings that the program made */
    uint64_t program_data; /* .data and .bss of the program and its libraries */
    uint64_t file;         /* mapped files */
    uint64_t of_devices;   /* what was moved out of devices */
    uint64_t buffers;      /* memstow's, pinned, by which that is copied */
    uint64_t stowed;       /* blocks and mappings that were stowed, where they were used again: a file backs them */
    uint64_t stack;
    uint64_t own;     /* memstow's: tables, ledger, library, headers of blocks */
    uint64_t headers; /* of own: the headers of live blocks */
    uint64_t rest;
    struct resident_file *files; /* the most first */
    size_t file_count;
    char advice[200]; /* "" when there is nothing to say */
};

int resident_split(struct resident *resident, const struct image *image); /* 0, or -1: no memory */
void resident_clear(struct resident *resident);

#endif
