/* image.h — a ledger or snapshot in memory: flat tables; accessors check every reference.
 * In: the tables that the reader fills. Out: tables and sums for every view. It opens no file. */
#ifndef MEMSTOW_IMAGE_H
#define MEMSTOW_IMAGE_H

#include "preload/shared/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum total_flag {
    TOTAL_INEXACT = SNAP_TOTALS_INEXACT,
    TOTAL_INHERITED = SNAP_TOTALS_INHERITED,
    TOTAL_UNKNOWN_SITE = SNAP_TOTALS_UNKNOWN,
    TOTAL_NOT_SAMPLED = SNAP_TOTALS_NOT_SAMPLED,
    /* The exact sum of a tag minus the sum of its estimates. It may be negative. No file has such a total. */
    TOTAL_REMAINDER = 1 << 7,
};

/* The measures of a total: memory that is live, memory that was live in the picture of the peak, and all memory that
 * was ever allocated. */
enum measure { MEASURE_LIVE, MEASURE_PEAK, MEASURE_ALLOCATED, MEASURES };

/* The figures of one site in one class (host or mapped memory). The first total of a site has the site's figures at the
 * peak. */
struct total {
    uint32_t tag, stack, module; /* stack: a node, 0: none; module: 1 + id, 0: none */
    uint8_t class, flags;        /* enum snap_class, enum total_flag */
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
    uint64_t peak_bytes, peak_blocks;
};

struct sum {
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks, live_bytes, live_blocks;
};

/* CUPTI's report about CUDA memory, and the differences between the report and the ledger. */
struct cupti_image {
    bool asked; /* false: nobody asked for the comparison, or the program did not start CUDA */
    struct snap_cupti head;
    struct snap_cupti_block *blocks; /* the differences that the file lists; there may be more */
    size_t block_count;
};

/* CUDA memory of the process. None of the totals includes it; cuda_image.h reads it. */
struct cuda_image {
    bool used; /* false: the process has not used CUDA */
    struct snap_cuda head;
    struct snap_cuda_device *devices;
    struct snap_cuda_site *sites;   /* by id */
    struct total *totals;           /* one for each site */
    struct snap_cuda_block *blocks; /* live blocks */
    size_t device_count, site_count, block_count;
    /* kinds: for each kind, the sum of the sites of that kind. device: the sum of all kinds that take device memory. */
    struct sum kinds[SNAP_CUDA_KINDS], device;
};

/* NVML's report about devices. */
struct nvml_image {
    struct snap_nvml *devices;
    struct snap_nvml_process *processes;
    size_t device_count, process_count; /* 0 devices: NVML was not asked */
    bool now;                           /* NVML was asked now; false: when the snapshot was taken */
};

/* The origin of a descriptor, a thread, or memory that other processes may share: where it was opened, started or
 * mapped. */
struct origin {
    uint32_t kind; /* enum snap_origin_kind; 0: a mapping */
    uint32_t key;  /* the descriptor, or the thread's id */
    uint32_t stack;
    uint64_t birth_ns;
    uint64_t device, inode;
    uint64_t start, end; /* address range of a mapping */
};

/* A stack of a running process: the process's number for it (place), and its node in this image. */
struct image_place {
    uint32_t place, node; /* node: an index of image.nodes */
};

struct image {
    struct snap_header header;
    char *strings;
    uint64_t strings_size;
    struct snap_fact *facts;
    struct snap_module *modules;
    struct snap_tag *tags;
    struct snap_owner *owners;
    struct snap_thread *threads;
    struct snap_large *large;      /* the field `site` is 1 + the index of the block's total, or 0 if it has no total */
    struct snap_mapping *mappings; /* site: as in `large` */
    struct origin *origins;        /* filled by origin_stacks.h */
    struct snap_misuse *misuses;   /* filled by misuse_image.h */
    struct snap_point *points;     /* history_image.h fills this and the next three tables, sorted by time */
    struct snap_cuda_point *cuda_points;
    struct snap_mark *marks;
    struct snap_owner_mark *owner_marks;
    struct snap_region *regions;
    struct snap_node *nodes; /* stacks.h reads these four tables */
    uint32_t *words;
    struct snap_frame *frames;
    struct snap_code *codes;
    struct image_place *places; /* of a ledger only; several places may have the same node */
    uint8_t *trace;             /* a snap_ring and its lines, for trace_lines.h */
    struct total *totals;
    size_t fact_count, module_count, tag_count, owner_count, thread_count, large_count, mapping_count;
    size_t region_count, node_count, word_count, frame_count, code_count, total_count, total_capacity;
    size_t origin_count, misuse_count, place_count, point_count, cuda_point_count, mark_count, owner_mark_count;
    size_t trace_size; /* 0: the file has no trace */
    uint8_t *series;   /* earlier readings, packed; series.h reads them */
    size_t series_size;
    /* by total: the variance of its bytes, if they are estimates (estimate.h); NULL: all figures are exact */
    double (*variances)[MEASURES];

