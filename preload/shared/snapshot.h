/* snapshot.h — the file format: what libmemstow.so writes and the memstow command reads.
 *
 * Two kinds of file share it. A *ledger* is the live file of a process, mapped shared while the process
 * runs, so that nothing is lost when it is killed. A *snapshot* is the compact copy that `memstow snapshot`
 * takes of one. Both are: one snap_header, then sections back to back, each a snap_section and its records,
 * up to snap_header.size. A reader skips section types that it does not know, and trusts no field.
 *
 * Integers are little-endian and naturally aligned. Times are CLOCK_MONOTONIC nanoseconds unless "wall".
 * In a ledger every field marked [live] changes under the reader's eyes: 64-bit counters only ever grow,
 * and are read one word at a time. docs/format.md is the prose. */
#ifndef MEMSTOW_SNAPSHOT_H
#define MEMSTOW_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#define SNAP_MAGIC "MEMSTOW\n"
enum {
    SNAP_MAJOR = 1, /* a reader refuses a file of another major version */
    SNAP_MINOR = 6, /* a newer minor adds sections and fields; an older reader ignores them */
    SNAP_HEADER_SIZE = 4096,
    SNAP_BYTE_ORDER = 0x01020304,
};

enum snap_kind { SNAP_LEDGER = 1, SNAP_SNAPSHOT = 2 };

enum snap_flag {
    SNAP_MEMORY_ONLY = 1 << 0,       /* no file could be used safely: written once, at an orderly exit */
    SNAP_FORK_CHILD = 1 << 1,        /* made after fork: inherited blocks are counted at site SNAP_SITE_INHERITED */
    SNAP_RESIDENCY = 1 << 2,         /* SNAP_REGION and the `resident` fields are filled in */
    SNAP_FOREIGN_ALLOCATOR = 1 << 3, /* the program brought its own malloc family; we sit in front of it */
    SNAP_FROM_CUPTI = 1 << 4,        /* libmemstow_cupti.so writes it, of CUDA memory alone; since 1.6 */
};

/* How the process is doing. A file left in RUNNING whose process is gone was killed, or left by a raw exit: a system
 * call of its own, as Go programs make it. */
enum snap_state { SNAP_RUNNING = 1, SNAP_EXITED = 2, SNAP_ABRUPT_EXIT = 3 /* _exit, quick_exit */, SNAP_EXECED = 4 };

enum snap_stacks { SNAP_STACKS_NONE = 0, SNAP_STACKS_MODULE = 1, SNAP_STACKS_FULL = 2, SNAP_STACKS_SAMPLE = 3 };
#define SNAP_SAMPLE_MOST ((uint64_t)1 << 40)
enum snap_allocator { SNAP_ALLOCATOR_KEEP = 0, SNAP_ALLOCATOR_MIMALLOC = 1 };

/* What could not be counted or kept, and how often. Report key `lost`; text in tools/reader/lost.c. */
enum snap_lost {
    SNAP_LOST_SITES,    /* new sites refused: events counted at SNAP_SITE_UNKNOWN */
    SNAP_LOST_THREADS,  /* events of threads that got no table: counted in the shared table */
    SNAP_LOST_MODULES,  /* call sites whose module could not be recorded */
    SNAP_LOST_LARGE,    /* large blocks not entered one by one (still counted) */
    SNAP_LOST_MAPPINGS, /* mapping events not recorded */
    SNAP_LOST_BLOCKS,   /* blocks served without being counted */
    SNAP_LOST_FILE,     /* failures to create or grow the file */
    SNAP_LOST_PEAK,     /* sites missing from the picture of the peak */
    SNAP_LOST_STACKS,   /* look-ups that ended at an outer part of the stack, or at none: no room for more. What a
                                 thread remembers is not looked up again; one look-up may count twice */
    SNAP_LOST_FRAMES,   /* stacks that end early, at code whose caller cannot be found */
    SNAP_LOST_PYTHON,   /* evaluation loops on stacks whose Python functions could not be told */
    SNAP_LOST_FOLDED,   /* stacks of which nothing lived, whose totals went to an outer one to make room */
    SNAP_LOST_TAGS,     /* scopes that could not be noted: their allocations count as untagged */
    SNAP_LOST_TRACE,    /* lines of the trace of decisions that could not be written */
    SNAP_LOST_CUDA, /* blocks of CUDA memory that could not be listed, whose frees are not seen either; entry points of
                       CUDA that were asked for, have to do with memory, and are not known; in a ledger from CUPTI,
                      records that it dropped, that there was no room for, or that are not known */
    SNAP_LOST_KINDS = 16
};

/* Sites with a fixed meaning. NOT_SAMPLED: of blocks that are no sample, when sample_bytes is not 0. */
enum { SNAP_SITE_UNKNOWN = 0, SNAP_SITE_INHERITED = 1, SNAP_SITE_FIRST = 2, SNAP_SITE_NOT_SAMPLED = SNAP_SITE_FIRST };

/* Thread slots with a fixed meaning: events of threads without a table, and all mapping events. */
enum { SNAP_THREAD_SHARED = 0, SNAP_THREAD_MAPPINGS = 1, SNAP_THREAD_FIRST = 2 };

