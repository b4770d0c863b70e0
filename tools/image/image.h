/* image.h — a ledger or snapshot in memory: flat tables; accessors check every reference.
 * In: the tables that the reader fills. Out: tables and sums for every view. It knows nothing of files. */
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
    /* never in a file: the difference between estimates and their exact total; its figures may be negative */
    TOTAL_REMAINDER = 1 << 7,
};

/* The measures of a total: what is live, what was live in the picture of the peak, what was ever allocated. */
enum measure { MEASURE_LIVE, MEASURE_PEAK, MEASURE_ALLOCATED, MEASURES };

/* The figures of one site and class. The first total of a site holds the peak of the site. */
struct total {
    uint32_t tag, stack, module; /* stack: a node; module: 1 + id. 0: none */
    uint8_t class, flags;
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
    uint64_t peak_bytes, peak_blocks;
};

struct sum {
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks, live_bytes, live_blocks;
};

/* CUPTI's report about CUDA memory, and its differences to the ledger. */
struct cupti_image {
    bool asked; /* false: the comparison was not asked for, or CUDA did not begin */
    struct snap_cupti head;
    struct snap_cupti_block *blocks; /* the differences, as far as they have names */
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
    struct sum kinds[SNAP_CUDA_KINDS], device; /* sums of the sites; device: of all kinds that take device memory */
};

/* NVML's report: now, or when the snapshot was taken. */
struct nvml_image {
    struct snap_nvml *devices;
    struct snap_nvml_process *processes;
    size_t device_count, process_count; /* 0 devices: NVML was not asked */
    bool now;
};

/* The origin of a descriptor, a thread, or memory that other processes may share: where it was opened, started or
 * mapped. */
struct origin {
    uint32_t kind; /* enum snap_origin_kind; 0: a mapping */
    uint32_t key;  /* as in snap_origin */
    uint32_t stack;
    uint64_t birth_ns;
    uint64_t device, inode;
    uint64_t start, end; /* address range of a mapping */
};

/* The node of a stack, under the number that the process has for the stack. */
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
    struct snap_mapping *mappings; /* site: 1 + index, too */
    struct origin *origins;        /* filled by origin_stacks.h */
    struct snap_misuse *misuses;   /* filled by misuse_image.h */
    struct snap_point *points;     /* filled by history_image.h, in the order of their times; so are the next two */
    struct snap_cuda_point *cuda_points;
    struct snap_mark *marks;
    struct snap_region *regions;
    struct snap_node *nodes; /* stacks.h reads these four tables */
    uint32_t *words;
    struct snap_frame *frames;
    struct snap_code *codes;
    struct image_place *places; /* ledger only: the process's numbers of stacks; several may mean one node */
    uint8_t *trace;             /* a snap_ring and its lines, for trace_lines.h */
    struct total *totals;
    size_t fact_count, module_count, tag_count, owner_count, thread_count, large_count, mapping_count;
    size_t region_count, node_count, word_count, frame_count, code_count, total_count, total_capacity;
    size_t origin_count, misuse_count, place_count, point_count, cuda_point_count, mark_count;
    size_t trace_size; /* 0: the file has no trace */
    uint8_t *series;   /* earlier readings, packed; series.h reads them */
    size_t series_size;
    /* variance of the bytes of each total, where they are estimates (estimate.h); NULL: all figures are exact */
    double (*variances)[MEASURES];

    struct cuda_image cuda;
    struct cupti_image cupti;
    struct nvml_image nvml;
    struct sum host, mapped, inherited; /* filled by image_sum */
    uint64_t inexact;                   /* totals whose counters did not settle */
    uint64_t rss;                       /* 0 when not measured */
    bool has_picture;
    bool picture_is_live; /* live memory is nearer to the peak than the picture, and replaces it: at_peak.h */
    bool running;         /* the process is alive, and this is its live ledger */
    char error[160];
};

void image_clear(struct image *image);
/* Frees the totals once they are added up. Sites can still be looked up. */
void image_drop_totals(struct image *image);
/* Adds up host, mapped and inherited. */
void image_sum(struct image *image);

/* Sets the RSS: from the kernel, or from the regions. The regions also count pages of zeros, which the kernel does
 * not. */
void image_sum_rss(struct image *image);

/* total.c */
void total_sum_add(struct sum *sum, const struct total *total);
uint64_t total_live_bytes(const struct total *total); /* never negative, except for TOTAL_REMAINDER */
uint64_t total_live_blocks(const struct total *total);
uint64_t total_measure(const struct total *total, enum measure measure); /* bytes */
uint64_t total_measure_blocks(const struct total *total, enum measure measure);
/* Whether two neighbouring totals are the two classes of one site. */
bool total_same_site(const struct total *host, const struct total *mapped);

/* Never NULL; "" for an offset outside the file. */
const char *image_string(const struct image *image, uint32_t offset);
/* The text of a fact, enum snap_fact_key; "" if there is none. */
const char *image_fact(const struct image *image, uint32_t key);
/* Path of the module of a site (1 + id; 0: none). NULL when none was recorded. */
const char *image_module(const struct image *image, uint32_t module);
/* As image_module, but text to show; never NULL. */
const char *image_module_name(const struct image *image, uint32_t module);
/* Variance of the total's bytes; 0: they are exact. */
double image_variance(const struct image *image, const struct total *total, enum measure measure);

/* The total at the site of a large block or mapping; NULL: there is none. */
const struct total *image_total(const struct image *image, uint32_t site);
/* The tag; the untagged one for an unknown number. */
const struct snap_tag *image_tag(const struct image *image, uint32_t tag);
/* Sorts owners by id. */
void image_sort_owners(struct image *image);
/* Moves everything of adopted owners to the owners that adopted them. */
void image_adopt(struct image *image);
/* The owner that has this owner's memory now: itself, unless it was adopted. In a damaged file that owner may be
 * missing. */
uint32_t image_final_owner(const struct image *image, uint32_t id);
/* The last owner in the chain of adoptions that the image has. NULL: it does not even have the first. */
const struct snap_owner *image_heir(const struct image *image, uint32_t id);
/* NULL for an untagged total. */
const struct snap_owner *image_owner(const struct image *image, uint32_t id);
/* NULL if no owner has that id. The id may come from a trace. */
const char *image_owner_name(const struct image *image, uint64_t id);
/* The owner's name for people. Models and custom owners with the same name differ by origin: "NAME (ORIGIN)". NULL as
 * above. */
const char *image_owner_words(const struct image *image, uint64_t id, char *to, size_t size);
/* Whether any tag names an owner. */
bool image_has_tags(const struct image *image);
/* Whether any total has a call stack. */
bool image_has_stacks(const struct image *image);

/* Whether both headers are of one program in one process, at two times. */
bool image_same_process(const struct snap_header *a, const struct snap_header *b);

/* Whether image_now is known. It is not for the ledger of a killed process, because the time of its end is not in the
 * ledger. */
bool image_knows_now(const struct image *image);
/* The image's present by CLOCK_MONOTONIC: the end of the process, the time of the snapshot, or now. For a
 * killed process it is the time of the peak, or of the start. */
uint64_t image_now(const struct image *image);
/* The most bytes of host and mapped memory together; at least what is live. */
uint64_t image_peak(const struct image *image);

#endif
