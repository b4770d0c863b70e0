/* resident.h — splits the resident memory (RSS) of a process by use.
 * In: an image with regions. Out: parts that add up to the RSS, and a sentence of advice. */
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
    uint64_t live;         /* live blocks: large ones by their resident pages, small ones by their size */
    uint64_t overhead;     /* estimate: the bytes that the allocator adds to live blocks, by headers and rounding */
    uint64_t retained;     /* estimate: freed memory that the allocator keeps */
    uint64_t anonymous;    /* anonymous mappings of the program */
    uint64_t program_data; /* .data and .bss of the program and its libraries */
    uint64_t file;         /* mapped files */
    uint64_t of_devices;   /* memory that was moved out of devices */
    uint64_t buffers;      /* memstow's pinned buffers for copies from and to devices */
    uint64_t stowed;       /* pages of stowed blocks and mappings that were used again; a file backs them */
    uint64_t stack;
    uint64_t own;                /* memstow's own memory: tables, ledger, library, headers of blocks */
    uint64_t headers;            /* part of own: the headers of live blocks */
    uint64_t rest;               /* the part of the RSS that nothing above explains */
    struct resident_file *files; /* the largest first */
    size_t file_count;
    char advice[200]; /* "": there is no advice */
};

/* Splits the RSS of an image. Returns 0, or -1: no memory. */
int resident_split(struct resident *resident, const struct image *image);
void resident_clear(struct resident *resident);

#endif