struct snap_range {
    uint64_t start, length;
};

struct snap_header {
    char magic[8];
    uint16_t major, minor;
    uint32_t byte_order;
    uint32_t header_size; /* sections start here */
    uint32_t kind;        /* enum snap_kind */
    uint64_t size;        /* [live] bytes of file in use: header and whole sections */
    uint32_t flags;       /* [live] enum snap_flag */
    uint32_t state;       /* [live] enum snap_state */

    uint32_t pid, parent_pid;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat: with pid and boot_id, names a process for good */
    uint8_t boot_id[16];
    uint8_t run_id[16]; /* the same in every process that one `memstow run` started */
    uint32_t uid;
    uint32_t exec_generation; /* images that this pid ran before this one, under us */
    uint32_t fork_depth;      /* forks without exec between the first image and this process */
    uint32_t stacks;          /* enum snap_stacks */
    uint32_t allocator;       /* enum snap_allocator */
    uint32_t page_size;
    char name[32]; /* program name, NUL-terminated */

    uint64_t start_wall_ns, start_ns; /* when the ledger was begun, by both clocks */
    uint64_t end_ns;                  /* [live] 0 while running */
    uint64_t taken_ns;                /* snapshot: when it was copied; 0 in a ledger */
    uint64_t residency_ns;            /* when residency was measured */
    uint64_t rss_bytes;               /* resident set size then, by /proc/PID/statm */

    /* [live] estimates for a status line and for the peak; exact live bytes come from the counters. Each thread
     * adds its share when it has moved by `quantum`, so that all together stay within 1 MiB of the truth. */
    int64_t host_live, mapped_live;
    uint64_t host_peak, mapped_peak;    /* highest seen of each */
    uint64_t total_peak, total_peak_ns; /* highest of their sum */
    uint64_t quantum;

    /* The picture of the ledger at its peak (SNAP_PEAK_0, SNAP_PEAK_1): valid when picture_buffer is 0 or 1. */
    uint32_t picture_buffer; /* [live] which of the two is whole; 2: none yet */
    /* [live] Odd while records of sites are made free for others: a reader reads all of it again then. */
    uint32_t fold_sequence;
    uint64_t picture_peak;   /* the peak that it shows */
    uint64_t picture_bytes;  /* sum of the picture: its distance from picture_peak says how true it is */
    uint64_t picture_ns;     /* when that peak was */
    uint64_t picture_length; /* bytes of the picture */

    uint64_t inherited_bytes;                 /* live bytes that a fork child found */
    uint64_t file_mapped_live, reserved_live; /* [live] file-backed and PROT_NONE mappings: not in mapped_live */
    uint64_t advised_bytes[32];               /* [live] bytes given to madvise, by advice number (0–31) */

    uint64_t lost[SNAP_LOST_KINDS]; /* [live] enum snap_lost */

    uint32_t own_ranges;      /* [live] private memory of the library, for the residency report */
    uint32_t header_overhead; /* bytes of ours in front of each block */
    struct snap_range own[64];
    struct snap_range ledger_map; /* where the ledger itself is mapped in the process */
    struct snap_range library_map;
    uint64_t sample_bytes; /* mean distance between sampled bytes; 0: stacks are not sampled */

    /* [live] The move at hand of an owner's host memory; since 1.6. */
    uint32_t moving_owner;              /* 0: none */
    uint32_t moving;                    /* enum snap_moving */
    uint64_t moved_bytes, wanted_bytes; /* wanted: 0 while that is not known */

    /* How the process ended, as the command that waited for it wrote when it was gone; since 1.6. */
    uint32_t ended;      /* enum snap_ended */
    uint32_t ended_with; /* the exit status, or the number of the signal */
};

enum snap_ended { SNAP_ENDED_UNKNOWN, SNAP_ENDED_EXITED, SNAP_ENDED_KILLED };

enum snap_moving { SNAP_MOVING_OUT = 1, SNAP_MOVING_BACK };

