/* sampling.h — looks at the ledger of one running process again and again, and reads what changed since the last look.
 * In: a pid. Out: totals, figures by site, and the sites that changed. It reads the mapped file from outside: the
 * process pays nothing. Each chunk of counters has a mark, which tells whether the counters have changed. Most chunks
 * that have not changed are therefore not read. */
#ifndef MEMSTOW_TOP_SAMPLING_H
#define MEMSTOW_TOP_SAMPLING_H

#include "tools/reader/counters.h"
#include "tools/reader/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A site as of the last look. */
struct sampling_site {
    uint64_t word;         /* the word of a struct snap_site; 0 also while the word is not known */
    uint64_t host, mapped; /* live bytes */
    uint64_t began;        /* host and mapped together, when top began */
    uint32_t host_blocks, mapped_blocks;
};

/* A site whose figures changed, and the differences. */
struct sampling_change {
    uint32_t site;
    int64_t live, blocks;
};

/* A chunk of counters as of the last look: where it is, its mark, and the sum of its counters. */
struct sampling_chunk {
    struct counters_chunk at;
    bool known; /* it was read before */
    uint64_t mark;
    struct snap_counter sum;
};

enum sampling_state {
    SAMPLING_RUNS,
    SAMPLING_ENDED,    /* the process is gone: the figures are its last ones */
    SAMPLING_REPLACED, /* the process became another program, which is not tracked */
};

/* Figures of the process. The figures of the heap and of mappings are exact. */
struct sampling_totals {
    uint64_t host, mapped, blocks, allocated;
    uint64_t peak; /* exact to 1 MiB */
    uint64_t rss, devices;
    bool uses_devices;
};

struct sampling {
    pid_t pid;
    char path[4096];
    enum sampling_state state;
    char ended[160]; /* how the process ended, in words */
    struct source source;
    struct image image; /* header, and tables for names; stacks are read one by one */
    struct reader reader;
    uint64_t looks, look_ns, begin_ns;
    double seconds;      /* between the last two looks */
    uint32_t execs;      /* how often the process became another tracked program */
    uint32_t exec_waits; /* looks in a row that saw an execve, but no ledger of the next program yet */

    struct sampling_chunk *chunks; /* in the order of the file */
    size_t chunk_count, chunk_capacity;
    uint32_t *by_index;  /* chunks sorted by index */
    size_t *index_first; /* by index: where the chunks of the index begin in by_index; one entry more at the end */
    uint8_t *dirty;      /* by index: 1 if a counter of its chunks may have changed */
    size_t index_count, used_count;

    struct sampling_site *sites;
    size_t site_count, site_capacity;
    struct sampling_change *changes;
    size_t change_count, change_capacity;
    struct snap_counter *threads; /* by slot: sums of the chunks that have the slot's counters */
    size_t thread_capacity;
    int64_t *threads_began; /* by slot: live bytes, when top began */
    size_t threads_began_count;
    struct snap_cuda_site *cuda_sites;
    size_t cuda_site_count;

    /* The ledger's fold_sequence at the last look. In the ledger it changes when ids of stacks are given to other
     * stacks. If the next look finds another value there, it reads everything anew. sampling_distrust makes this copy
     * differ from the ledger's. */
    uint32_t fold_sequence;
    bool anew;  /* the last look read everything: there is no list of changes, and all rows must be added up again */
    bool stale; /* the last look changed nothing: stacks were being folded, or the program was gone */
    struct sampling_totals totals, began;
};

/* Opens the ledger, and takes the first look. Returns 0, or -1 with the reason. */
int sampling_begin(struct sampling *sampling, pid_t pid, char *error, size_t error_size);
void sampling_end(struct sampling *sampling);

/* Takes a look. Returns 0, or -1 with the reason: the file is damaged, or there is no memory. A process that has ended
 * is no fault. */
int sampling_look(struct sampling *sampling, char *error, size_t error_size);
/* Makes the next look read everything anew. Call it if the caller could not use the changes of the last look. */
void sampling_distrust(struct sampling *sampling);
/* Whether `next` is the header of the program that followed the program of `old` in the same process. */
bool sampling_is_next(const struct snap_header *old, const struct snap_header *next);

/* How many records all sections of a type have. */
uint64_t sampling_records(const struct sampling *sampling, uint32_t type);
/* For chunks.c: takes over the new counters of the SNAP_CHUNK_SITES sites of one index. Returns 0 or -1. */
int sampling_take(struct sampling *sampling, uint32_t index, const struct counters_sites *sites);

/* All that was counted at a slot (the counters of a thread), including the threads that had the slot earlier. */
struct snap_counter sampling_thread(const struct sampling *sampling, size_t slot);

/* Makes sure that the image has the frames and functions that names need. Returns 0, or -1. */
int sampling_load_names(struct sampling *sampling);
/* Copies the frames of a stack in the ledger, innermost first, at most `most`. `place`: where its innermost frame is.
 * Returns their number. */
size_t sampling_stack(const struct sampling *sampling, uint32_t place, uint32_t *frames, size_t most);

#endif
