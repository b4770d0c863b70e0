/* image.h — a ledger or snapshot in memory: flat tables, every reference checked by its accessor.
 * In: what the reader fills in. Out: tables and sums for every view. It has no idea of files. */
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
    TOTAL_REMAINDER = 1 << 7, /* in place of it, never in a file: what estimates lack; its figures may be negative */
};

/* What can be asked of a total: what it holds, held at the picture of the peak, or ever took. */
enum measure { MEASURE_LIVE, MEASURE_PEAK, MEASURE_ALLOCATED, MEASURES };

/* What one site holds of one class. The peak of a site is kept with its first total. */
struct total {
    uint32_t tag, stack, module;
    uint8_t class, flags;
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
    uint64_t peak_bytes, peak_blocks;
};

struct sum {
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks, live_bytes, live_blocks;
};

/* What CUPTI said of CUDA memory, and how it differs from the ledger. */
struct cupti_image {
    bool asked; /* false: the process was not to be compared, or CUDA did not begin */
    struct snap_cupti head;
    struct snap_cupti_block *blocks; /* the differences, as far as they are named */
    size_t block_count;
};

/* Of the process's CUDA memory, which is in none of the totals: cuda_image.h reads it. */
struct cuda_image {
    bool used; /* false: the process has not used CUDA */
    struct snap_cuda head;
    struct snap_cuda_device *devices;
    struct snap_cuda_site *sites;   /* by id */
    struct total *totals;           /* of each site */
    struct snap_cuda_block *blocks; /* those that live */
    size_t device_count, site_count, block_count;
    struct sum kinds[SNAP_CUDA_KINDS], device; /* of sites; device: of all kinds that take memory of a device */
};

/* What NVML said: when it was asked now, or when the snapshot was taken. */
struct nvml_image {
    struct snap_nvml *devices;
    struct snap_nvml_process *processes;
    size_t device_count, process_count; /* 0 devices: it was not asked */
    bool now;
};

/* Where a descriptor was opened, a thread started, or memory mapped that others may have, too. */
struct origin {
    uint32_t kind; /* enum snap_birth_kind; 0: a mapping */
    uint32_t key;  /* as in snap_birth */
    uint32_t stack;
    uint64_t birth_ns;
    uint64_t device, inode;
    uint64_t start, end; /* of a mapping */
};

/* The stack of a node, as sites of the process have it. */
struct image_place {
    uint32_t place, node;
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
    struct snap_large *large;      /* site: 1 + index of its total, or 0 */
    struct snap_mapping *mappings; /* the same */
    struct origin *origins;        /* origin_stacks.h fills them in */
    struct snap_misuse *misuses;   /* misuse_image.h does */
    struct snap_region *regions;
    struct snap_node *nodes; /* stacks.h reads these four */
    uint32_t *words;
    struct snap_frame *frames;
    struct snap_code *codes;
    struct image_place *places; /* of a ledger: what the process calls each stack; several may be one node */
    uint8_t *trace;             /* a snap_ring and its lines: trace_lines.h reads them */
    struct total *totals;
    size_t fact_count, module_count, tag_count, owner_count, thread_count, large_count, mapping_count;
    size_t region_count, node_count, word_count, frame_count, code_count, total_count, total_capacity;
    size_t origin_count, misuse_count, place_count;
    size_t trace_size; /* 0: there is none */
    uint8_t *series;   /* readings before this one, packed: series.h reads them */
    size_t series_size;
    /* Of the bytes of each total, where they are estimates (estimate.h); NULL: none are. */
    double (*variances)[MEASURES];

    struct cuda_image cuda;
    struct cupti_image cupti;
    struct nvml_image nvml;
    struct sum host, mapped, inherited; /* by image_sum */
    uint64_t inexact;                   /* totals whose counters did not settle */
    uint64_t rss;                       /* 0 when not measured */
    bool has_picture;
    bool picture_is_live; /* what is live is nearer to the peak, and in its place: at_peak.h */
    bool running;         /* its process is alive now, and it is the live ledger */
    char error[160];
};

void image_clear(struct image *image);
/* Lets the totals go, once they are added up: what is left still tells what a site is. */
void image_drop_totals(struct image *image);
void sum_add(struct sum *sum, const struct total *total);
/* Adds up host, mapped and inherited. */
void image_sum(struct image *image);

/* What the kernel said, or what the regions have present: that includes pages of zeros, which the kernel leaves out. */
void image_sum_rss(struct image *image);

uint64_t total_live_bytes(const struct total *total); /* 0 rather than negative, but for TOTAL_REMAINDER */
uint64_t total_live_blocks(const struct total *total);

/* Never NULL; "" for what the file does not have. */
const char *image_string(const struct image *image, uint32_t offset);
const char *image_fact(const struct image *image, uint32_t key);
/* Path of the module of a site (1 + id; 0: none). NULL when none was recorded. */
const char *image_module(const struct image *image, uint32_t module);
/* The same in words: never NULL. */
const char *image_module_name(const struct image *image, uint32_t module);
uint64_t total_measure(const struct total *total, enum measure measure); /* bytes */
uint64_t total_measure_blocks(const struct total *total, enum measure measure);

/* Whether these, next to each other, are both classes of one site. */
bool total_same_site(const struct total *host, const struct total *mapped);
/* Of its bytes: 0 where they are exact. */
double image_variance(const struct image *image, const struct total *total, enum measure measure);

/* The total of a large block or mapping, or NULL. */
const struct total *image_total(const struct image *image, uint32_t site);
/* The tag, or the untagged one. */
const struct snap_tag *image_tag(const struct image *image, uint32_t tag);
/* Owners are kept in the order of their ids. */
void image_sort_owners(struct image *image);
/* What an adopted owner has is from now on that of who adopted it. */
void image_adopt(struct image *image);
/* Who has now what this owner had: itself, where nobody adopted it. A damaged file may not have who it is. */
uint32_t image_final_owner(const struct image *image, uint32_t id);
/* The last of them that the image has. NULL: not even the first. */
const struct snap_owner *image_heir(const struct image *image, uint32_t id);
/* NULL for untagged. */
const struct snap_owner *image_owner(const struct image *image, uint32_t id);
/* NULL where no owner has that id, which may be of a trace. */
const char *image_owner_name(const struct image *image, uint64_t id);
/* The name for people: models and customs are told apart by their origin, "NAME (ORIGIN)". NULL as above. */
const char *image_owner_words(const struct image *image, uint64_t id, char *to, size_t size);
bool image_has_tags(const struct image *image);
/* Some total has a call stack. */
bool image_has_stacks(const struct image *image);

/* Whether both are of one program in one process, at two times. */
bool image_same_process(const struct snap_header *a, const struct snap_header *b);

/* "now" of the image by CLOCK_MONOTONIC: its end, when it was taken, or the present. */
uint64_t image_now(const struct image *image);
uint64_t image_peak(const struct image *image);

#endif