enum snap_type {
    SNAP_STRINGS = 1, /* bytes; a string is named by its offset over all STRINGS sections; offset 0 is "" */
    SNAP_PROCESS,     /* snap_fact */
    SNAP_MODULE,      /* snap_module; module ids count over all MODULE sections, as do all ids below */
    SNAP_TAG,         /* snap_tag */
    SNAP_OWNER,       /* snap_owner */
    SNAP_SITE,        /* snap_site */
    SNAP_THREAD,      /* snap_thread */
    SNAP_COUNTERS,    /* snap_chunk: ledger only */
    SNAP_LARGE,       /* snap_large: blocks >= SNAP_LARGE_BYTES and page-aligned ones; empty slots have address 0 */
    SNAP_MAPPING,     /* snap_mapping: empty slots have length 0 */
    SNAP_PEAK_0,      /* bytes of a picture (below); ledger only; count is not kept */
    SNAP_REGION,      /* snap_region: the address space when residency was measured, cut or not where own ranges,
                         mappings and stacks begin */
    SNAP_TOTALS,      /* packed (below): snapshot only, instead of SITE, COUNTERS, WIDE, PEAK_0 and PEAK_1 */
    SNAP_FRAME,       /* snap_frame */
    SNAP_CODE,        /* snap_code: Python functions */
    SNAP_SEGMENT,     /* uint32_t words: pieces of stacks (below); snapshot only, as is NODE */
    SNAP_NODE,        /* snap_node: stacks; ids from 0, which is the empty stack */
    SNAP_PEAK_1,
    SNAP_WIDE,        /* snap_counter: those of words that are wide; ledger only */
    SNAP_RUN,         /* uint32_t words: stacks (below); ledger only, instead of SEGMENT and NODE */
    SNAP_TRACE,       /* one snap_ring, and its bytes: the trace of decisions */
    SNAP_CUDA,        /* one snap_cuda; it and the next three are there once the process has used CUDA */
    SNAP_CUDA_DEVICE, /* snap_cuda_device, by ordinal */
    SNAP_CUDA_SITE,   /* snap_cuda_site */
    SNAP_CUDA_BLOCK,  /* snap_cuda_block: empty slots have state 0 */
    SNAP_SERIES = 40, /* packed: readings before this one (docs/format.md); snapshot only */
    SNAP_BIRTH = 41,  /* snap_birth: descriptors, by number; ledger only, as is START; of both count is not kept */
    SNAP_START = 42,  /* snap_birth: threads, by slot */
    SNAP_MISUSE = 43, /* snap_misuse: blocks freed twice, headers overwritten; empty ones have kind 0 */
    SNAP_CUPTI = 48,  /* one snap_cupti: there when the comparison with CUPTI was asked for, and CUDA begun */
    SNAP_CUPTI_BLOCK, /* snap_cupti_block: empty slots have state 0 */
    SNAP_NVML =
        56, /* snap_nvml: what NVML said of each device when the snapshot was taken; snapshot only, as the next */
    SNAP_NVML_PROCESS, /* snap_nvml_process */
};

struct snap_section {
    uint32_t type;        /* enum snap_type */
    uint16_t version;     /* 1; a reader that knows only version 1 skips others */
    uint16_t record_size; /* bytes of a record: a newer minor may append fields to a record */
    uint64_t length;      /* of the section with this struct: the next section starts there */
    uint64_t count;       /* [live] records in use, from the first; LARGE and MAPPING: capacity */
    uint64_t first;       /* id (for STRINGS: offset) of the first record: sections of a type follow without gaps */
};

struct snap_fact {
    uint32_t key; /* enum snap_fact_key */
    uint32_t string;
};
enum snap_fact_key {
    SNAP_FACT_EXE = 1,
    SNAP_FACT_COMMAND /* arguments, space-separated */,
    SNAP_FACT_LIBRARY,
    SNAP_FACT_NOTE,
    SNAP_FACT_CONTROL /* where the control socket is, as the process sees it */
};

struct snap_module {
    uint64_t start, end; /* mapped here */
    uint64_t bias;       /* address minus the file's virtual address */
    uint32_t path;       /* string; "" when the code belongs to no file */
    uint32_t generation; /* dlclose count when it was first seen */
    uint32_t flags;
    uint32_t build_id_length;
    uint8_t build_id[24];
};

struct snap_tag {
    uint32_t model, node, run; /* owner ids; 0 is untagged */
    uint32_t pad;
};

enum snap_owner_kind { SNAP_OWNER_MODEL = 1, SNAP_OWNER_NODE, SNAP_OWNER_RUN, SNAP_OWNER_CUSTOM, SNAP_OWNER_STATE };
enum snap_owner_state { SNAP_OWNER_LIVE = 1, SNAP_OWNER_RETIRED = 2 /* of a run: it has ended */ };
/* Numbers of policies and outcomes are those of memstow.h. */
struct snap_owner {
    uint32_t id;
    uint32_t kind;         /* enum snap_owner_kind */
    uint32_t name, origin; /* strings */
    uint32_t policy;       /* [live] 0: nothing was said */
    int32_t priority;      /* [live] */
    uint32_t state;        /* [live] enum snap_owner_state */
    uint32_t adopted_by;   /* [live] the owner that has all of it now; 0: none */
    uint64_t keys[2];      /* as the program gave them */
    uint64_t begin_ns, end_ns;
    uint32_t outcome; /* of a run that has ended */
    uint32_t pad;
    uint64_t stowed_bytes; /* [live] after its last move: what was freed since is still in it, so readers cut it to what
                              lives */
    uint64_t device_stowed_bytes; /* [live] of them, what was in a device's memory; since 1.5 */
};

/* In a ledger a stack is named by a place: the id of the word of its innermost frame. Words are in runs. A run is a
 * head, and up to SNAP_RUN_MOST frames that follow each other inwards: so the place outside of a frame is the word
 * before, or, for the first frame of a run, the place that the head says. Place 0 is the empty stack. */