    struct cuda_image cuda;
    struct cupti_image cupti;
    struct nvml_image nvml;
    struct sum host, mapped, inherited; /* filled by image_sum */
    uint64_t inexact;                   /* number of totals whose counters changed while they were read */
    uint64_t rss;                       /* bytes; 0: not measured */
    bool has_picture;
    bool picture_is_live; /* show live memory in place of the picture, which is further from the peak (at_peak.h) */
    bool running;         /* the process is alive, and this is its live ledger */
    char error[160];
};

void image_clear(struct image *image);
/* Frees the totals, for a caller that has added them up and needs the call stacks only. */
void image_drop_totals(struct image *image);
/* Sets image->host, mapped and inherited: the sums of the totals. */
void image_sum(struct image *image);

/* Sets image->rss to the kernel's figure or, without one, to the sum of the regions' resident bytes, which includes
 * pages of zeros. 0: resident memory was not measured. */
void image_sum_rss(struct image *image);

/* The functions total_… are in total.c. */
void total_sum_add(struct sum *sum, const struct total *total);
/* Allocated minus freed. If more was freed than allocated, a TOTAL_REMAINDER gives a negative number (cast the result
 * to int64_t), and any other total gives 0. */
uint64_t total_live_bytes(const struct total *total);
uint64_t total_live_blocks(const struct total *total);
uint64_t total_measure(const struct total *total, enum measure measure); /* bytes */
uint64_t total_measure_blocks(const struct total *total, enum measure measure);
/* Whether `host` is the heap memory and `mapped` the mapped memory of one and the same site. The two totals must be
 * neighbours in image->totals. */
bool total_same_site(const struct total *host, const struct total *mapped);

/* Returns the string at an offset in image->strings, or "" if the offset lies outside of them. Never returns NULL. */
const char *image_string(const struct image *image, uint32_t offset);
/* Returns the text of a fact, or "" if the image does not have the fact. `key`: enum snap_fact_key. */
const char *image_fact(const struct image *image, uint32_t key);
/* Returns the path of a site's module. `module` is 1 + the id of the module, or 0 if there is none. Returns NULL if no
 * path was recorded. */
const char *image_module(const struct image *image, uint32_t module);
/* As image_module, but a text for people; never NULL. */
const char *image_module_name(const struct image *image, uint32_t module);
/* Returns the variance of the total's bytes in the measure, or 0 if the bytes are exact. */
double image_variance(const struct image *image, const struct total *total, enum measure measure);

/* Returns the total of a large block or mapping. `site`: the field `site` of the block or mapping, which is 1 + the
 * index of the total. Returns NULL if there is no such total. */
const struct total *image_total(const struct image *image, uint32_t site);
/* Returns the tag with this number. If there is no such tag, returns the tag of untagged memory. */
const struct snap_tag *image_tag(const struct image *image, uint32_t tag);
/* Sorts owners by id. */
void image_sort_owners(struct image *image);
/* Moves everything of adopted owners to the owners that adopted them. */
void image_adopt(struct image *image);
/* Returns the id of the owner that has this owner's memory now: the id of the last adopter, or the same id if nobody
 * adopted the owner. A damaged file may have no owner with the returned id. */
uint32_t image_final_owner(const struct image *image, uint32_t id);
/* Follows the chain of adoptions from the owner with this id, and returns the last owner that the image has. Returns
 * NULL if the image has no owner with this id. */
const struct snap_owner *image_heir(const struct image *image, uint32_t id);
/* Returns the owner with this id, or NULL if the image has no such owner. No owner has the id 0, which means
 * untagged. */
const struct snap_owner *image_owner(const struct image *image, uint32_t id);
/* Returns the name of the owner with this id. A trace may give any number as the id. Returns NULL if no owner has that
 * id. */
const char *image_owner_name(const struct image *image, uint64_t id);
/* Returns the owner's name for people. For models and custom owners, the name includes the origin, because it tells
 * owners of one name apart: "NAME (ORIGIN)". Returns NULL if no owner has that id. */
const char *image_owner_words(const struct image *image, uint64_t id, char *to, size_t size);
/* Whether any tag names an owner. */
bool image_has_tags(const struct image *image);
/* Whether any total has a call stack. */
bool image_has_stacks(const struct image *image);

/* Whether both headers are of the same program in the same process; the times may differ. */
bool image_same_process(const struct snap_header *a, const struct snap_header *b);

/* Whether image_now() returns the true time. False for the ledger of a killed process, which does not have the time of
 * the process's end. */
bool image_knows_now(const struct image *image);
/* The image's present, in nanoseconds of CLOCK_MONOTONIC: the end of the process, the time of the snapshot, or now. For
 * the ledger of a killed process it is the time of the peak or, without a peak, of the start. */
uint64_t image_now(const struct image *image);
/* The most bytes of host and mapped memory together. It is never less than the live bytes. */
uint64_t image_peak(const struct image *image);

#endif