enum {
    SNAP_RUN_OUTER, /* words of a head: that place; */
    SNAP_RUN_SITE,  /* the site of the run's last place, untagged; 0: none */
    SNAP_RUN_HEAD,  /* how many words */
    SNAP_RUN_MOST = 64,
};
/* The word of a frame is its id and flags. */
#define SNAP_RUN_FIRST ((uint32_t)1 << 31)
#define SNAP_RUN_LAST ((uint32_t)1 << 30)
#define SNAP_RUN_END ((uint32_t)1 << 29) /* there is, or was, a run without a frame inside of it */
/* The bits of the id. All of them: no frame, the stack ends with the place outside. */
enum { SNAP_RUN_FRAME = (1 << 24) - 1 };

/* In a snapshot a stack is a chain of segments: that of its node, inside that of the node's parent, and so on to node
 * 0. A segment is a word n and the n frame ids that follow it, outermost first, and is named by the id of word n. */
struct snap_node {
    uint32_t parent;
    uint32_t segment;
    uint32_t reserved;
};

/* One place that calls on: in native code, or a line of a Python function. */
struct snap_frame {
    uint64_t address; /* native: return address, in the process; Python: offset of the instruction in the function */
    union {
        uint32_t module; /* native: 1 + module id; 0: none */
        uint32_t line;   /* Python: 0 when not known */
    };
    uint32_t
        code; /* Python: 1 + code id. 0: native; SNAP_FRAME_INTERRUPTED: native, `address` the instruction itself */
};
#define SNAP_FRAME_INTERRUPTED 0x80000000u

struct snap_code {
    uint32_t name, file; /* strings */
    uint32_t first_line, flags;
};

/* One word: from the lowest bit on, tag id (0: untagged), stack (0: none recorded), and 1 + module id of the caller
 * (0: none recorded). [live] SNAP_SITE_FREE: nothing is counted here, whatever the counters say. */
struct snap_site {
    uint64_t word;
};
enum { SNAP_SITE_TAG_BITS = 20, SNAP_SITE_STACK_BITS = 24, SNAP_SITE_MODULE_BITS = 20 };
#define SNAP_SITE_FREE UINT64_MAX

static inline struct snap_site snap_site(uint32_t tag, uint32_t stack, uint32_t module) {
    uint64_t above = stack | (uint64_t)module << SNAP_SITE_STACK_BITS;
    return (struct snap_site){tag | above << SNAP_SITE_TAG_BITS};
}
static inline uint32_t snap_site_tag(struct snap_site site) { return site.word & ((1u << SNAP_SITE_TAG_BITS) - 1); }
static inline uint32_t snap_site_stack(struct snap_site site) {
    return site.word >> SNAP_SITE_TAG_BITS & ((1u << SNAP_SITE_STACK_BITS) - 1);
}
static inline uint32_t snap_site_module(struct snap_site site) {
    return (uint32_t)(site.word >> (SNAP_SITE_TAG_BITS + SNAP_SITE_STACK_BITS));
}

/* Each counter only ever grows, until its site is made free. Live is alloc minus free summed over all threads; a block
 * that another thread frees is counted in that thread's chunk. */
struct snap_counter {
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
};

/* What one thread counted at each of so many sites: a word a site. It says all while it is little, and of blocks of one
 * size: bits 0-31 are that size, 32-47 the number allocated, 48-62 the number freed. With SNAP_WIDE_BIT, the others are
 * the address of a record in WIDE, which says it: where it is in the process. The first record of each WIDE section is
 * no counter, but has its own address in alloc_bytes. A word becomes wide once, and changes as one. */
enum { SNAP_CHUNK_SITES = 128 };
struct snap_chunk {
    uint32_t thread; /* slot in THREAD, plus 1; 0: not in use yet */
    uint32_t index;  /* counts sites index * SNAP_CHUNK_SITES and on */
    uint64_t words[SNAP_CHUNK_SITES];
};
#define SNAP_WIDE_BIT ((uint64_t)1 << 63)

static inline uint64_t snap_narrow(uint32_t size, uint32_t allocated, uint32_t freed) {
    return size | (uint64_t)allocated << 32 | (uint64_t)freed << 48;
}
/* The counter that a word without SNAP_WIDE_BIT stands for. */
static inline struct snap_counter snap_narrow_counter(uint64_t word) {
    uint64_t size = (uint32_t)word, allocated = word >> 32 & 0xFFFF, freed = word >> 48;
    return (struct snap_counter){size * allocated, allocated, size * freed, freed};
}

enum snap_thread_state { SNAP_THREAD_FREE = 0, SNAP_THREAD_LIVE = 1, SNAP_THREAD_ENDED = 2 };
struct snap_thread {
    uint32_t tid;
    uint32_t state; /* [live] enum snap_thread_state: an ended thread's slot is reused by a later one */
    uint64_t birth_ns, end_ns;
    uint64_t stack_start, stack_end; /* 0 when not known */
    char name[16];
    uint32_t uses; /* threads that have had this slot so far */
    uint32_t flags;
    struct snap_counter before; /* sum over the slot's counters when its present thread began */
    struct snap_counter total;  /* snapshot: what the slot counted; ledger: the part that is not in its counters */
};

enum { SNAP_LARGE_BYTES = 65536 };
struct snap_large {
    uint64_t address; /* [live] 0: empty; written last, cleared first. Bit 0 set: being written */
    uint64_t size;    /* as the program asked */
    uint64_t birth_ns;
    uint64_t resident; /* bytes, when residency was measured */
    uint32_t site;     /* in a snapshot, which has no SITE: 1 + index of the entry in TOTALS, 0 when there is none */
    uint32_t thread;
};

enum snap_mapping_kind {
    SNAP_MAP_ANONYMOUS = 1,
    SNAP_MAP_FILE = 2,
    SNAP_MAP_RESERVED = 3 /* PROT_NONE */,
    SNAP_MAP_BRK = 4
};
struct snap_mapping {
    uint32_t sequence; /* [live] odd while it is being written: read again */
    uint32_t kind;     /* enum snap_mapping_kind; only ANONYMOUS and BRK count as live */
    uint64_t address, length;
    uint64_t birth_ns;
    uint64_t resident;
    uint64_t advice; /* bit n: madvise advice n was given to some part of it (n < 64) */
    uint32_t site;   /* as in snap_large */
    uint32_t tid;
    uint32_t shared;
    uint32_t pad;
};

/* Where a descriptor was opened, or a thread started, last: it may be gone since, and what is there now may have come
 * in a way that nobody saw. */
enum snap_birth_kind {
    SNAP_BIRTH_FILE = 1,
    SNAP_BIRTH_SOCKET = 2,
    SNAP_BIRTH_PIPE = 3,
    SNAP_BIRTH_OTHER = 4,
    SNAP_BIRTH_COPY = 5 /* of another descriptor: of any kind */,
    SNAP_BIRTH_OF_THREAD = 6,
    SNAP_BIRTH_INHERITED = 7 /* it was there when the ledger began; no site */
};
struct snap_birth {
    uint32_t sequence; /* [live] odd while it is being written */
    uint32_t kind;     /* enum snap_birth_kind; 0: empty */
    uint32_t key;      /* the descriptor, or the thread's id */
    uint32_t site;     /* untagged */
    uint64_t birth_ns;
    uint64_t device, inode; /* of what was opened: device as major << 32 | minor; 0, 0: could not be told */
};

/* A pointer that the program passed to free or realloc, of a block that was freed before, or whose header it had
 * overwritten. Since 1.6. */
enum snap_misuse_kind {
    SNAP_MISUSE_FREED = 1,  /* freed before */
    SNAP_MISUSE_DAMAGED = 2 /* the 16 bytes in front of it, memstow's, were overwritten */
};
enum snap_misuse_call {
    SNAP_MISUSE_FREE = 1,
    SNAP_MISUSE_REALLOC = 2,
    SNAP_MISUSE_END = 3 /* neither: found in a live block at the end of the process */
};
enum snap_misuse_flag {
    SNAP_MISUSE_HARMLESS = 1, /* without memstow these bytes are not the allocator's: the program went on */
    SNAP_MISUSE_UNSURE = 2    /* the site where it was allocated may have gone to another stack since it was freed */
};
enum { SNAP_MISUSE_ALLOCATED, SNAP_MISUSE_FREED_FIRST, SNAP_MISUSE_NOW, SNAP_MISUSE_PLACES };
enum { SNAP_MISUSES = 64 }; /* as many are noted */
struct snap_misuse {
    uint32_t kind; /* [live] enum snap_misuse_kind, written last; 0: empty */
    uint16_t call; /* enum snap_misuse_call */
    uint16_t flags;
    uint64_t address;
    uint64_t size; /* UINT64_MAX: not known */
    uint64_t time_ns;
    uint32_t thread; /* slot */
    uint32_t pad;
    struct snap_misuse_place {
        uint32_t site;               /* ledger; 0: not known */
        uint32_t tag, stack, module; /* snapshot: what the site was; stack and module 0: not known */
    } places[SNAP_MISUSE_PLACES];    /* where it was allocated; freed first (one frame); passed now */
};

/* A picture: for each site that held something then, in ascending order, three unsigned LEB128 numbers: its id minus
 * that of the site before it (0 before the first), bytes, blocks. Up to picture_length; then whatever was there before.
 */

/* Appends an unsigned LEB128 number, of at most SNAP_NUMBER_MAX bytes; returns its end. */
enum { SNAP_NUMBER_MAX = 10 };
static inline uint8_t *snap_put_number(uint8_t *to, uint64_t number) {
    for (; number >= 0x80; number >>= 7) *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

/* Reads such a number from [*at, end) and moves on; 0 when there is none: cut short, or of more than 64 bits. The last
 * of ten groups of seven has room for one bit only. */
static inline int snap_get_number(const uint8_t **at, const uint8_t *end, uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; shift < 7 * SNAP_NUMBER_MAX && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1) return 0;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return 1;
    }
    return 0;
}

/* The trace of decisions: `room` bytes follow, a ring of lines. Positions count all bytes that were ever written to it;
 * the place of a byte is its position modulo `room`. Lines are whole from `start` to `end`. `start` moves before the
 * oldest lines are written over, `end` when a new line is there. A reader of a running process reads both, then the
 * bytes, then `start` once more, and leaves out what lies before it by then. */
struct snap_ring {
    uint64_t room;       /* a multiple of 8 */
    uint64_t start, end; /* [live] */
    uint64_t next;       /* [live] number of the next line; the first was 1 */
};
/* Before each line; the next begins behind its text at a multiple of 8. */
struct snap_line {
    uint32_t length; /* of the text: a JSON object */
    uint32_t check;  /* of number and text: snap_line_check */
    uint64_t number;
};
enum { SNAP_LINE_MOST = 4096 };

/* FNV-1a. */
static inline uint32_t snap_line_check(uint64_t number, const char *text, size_t length) {
    uint32_t check = 2166136261u;
    for (int i = 0; i < 8; i++) check = (check ^ (uint8_t)(number >> 8 * i)) * 16777619u;
    for (size_t i = 0; i < length; i++) check = (check ^ (uint8_t)text[i]) * 16777619u;
    return check;
}

/* --- CUDA memory --- */

enum snap_cuda_kind {
    SNAP_CUDA_DEVICE_MEMORY = 1, /* cudaMalloc and its like: these five are memory of a device */
    SNAP_CUDA_POOL_MEMORY = 2,   /* in the order of a stream, out of a pool */
    SNAP_CUDA_MANAGED = 3,
    SNAP_CUDA_ARRAY = 4,
    SNAP_CUDA_PHYSICAL = 5, /* cuMemCreate: until it is released and in no mapping any more */
    SNAP_CUDA_GRAPH = 6,    /* asked for by a node of a graph: it has memory only while the graph runs */
    SNAP_CUDA_PINNED = 7,   /* of the host, made by the driver */
    SNAP_CUDA_REGISTERED = 8 /* of the host, made by the program, which counts as host or mapped, too */,
    SNAP_CUDA_IMPORTED = 9 /* another process's, or of no size: bytes are 0 */,
    SNAP_CUDA_RESERVED = 10 /* addresses */,
    SNAP_CUDA_MAPPING = 11 /* of physical memory to addresses */,
    SNAP_CUDA_POOL = 12 /* a pool itself: bytes are 0 */,
    SNAP_CUDA_HANDLE = 13 /* of physical memory: the same */,
    SNAP_CUDA_BACKUP = 14 /* memstow's, on the host: what was moved out of a device; since 1.5 */,
    SNAP_CUDA_BUFFER = 15 /* memstow's, on the host: pinned, by which it copies; since 1.5 */,
    SNAP_CUDA_KINDS = 16
};
/* Whether it takes memory of a device. */
static inline int snap_cuda_on_device(uint32_t kind) {
    return kind >= SNAP_CUDA_DEVICE_MEMORY && kind <= SNAP_CUDA_PHYSICAL;
}

enum { SNAP_CUDA_DEVICES = 64 };

struct snap_cuda {
    int64_t live;           /* [live] bytes of devices */
    uint64_t peak, peak_ns; /* [live] */
    uint64_t foreign_frees; /* [live] pointers freed that are in no block here: from elsewhere, or freed before */
    uint64_t missed_frees;  /* [live] blocks that were there when another came at their address */
    uint64_t refused;       /* [live] requests that the driver had no memory for; below: the last */
    uint64_t refused_bytes, refused_ns, refused_live;
    uint32_t refused_device, refused_kind;
    uint64_t unknown_entries; /* [live] of SNAP_LOST_CUDA; below: the first, by its name */
    char unknown[64];
    uint32_t captures;      /* [live] streams that are being captured */
    uint32_t refused_files; /* snapshots that were taken then: FILE.oom1.mst and so on */
};

/* What the driver says of a device is as of figures_ns; 0: it was not asked. */
struct snap_cuda_device {
    uint32_t used, pad; /* [live] 0: nothing is known of it */
    int64_t live;       /* [live] bytes in the ledger */
    uint64_t peak;      /* [live] */
    uint64_t figures_ns, total, available;
    int64_t figures_live;                /* `live` then, without what had been moved out */
    uint64_t pool_reserved, pool_used;   /* of the pool that it allocates from by default */
    uint64_t graph_reserved, graph_used; /* of its graphs */
    char name[64];
    uint8_t uuid[16]; /* since 1.6: what it is known by to NVML, too; of an instance of a device (MIG) its own */
    uint32_t kind;    /* enum snap_cuda_device_kind */
    uint32_t pad2;
};

enum snap_cuda_device_kind {
    SNAP_CUDA_HAS_UUID = 1,
    SNAP_CUDA_KNOWS_MIG = 2, /* whether it is an instance of a device can be told: */
    SNAP_CUDA_IS_MIG = 4,    /* it is one */
    SNAP_CUDA_KNOWS_MPS = 8, /* the same of a server that shares it among processes */
    SNAP_CUDA_IS_MPS = 16,
};

/* What was allocated at a site under a tag, of one kind and on one device. In a ledger stack and module are those of
 * the site; in a snapshot `site` is 0. */
struct snap_cuda_site {
    uint32_t users; /* [live] blocks that are counted here; SNAP_CUDA_SITE_CLOSED: it is about to be another's */
    uint32_t site, tag;
    uint16_t device;
    uint8_t kind; /* [live] enum snap_cuda_kind; 0: empty */
    uint8_t pad;
    uint32_t stack, module;
    struct snap_counter counter; /* [live] changed by any thread */
};
#define SNAP_CUDA_SITE_CLOSED 0x80000000u

enum snap_cuda_state { SNAP_CUDA_EMPTY = 0, SNAP_CUDA_WRITING = 1, SNAP_CUDA_LIVE = 2 };
enum snap_cuda_flag { SNAP_CUDA_EXPORTED = 1, SNAP_CUDA_BOUND = 2, SNAP_CUDA_PARTS = 4, SNAP_CUDA_PART = 8 };
struct snap_cuda_block {
    uint32_t state; /* [live] enum snap_cuda_state */
    uint8_t kind;   /* enum snap_cuda_kind */
    uint8_t flags;  /* [live] enum snap_cuda_flag: shared with other processes; has parts; is part of another block */
    uint16_t device;
    uint64_t address; /* or the handle of an array, a pool, physical memory */
    uint64_t size;    /* as the program asked, or as it was rounded up where the program learns that */
    uint64_t birth_ns;
    uint64_t context, stream, pool; /* pool: of graph memory the graph; of mappings and handles the address of the
                                       physical memory, which is a number of ours; of a part the block's address */
    uint32_t count;                 /* [live] id of its snap_cuda_site */
    uint32_t thread;                /* slot */
    uint32_t users;                 /* [live] of physical memory: handles and mappings; of graph memory the capture */
    uint32_t ends;                  /* [live] of graphs and contexts, that had begun when it came to its own */
};

/* --- what NVML says of a device's memory and its users: the command asks it --- */

enum snap_nvml_state {
    SNAP_NVML_KNOWN = 1,
    SNAP_NVML_NO_LIBRARY = 2,
    SNAP_NVML_ERROR = 3,     /* `error` is NVML's */
    SNAP_NVML_NO_DEVICE = 4, /* it knows none by this uuid, or the ledger has none */
};
enum snap_nvml_flag {
    SNAP_NVML_HAS_OWN = 1,    /* the process is among those that it lists, with how much it has */
    SNAP_NVML_UNTOLD = 2,     /* of some process it does not say how much it has */
    SNAP_NVML_PROCESSES = 4,  /* it lists processes at all */
    SNAP_NVML_OWN_UNTOLD = 8, /* the process is among them, without */
};
struct snap_nvml {
    uint32_t device, state;
    int32_t error;
    uint32_t flags;
    uint64_t total, used;
    uint64_t own, others; /* bytes of this process, and of all others together */
    uint32_t other_count, pad;
};
struct snap_nvml_process { /* others, those that have most first, as far as there is room */
    uint32_t device, pid;
    uint64_t bytes; /* UINT64_MAX: not told */
    char name[16];
};

/* --- what CUPTI says of CUDA memory, beside the ledger or in place of hooks: libmemstow_cupti.so fills it in --- */

enum snap_cupti_state {
    SNAP_CUPTI_LISTENING = 1, /* its records are being read; the process has not ended by its exit handlers */
    SNAP_CUPTI_COMPARED = 2,
    SNAP_CUPTI_NOT_FOUND = 3, /* no libcupti.so for the process's CUDA */
    SNAP_CUPTI_TOO_OLD = 4,   /* older than CUDA 11.2's (since 1.6; before, than CUDA 12's) */
    SNAP_CUPTI_REFUSED = 5,   /* `call` returned `result` */
    SNAP_CUPTI_SOURCE = 6,    /* as 1, and the ledger is made of its records alone; since 1.6, as 7 */
    SNAP_CUPTI_ENDED = 7      /* as 6, and all that it had at the exit is in the ledger */
};

struct snap_cupti_sum {
    uint64_t blocks, bytes;
};

struct snap_cupti {
    uint32_t state;                    /* [live] enum snap_cupti_state */
    uint32_t result;                   /* of the call that failed, a CUptiResult */
    uint32_t version;                  /* cuptiGetVersion */
    uint32_t no_calls;                 /* why cuptiEnableCallback gave none of `calls`; 0: it did. Since 1.6 */
    uint64_t records;                  /* [live] read */
    uint64_t dropped;                  /* [live] that CUPTI had no room for */
    uint64_t unread;                   /* [live] that the table had no room for */
    uint64_t compared_ns;              /* 0: not yet. What follows is of then */
    struct snap_cupti_sum same;        /* seen by both */
    struct snap_cupti_sum only_cupti;  /* not in the ledger */
    struct snap_cupti_sum only_ledger; /* not in CUPTI's records */
    struct snap_cupti_sum sizes;       /* seen by both, with other sizes: bytes are CUPTI's */
    struct snap_cupti_sum others;      /* in CUPTI's records, of kinds that are not compared */
    char call[40];
    char library[160]; /* the end of its path */
    char other[64];    /* since 1.6, as what follows: another client of CUPTI's, as it calls itself */
    uint64_t unknown;  /* [live] records of kinds, or of layouts, that are not known; the first one's kind */
    uint32_t unknown_kind, several; /* several: it shares CUPTI with others */
    uint64_t read_ns;               /* [live] what CUPTI had complete by then has been read */
    uint64_t calls; /* [live] that CUPTI told of: of physical memory and its addresses, of which it has no records */
    struct snap_cupti_sum addresses_same;  /* mappings and reserved addresses */
    struct snap_cupti_sum addresses_other; /* differences of them */
    uint64_t pools_same, pools_other;  /* that the program has made; differences, also in what a device's give out */
    uint64_t pool_reserved, pool_used; /* bytes of all pools, by the last record of each */
    uint32_t no_pools, pad;            /* why cuptiActivityEnable gave no records of pools; 0: it did */
    uint64_t pool_records;             /* [live] that say how much of a pool is in use: 0 in CUDA 11's first */
};

enum snap_cupti_difference { SNAP_CUPTI_ONLY_CUPTI = 1, SNAP_CUPTI_ONLY_LEDGER = 2, SNAP_CUPTI_SIZES = 3 };
enum { SNAP_CUPTI_BLOCKS = 256 }; /* as many differences are named; the sums have them all */
struct snap_cupti_block {
    uint32_t state; /* enum snap_cupti_difference */
    uint16_t kind;  /* enum snap_cuda_kind */
    uint16_t device;
    uint64_t address;
    uint64_t bytes, ledger_bytes; /* CUPTI's and the ledger's */
    char source[96];              /* the end of the path of the library that asked for it; "" is not known */
};

enum snap_region_flag { SNAP_REGION_WRITE = 1, SNAP_REGION_EXEC = 2, SNAP_REGION_SHARED = 4 };
struct snap_region {
    uint64_t start, end;
    uint64_t resident;  /* bytes present */
    uint64_t anonymous; /* of them, bytes that no file backs */
    uint32_t path;      /* string as in /proc/PID/maps: "", a file, [heap], [stack] … */
    uint32_t flags;
};

/* SNAP_TOTALS: for each site and class one entry of unsigned LEB128 numbers, section.count entries:
 *   class (1 host, 2 mapped), tag, stack, module, flags, alloc_bytes, alloc_blocks, free_bytes, free_blocks,
 *   peak_bytes, peak_blocks
 * Entries are sorted by site, host first. */
enum snap_class { SNAP_HOST = 1, SNAP_MAPPED = 2, SNAP_ON_CUDA = 3 /* in no file: of CUDA_SITE's totals */ };
enum { SNAP_TOTALS_FIELDS = 11 };
enum snap_totals_flag {
    SNAP_TOTALS_INEXACT = 1 << 0,   /* the counters did not settle while they were read */
    SNAP_TOTALS_INHERITED = 1 << 1, /* SNAP_SITE_INHERITED */
    SNAP_TOTALS_UNKNOWN = 1 << 2,   /* SNAP_SITE_UNKNOWN */
    SNAP_TOTALS_NOT_SAMPLED = 1 << 3,
};

_Static_assert(sizeof(struct snap_header) <= SNAP_HEADER_SIZE, "the header fits its page");
_Static_assert(sizeof(struct snap_section) == 32, "section");
_Static_assert(sizeof(struct snap_fact) == 8, "fact");
_Static_assert(sizeof(struct snap_module) == 64, "module");
_Static_assert(sizeof(struct snap_node) == 12, "node");
_Static_assert(sizeof(struct snap_frame) == 16, "frame");
_Static_assert(sizeof(struct snap_code) == 16, "code");
_Static_assert(sizeof(struct snap_owner) == 88, "owner");
_Static_assert(sizeof(struct snap_site) == 8, "site");
_Static_assert(SNAP_SITE_TAG_BITS + SNAP_SITE_STACK_BITS + SNAP_SITE_MODULE_BITS == 64, "a site is one word");
_Static_assert(sizeof(struct snap_counter) == 32, "counter");
_Static_assert(sizeof(struct snap_chunk) == 1032, "chunk");
_Static_assert(sizeof(struct snap_thread) == 128, "thread");
_Static_assert(sizeof(struct snap_large) == 40, "large");
_Static_assert(sizeof(struct snap_mapping) == 64, "mapping");
_Static_assert(sizeof(struct snap_birth) == 40, "birth");
_Static_assert(sizeof(struct snap_misuse) == 88, "misuse");
_Static_assert(sizeof(struct snap_region) == 40, "region");
_Static_assert(sizeof(struct snap_ring) == 32, "ring");
_Static_assert(sizeof(struct snap_line) == 16, "line");
_Static_assert(sizeof(struct snap_cuda) == 160, "cuda");
_Static_assert(sizeof(struct snap_cuda_device) == 176, "cuda device");
_Static_assert(sizeof(struct snap_nvml) == 56, "nvml");
_Static_assert(sizeof(struct snap_nvml_process) == 32, "nvml process");
_Static_assert(sizeof(struct snap_cuda_site) == 56, "cuda site");
_Static_assert(sizeof(struct snap_cuda_block) == 72, "cuda block");
_Static_assert(sizeof(struct snap_cupti) == 504, "cupti");
_Static_assert(sizeof(struct snap_cupti_block) == 128, "cupti block");

#endif
