/* snapshot.h — the format of the file that libmemstow.so writes and the memstow command reads.
 *
 * Two kinds of file share it. A *ledger* is the live file of a process. It is mapped shared while the process runs, so
 * nothing is lost when the process is killed. A *snapshot* is a compact copy of a ledger, made by `memstow snapshot`.
 * Both consist of one snap_header and sections, one after the other, up to snap_header.size. A section is a
 * snap_section and its records. A reader skips section types that it does not know, and trusts no field.
 *
 * Integers are little-endian and naturally aligned. Times are CLOCK_MONOTONIC nanoseconds, unless the name says "wall".
 * In a ledger every field marked [live] may change while a reader reads it. A reader reads each 64-bit counter as one
 * word. These counters only grow. docs/format.md describes the format in prose. */
#ifndef MEMSTOW_SNAPSHOT_H
#define MEMSTOW_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#define SNAP_MAGIC "MEMSTOW\n"
enum {
    SNAP_MAJOR = 1, /* a reader refuses a file with another major version */
    SNAP_MINOR = 6, /* a newer minor version adds sections and fields, which an older reader ignores */
    SNAP_HEADER_SIZE = 4096,
    SNAP_BYTE_ORDER = 0x01020304,
};

enum snap_kind { SNAP_LEDGER = 1, SNAP_SNAPSHOT = 2 };

enum snap_flag {
    SNAP_MEMORY_ONLY = 1 << 0, /* the ledger was in memory, and was written once, at an orderly exit */
    SNAP_FORK_CHILD = 1 << 1,  /* the process was forked: inherited blocks are counted at site SNAP_SITE_INHERITED */
    SNAP_RESIDENCY = 1 << 2,   /* SNAP_REGION and the `resident` fields have values */
    SNAP_FOREIGN_ALLOCATOR = 1 << 3, /* the program has its own malloc family, and memstow is in front of it */
    SNAP_FROM_CUPTI = 1 << 4,        /* libmemstow_cupti.so wrote the file, which has CUDA memory only; since 1.6 */
};

/* Whether the process runs, and how it ended. RUNNING: it runs, or it ended without a note here, because it was killed
 * or made the exit system call itself, as Go programs do. EXITED: it ended in order. ABRUPT_EXIT: it ended by _exit or
 * quick_exit. EXECED: it became another program. */
enum snap_state { SNAP_RUNNING = 1, SNAP_EXITED = 2, SNAP_ABRUPT_EXIT = 3, SNAP_EXECED = 4 };

/* Which call stacks are recorded. NONE: none. FULL: those of all events. SAMPLE: those of the blocks that are samples,
 * and of all events that are not about blocks, such as mappings. MODULE is not used. */
enum snap_stacks { SNAP_STACKS_NONE = 0, SNAP_STACKS_MODULE = 1, SNAP_STACKS_FULL = 2, SNAP_STACKS_SAMPLE = 3 };
#define SNAP_SAMPLE_MOST ((uint64_t)1 << 40)
/* The allocator that serves malloc. KEEP: the program's own; MIMALLOC: the one that is built into memstow. */
enum snap_allocator { SNAP_ALLOCATOR_KEEP = 0, SNAP_ALLOCATOR_MIMALLOC = 1 };

/* What could not be counted or stored. The header's `lost` has one number for each of these kinds. A report has these
 * numbers under `lost`. tools/image/lost.c has a text for each kind. */
enum snap_lost {
    SNAP_LOST_SITES,    /* new sites for which there was no memory: their events count at SNAP_SITE_UNKNOWN */
    SNAP_LOST_THREADS,  /* events of threads without counters: they count in the shared slot */
    SNAP_LOST_MODULES,  /* call sites whose module could not be recorded */
    SNAP_LOST_LARGE,    /* large blocks without a record of their own (still counted) */
    SNAP_LOST_MAPPINGS, /* mapping events not recorded */
    SNAP_LOST_BLOCKS,   /* blocks that the program got but that were not counted */
    SNAP_LOST_FILE,     /* failures to create or grow the file */
    SNAP_LOST_PEAK,     /* sites missing from the picture of the peak */
    /* look-ups of stacks for which there was no memory: events of such a stack count at an outer part of it, or
     * without a stack. The number of look-ups is not the number of these events. It is lower if a thread remembers a
     * stack and does not look it up again. It is higher if one look-up was counted twice */
    SNAP_LOST_STACKS,
    SNAP_LOST_FRAMES, /* stacks that end early, because the caller of some code cannot be found */
    SNAP_LOST_PYTHON, /* evaluation loops of Python that were met on a stack, but whose functions were not found */
    /* dead stacks whose totals went to an outer stack, and dead CUDA_SITE records whose totals went to a record without
     * a site. Their memory is used for new stacks and records */
    SNAP_LOST_FOLDED,
    SNAP_LOST_TAGS,  /* scopes that could not be noted: their allocations have no tag */
    SNAP_LOST_TRACE, /* lines that the trace of decisions could not take */
    /* what was lost of CUDA. Examples in any ledger: blocks without a record, whose frees are not seen either; memory
     * functions that the program looked up, but that memstow does not know. In a ledger from CUPTI also: records that
     * CUPTI dropped, records that a full table did not take, and records of unknown kinds */
    SNAP_LOST_CUDA,
    SNAP_LOST_KINDS = 16
};

/* Sites (ids of a call stack under a tag) with a fixed meaning. Site 2 has two names. If sample_bytes is 0, it is
 * FIRST, the first site of the program's own. Otherwise it is NOT_SAMPLED, the site of all blocks that are not
 * samples. */
enum { SNAP_SITE_UNKNOWN = 0, SNAP_SITE_INHERITED = 1, SNAP_SITE_FIRST = 2, SNAP_SITE_NOT_SAMPLED = SNAP_SITE_FIRST };

/* Thread slots (each has a set of counters) with a fixed meaning. SHARED counts for all threads without a slot of their
 * own; MAPPINGS counts all mapping events; FIRST is the first slot of a thread. */
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
    uint64_t size;        /* [live] bytes in use: header and whole sections */
    uint32_t flags;       /* [live] enum snap_flag */
    uint32_t state;       /* [live] enum snap_state */

    uint32_t pid, parent_pid;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat; with pid and boot_id it identifies a process forever */
    uint8_t boot_id[16];
    uint8_t run_id[16]; /* the same in all processes of one `memstow run` */
    uint32_t uid;
    uint32_t exec_generation; /* how many programs this process ran with memstow before its latest exec */
    uint32_t fork_depth;      /* how many forks lie between the latest exec and this process */
    uint32_t stacks;          /* enum snap_stacks */
    uint32_t allocator;       /* enum snap_allocator */
    uint32_t page_size;
    char name[32]; /* program name, NUL-terminated */

    uint64_t start_wall_ns, start_ns; /* when the ledger began, by both clocks */
    uint64_t end_ns;                  /* [live] 0 while running */
    uint64_t taken_ns;                /* snapshot: when it was made; 0 in a ledger */
    uint64_t residency_ns;            /* when residency was measured */
    uint64_t rss_bytes;               /* resident set size at that time, from /proc/PID/statm */

    /* [live] Estimates for a status line and for the peak. Exact live bytes come from the counters. Each thread holds
     * back its changes of host_live until they reach `quantum` bytes. The quantum shrinks as threads come, so all
     * threads together hold back less than 1 MiB. */
    int64_t host_live, mapped_live;
    uint64_t host_peak, mapped_peak;    /* the highest values of host_live and of mapped_live */
    uint64_t total_peak, total_peak_ns; /* the highest value of host_live + mapped_live, and its time */
    uint64_t quantum;

    /* The picture of the peak: the live bytes of each site near the time of the peak. */
    uint32_t picture_buffer; /* [live] 0: SNAP_PEAK_0 has the complete picture; 1: SNAP_PEAK_1 has it; 2: none has it */
    /* [live] It grows before and after a thread gives records of sites to other stacks, and is odd in between. A reader
     * that finds it odd or changed must read everything again. */
    uint32_t fold_sequence;
    uint64_t picture_peak;   /* the peak that the picture shows, in bytes */
    uint64_t picture_bytes;  /* the sum of the picture; the difference from picture_peak is its error */
    uint64_t picture_ns;     /* the time of that peak */
    uint64_t picture_length; /* the length of the picture in bytes */

    uint64_t inherited_bytes;                 /* live bytes that a forked child inherited */
    uint64_t file_mapped_live, reserved_live; /* [live] bytes of file and PROT_NONE mappings; mapped_live lacks both */
    uint64_t advised_bytes[32];               /* [live] bytes passed to madvise, by advice number (0–31) */

    uint64_t lost[SNAP_LOST_KINDS]; /* [live] enum snap_lost */

    /* [live] how many ranges `own` has; these are the library's private memory, for the residency report */
    uint32_t own_ranges;
    uint32_t header_overhead; /* bytes that memstow puts in front of each block */
    struct snap_range own[64];
    struct snap_range ledger_map; /* where the ledger is mapped in the process */
    struct snap_range library_map;
    uint64_t sample_bytes; /* mean distance between sampled bytes; 0: stacks are not sampled */

    /* [live] The present move of an owner's host memory; since 1.6. */
    uint32_t moving_owner;              /* 0: no memory is moved */
    uint32_t moving;                    /* enum snap_moving */
    uint64_t moved_bytes, wanted_bytes; /* wanted_bytes is 0 until it is known */

    /* How the process ended; since 1.6. The command that started the process writes this after its wait for the
     * process. */
    uint32_t ended;      /* enum snap_ended */
    uint32_t ended_with; /* the exit status, or the number of the signal */
};

enum snap_ended { SNAP_ENDED_UNKNOWN, SNAP_ENDED_EXITED, SNAP_ENDED_KILLED };

enum snap_moving { SNAP_MOVING_OUT = 1, SNAP_MOVING_BACK };

enum snap_type {
    SNAP_STRINGS = 1, /* bytes; a string is identified by its offset over all STRINGS sections; offset 0 is "" */
    SNAP_PROCESS,     /* snap_fact */
    SNAP_MODULE,      /* snap_module; from this type on, records are numbered over all sections of their type */
    SNAP_TAG,         /* snap_tag */
    SNAP_OWNER,       /* snap_owner */
    SNAP_SITE,        /* snap_site */
    SNAP_THREAD,      /* snap_thread */
    SNAP_COUNTERS,    /* snap_chunk: ledger only */
    SNAP_LARGE,       /* snap_large: blocks >= SNAP_LARGE_BYTES and page-aligned blocks; empty records have address 0 */
    SNAP_MAPPING,     /* snap_mapping: empty records have length 0 */
    SNAP_PEAK_0,      /* bytes of a picture (see below); ledger only; `count` is not maintained */
    /* snap_region: the address space when residency was measured; regions may be cut where mappings, stacks and the
     * header's `own` ranges begin */
    SNAP_REGION,
    SNAP_TOTALS,  /* packed (see below); snapshot only, in place of SITE, COUNTERS, WIDE, PEAK_0 and PEAK_1 */
    SNAP_FRAME,   /* snap_frame */
    SNAP_CODE,    /* snap_code: Python functions */
    SNAP_SEGMENT, /* uint32_t words: pieces of stacks (see below); snapshot only, like NODE */
    SNAP_NODE,    /* snap_node: stacks; ids from 0, which is the empty stack */
    SNAP_PEAK_1,
    SNAP_WIDE,        /* snap_counter: the wide counters; ledger only */
    SNAP_RUN,         /* uint32_t words: stacks (see below); ledger only, in place of SEGMENT and NODE */
    SNAP_TRACE,       /* one snap_ring and its bytes: the trace of decisions */
    SNAP_CUDA,        /* one snap_cuda; this and the next three exist once the process has used CUDA */
    SNAP_CUDA_DEVICE, /* snap_cuda_device, by ordinal */
    SNAP_CUDA_SITE,   /* snap_cuda_site */
    SNAP_CUDA_BLOCK,  /* snap_cuda_block: empty records have state 0 */
    SNAP_SERIES = 40, /* packed: figures of earlier moments (docs/format.md); snapshot only */
    /* snap_origin: descriptors, by number; ledger only, like START; `count` of both is not maintained */
    SNAP_ORIGIN = 41,
    SNAP_START = 42,  /* snap_origin: threads, by slot */
    SNAP_MISUSE = 43, /* snap_misuse: faults with blocks, such as double frees; empty records have kind 0 */
    /* This type and the next two are about memory over time; since 1.6. Their records are in no order. An empty point
     * has the time 0. An empty mark has the kind 0 */
    SNAP_POINT = 44,      /* snap_point */
    SNAP_CUDA_POINT = 45, /* snap_cuda_point */
    SNAP_MARK = 46,       /* snap_mark: events, such as the end of a run; a ring */
    SNAP_OWNER_MARK = 47, /* snap_owner_mark: what owners had at marks; a ring; since 1.6 */
    SNAP_CUPTI = 48,      /* one snap_cupti: exists if the comparison with CUPTI was requested and CUDA was used */
    SNAP_CUPTI_BLOCK,     /* snap_cupti_block: empty records have state 0 */
    /* snap_nvml: NVML's figures of each device when the snapshot was made. Only snapshots have this type and the next
     * one */
    SNAP_NVML = 56,
    SNAP_NVML_PROCESS, /* snap_nvml_process */
};

struct snap_section {
    uint32_t type;        /* enum snap_type */
    uint16_t version;     /* 1; a reader that knows only version 1 skips other versions */
    uint16_t record_size; /* bytes of a record; a newer minor version may append fields */
    uint64_t length;      /* bytes of the section, with this struct; the next section follows */
    uint64_t count;       /* [live] number of used records, which come first; in LARGE and MAPPING, of all records */
    /* the id of the first record; in STRINGS, the offset of the first byte. The ids of the next section of the same
     * type continue the ids of this section */
    uint64_t first;
};

struct snap_fact {
    uint32_t key; /* enum snap_fact_key */
    uint32_t string;
};
enum snap_fact_key {
    SNAP_FACT_EXE = 1,     /* the path of the program's file */
    SNAP_FACT_COMMAND = 2, /* the arguments, separated by spaces */
    SNAP_FACT_LIBRARY = 3,
    SNAP_FACT_NOTE = 4,
    SNAP_FACT_CONTROL = 5, /* the path of the control socket, as the process sees it */
};

struct snap_module {
    uint64_t start, end; /* the address range */
    uint64_t bias;       /* address minus the file's virtual address */
    uint32_t path;       /* string; "": the code belongs to no file */
    uint32_t generation; /* each dlclose adds 2 to a counter; this is its value at the module's first use */
    uint32_t flags;
    uint32_t build_id_length;
    uint8_t build_id[24];
};

struct snap_tag {
    uint32_t model, node, run; /* owner ids; 0: none */
    uint32_t pad;
};

enum snap_owner_kind { SNAP_OWNER_MODEL = 1, SNAP_OWNER_NODE, SNAP_OWNER_RUN, SNAP_OWNER_CUSTOM, SNAP_OWNER_STATE };
/* An owner of kind SNAP_OWNER_RUN is retired when the run has ended. */
enum snap_owner_state { SNAP_OWNER_LIVE = 1, SNAP_OWNER_RETIRED = 2 };
/* Policies and outcomes have the numbers of memstow.h. */
struct snap_owner {
    uint32_t id;
    uint32_t kind;         /* enum snap_owner_kind */
    uint32_t name, origin; /* strings */
    uint32_t policy;       /* [live] 0: none was set */
    int32_t priority;      /* [live] */
    uint32_t state;        /* [live] enum snap_owner_state */
    uint32_t adopted_by;   /* [live] the owner that now has all of its memory; 0: none */
    uint64_t keys[2];      /* from the program */
    uint64_t begin_ns, end_ns;
    uint32_t outcome; /* how a run ended, as in memstow.h */
    uint32_t pad;
    /* [live] the stowed bytes after the owner's latest move. Later frees are not subtracted, so a reader limits them to
     * the live bytes */
    uint64_t stowed_bytes;
    uint64_t device_stowed_bytes; /* [live] the device memory in stowed_bytes; since 1.5 */
};

/* In a ledger a stack is identified by a place: the id of the word of its innermost frame. Words lie in runs. A run is
 * a head and the words of up to SNAP_RUN_MOST frames, from the outermost to the innermost. So the place of a frame's
 * caller is the word before the frame's word. For the first frame of a run, the head names that place. Place 0 is the
 * empty stack. */
enum {
    /* the words of a head: */
    SNAP_RUN_OUTER, /* the place of the caller of the run's first frame */
    SNAP_RUN_SITE,  /* the untagged site of the run's innermost place; 0: none */
    SNAP_RUN_HEAD,  /* the number of words in a head */
    SNAP_RUN_MOST = 64,
};
/* The word of a frame holds the frame's id and flags. FIRST: it is the outermost frame of its run. LAST: it is the
 * innermost one. */
#define SNAP_RUN_FIRST ((uint32_t)1 << 31)
#define SNAP_RUN_LAST ((uint32_t)1 << 30)
#define SNAP_RUN_END ((uint32_t)1 << 29) /* there is, or was, a run without frames whose head names this place */
/* The bits of the frame's id. If all are set, there is no frame: the stack ends with the place that the head names. */
enum { SNAP_RUN_FRAME = (1 << 24) - 1 };

/* In a snapshot a stack is a chain of segments. The innermost frames are in the segment of its node, the next ones
 * further out in the segment of the node's parent, and so on to node 0. A segment is a word that holds a number n, and
 * n words with frame ids, outermost first. The id of the first word is the segment's id. */
struct snap_node {
    uint32_t parent;
    uint32_t segment;
    uint32_t reserved;
};

/* A frame: a place in native code, or a line of a Python function. */
struct snap_frame {
    uint64_t address; /* native: return address in the process; Python: offset of the instruction in the function */
    union {
        uint32_t module; /* native: 1 + module id; 0: none */
        uint32_t line;   /* Python; 0: unknown */
    };
    /* Python: 1 + code id. Native: 0, or SNAP_FRAME_INTERRUPTED if `address` is the instruction itself. */
    uint32_t code;
};
#define SNAP_FRAME_INTERRUPTED 0x80000000u

struct snap_code {
    uint32_t name, file; /* strings */
    uint32_t first_line, flags;
};

/* A site. Its word has, from the lowest bit on: tag id (0: untagged), stack (0: not recorded), 1 + module id of the
 * caller (0: not recorded). [live] If the word is SNAP_SITE_FREE, nothing is counted at this site,
 * whatever the counters say. */
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

/* A counter only grows, until its site is given to another stack. Live is alloc minus free, summed over all threads. If
 * a thread frees a block of another thread, the free counts in the freeing thread's chunk. */
struct snap_counter {
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
};

/* The counters of one thread at SNAP_CHUNK_SITES sites. Each site has one word, which is narrow or wide. Each change
 * of a word is atomic.
 *   - A narrow word holds the counter itself. This is possible if all blocks have one size, and the events are few.
 *     Bits 0-31 are the size, bits 32-47 the number of allocations, bits 48-62 the number of frees.
 *   - A wide word has SNAP_WIDE_BIT. Its other bits are the address, in the process, of a record in a WIDE section.
 *     That record holds the counter. The first record of each WIDE section holds no counter: its alloc_bytes is the
 *     record's own address. A wide word stays wide until a fold empties it. A record to which no word points means
 *     nothing.
 *
 * The mark grows by 1 after each event at a site of the chunk. So a reader that looks again and again reads the marks
 * first, and then only the chunks whose marks have changed. Three kinds of changes do not change the mark:
 *   - changes at sites below SNAP_CHUNK_SITES; a reader must always read these sites
 *   - changes by a fold; after a fold a reader must read everything again
 *   - the last event of a process that was killed before it wrote the mark */
enum { SNAP_CHUNK_SITES = 128 };
struct snap_chunk {
    uint32_t thread; /* slot in THREAD, plus 1; 0: not in use yet */
    uint32_t index;  /* the chunk counts sites from index * SNAP_CHUNK_SITES on */
    uint64_t words[SNAP_CHUNK_SITES];
    uint64_t mark; /* [live] since 1.6 */
    /* The size is a multiple of a cache line. So the mark, which its thread writes all the time, shares no line with
     * the words of the next chunk, which may belong to another thread. */
    uint64_t reserved[6];
};
#define SNAP_WIDE_BIT ((uint64_t)1 << 63)

static inline uint64_t snap_narrow(uint32_t size, uint32_t allocated, uint32_t freed) {
    return size | (uint64_t)allocated << 32 | (uint64_t)freed << 48;
}
/* The counter in a word without SNAP_WIDE_BIT. */
static inline struct snap_counter snap_narrow_counter(uint64_t word) {
    uint64_t size = (uint32_t)word, allocated = word >> 32 & 0xFFFF, freed = word >> 48;
    return (struct snap_counter){size * allocated, allocated, size * freed, freed};
}

enum snap_thread_state { SNAP_THREAD_FREE = 0, SNAP_THREAD_LIVE = 1, SNAP_THREAD_ENDED = 2 };
struct snap_thread {
    uint32_t tid;
    uint32_t state; /* [live] enum snap_thread_state; a later thread may use the slot of an ended thread */
    uint64_t birth_ns, end_ns;
    uint64_t stack_start, stack_end; /* 0: unknown */
    char name[16];
    uint32_t uses; /* how many threads have had this slot */
    uint32_t flags;
    struct snap_counter before; /* the sum of the slot's counters when the present thread began */
    /* In a snapshot, all that the slot has counted. In a ledger, only the part that the slot's counters do not have. */
    struct snap_counter total;
};

enum { SNAP_LARGE_BYTES = 65536 };
struct snap_large {
    uint64_t address; /* [live] 0: empty; written last, cleared first. Bit 0: being written */
    uint64_t size;    /* as the program asked */
    uint64_t birth_ns;
    uint64_t resident; /* bytes, when residency was measured */
    uint32_t site;     /* in a ledger: an index of SITE; in a snapshot: 1 + an index of TOTALS; 0: none */
    uint32_t thread;
};

enum snap_mapping_kind {
    SNAP_MAP_ANONYMOUS = 1,
    SNAP_MAP_FILE = 2,
    SNAP_MAP_RESERVED = 3, /* PROT_NONE */
    SNAP_MAP_BRK = 4,
};
struct snap_mapping {
    uint32_t sequence; /* [live] odd while a thread writes this record; the reader must then read it again */
    uint32_t kind;     /* enum snap_mapping_kind; only ANONYMOUS and BRK count as live */
    uint64_t address, length;
    uint64_t birth_ns;
    uint64_t resident;
    uint64_t advice; /* bit n: some part of the mapping got madvise advice n (n < 64) */
    uint32_t site;   /* as in snap_large */
    uint32_t tid;
    uint32_t shared;
    uint32_t pad;
};

/* Where a descriptor was opened, or a thread was started. The record is about the latest descriptor or thread with the
 * number `key` whose start memstow saw. By now the number may belong to a newer descriptor or thread, whose start
 * memstow did not see. */
enum snap_origin_kind {
    SNAP_ORIGIN_FILE = 1,
    SNAP_ORIGIN_SOCKET = 2,
    SNAP_ORIGIN_PIPE = 3,
    SNAP_ORIGIN_OTHER = 4,
    SNAP_ORIGIN_COPY = 5, /* a copy of another descriptor, of any kind */
    SNAP_ORIGIN_OF_THREAD = 6,
    SNAP_ORIGIN_INHERITED = 7, /* it existed when the ledger began; no site */
};
struct snap_origin {
    uint32_t sequence; /* [live] odd while another thread writes this record */
    uint32_t kind;     /* enum snap_origin_kind; 0: empty */
    uint32_t key;      /* the descriptor, or the thread's id */
    uint32_t site;     /* untagged */
    uint64_t birth_ns;
    uint64_t device, inode; /* of the opened file; device is major << 32 | minor; both 0: unknown */
};

/* A fault of the program with a block; since 1.6. FREED and DAMAGED are found when the program passes the block to free
 * or realloc; in a live block, DAMAGED is also found at the end of the process. */
enum snap_misuse_kind {
    SNAP_MISUSE_FREED = 1,   /* the block was freed before */
    SNAP_MISUSE_DAMAGED = 2, /* the 16 bytes of memstow in front of the block were overwritten */
    /* The next two kinds are for a block of a device: CUDA reported error 700 (illegal address), and it may be that a
     * kernel had used this block. In their records, time_ns is the time when the block was moved off its device or
     * freed. The site FREED_FIRST is where the block was freed. The site NOW is that of the call that returned the
     * error. */
    SNAP_MISUSE_STOWED_FAULT = 3, /* memstow had moved the block off its device */
    SNAP_MISUSE_FREED_FAULT = 4   /* the block was freed shortly before */
};
enum snap_misuse_call {
    SNAP_MISUSE_FREE = 1,
    SNAP_MISUSE_REALLOC = 2,
    SNAP_MISUSE_END = 3, /* no call: the damage was found in a live block at the end of the process */
};
enum snap_misuse_flag {
    SNAP_MISUSE_HARMLESS = 1, /* without memstow, no allocator would read these bytes: the program goes on */
    SNAP_MISUSE_UNSURE = 2    /* since the free, the allocation site may have been given to another stack */
};
/* The sites of a misuse. ALLOCATED: where the block was allocated; FREED_FIRST: where it was first freed (one frame);
 * NOW: where its pointer was passed to free or realloc when the fault was found. */
enum { SNAP_MISUSE_ALLOCATED, SNAP_MISUSE_FREED_FIRST, SNAP_MISUSE_NOW, SNAP_MISUSE_SITES };
enum { SNAP_MISUSES = 64 }; /* at most this many are noted */
struct snap_misuse {
    uint32_t kind; /* [live] enum snap_misuse_kind, written last; 0: empty */
    uint16_t call; /* enum snap_misuse_call */
    uint16_t flags;
    uint64_t address;
    uint64_t size; /* UINT64_MAX: unknown */
    uint64_t time_ns;
    uint32_t thread; /* slot */
    uint32_t pad;
    struct snap_misuse_site {
        uint32_t site;               /* ledger; 0: unknown */
        uint32_t tag, stack, module; /* snapshot: the fields of the site; an unknown stack or module is 0 */
    } sites[SNAP_MISUSE_SITES];
};

/* A picture has an entry for each site that had live blocks, in the order of the sites' ids. An entry has three
 * unsigned LEB128 numbers: the site's id minus the id of the previous entry, the bytes, and the blocks. The first entry
 * has the id itself. The picture ends at picture_length; bytes of an older picture may follow. */

enum { SNAP_NUMBER_MAX = 10 };
/* Appends an unsigned LEB128 number, of at most SNAP_NUMBER_MAX bytes, at `to`. Returns the address behind it. */
static inline uint8_t *snap_put_number(uint8_t *to, uint64_t number) {
    for (; number >= 0x80; number >>= 7) *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

/* Reads an unsigned LEB128 number from [*at, end) and moves *at behind it. 0: the number is cut short, or has more than
 * 64 bits. (The tenth group of seven bits holds one bit only.) */
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

/* The trace of decisions: a ring of lines, in the `capacity` bytes that follow this struct. A position counts all bytes
 * ever written; a byte lies at its position modulo `capacity`. The lines from `start` to `end` are complete. `start`
 * moves before the oldest lines are overwritten. `end` moves after a new line is complete. A reader of a running
 * process first reads `start` and `end`, then the bytes, then `start` again. The reader drops everything before the new
 * `start`. */
struct snap_ring {
    uint64_t capacity;   /* a multiple of 8 */
    uint64_t start, end; /* [live] */
    uint64_t next;       /* [live] number of the next line; the first is 1 */
};
/* The head of a line. The next head follows the text, at a multiple of 8. */
struct snap_line {
    uint32_t length; /* length of the text, a JSON object */
    uint32_t check;  /* snap_line_check of number and text */
    uint64_t number;
};
enum { SNAP_LINE_MOST = 4096 };

/* The check sum of a line: FNV-1a of its number and text. */
static inline uint32_t snap_line_check(uint64_t number, const char *text, size_t length) {
    uint32_t check = 2166136261u;
    for (int i = 0; i < 8; i++) check = (check ^ (uint8_t)(number >> 8 * i)) * 16777619u;
    for (size_t i = 0; i < length; i++) check = (check ^ (uint8_t)text[i]) * 16777619u;
    return check;
}

/* --- memory over time --- */

/* The points of memory over time. A curve has at most SNAP_POINTS points. The writer divides time into intervals, and
 * keeps the highest and the latest point of each; when all points are taken, the intervals become twice as long. The
 * time of a point is written last and cleared first. While the writer merges intervals, a point may be there twice. */
enum {
    SNAP_POINTS = 4032,
    SNAP_POINT_STEP = 1 << 17, /* a change of at most this makes no point */
    SNAP_POINT_DEVICES = 8,    /* how many devices a snap_cuda_point has; any further devices have no curve */
};
struct snap_point {
    uint64_t time_ns;
    uint64_t host, mapped; /* live bytes; as exact as host_live and mapped_live of the header */
    uint32_t run, node;    /* the owners under which the change was made; 0: none */
};
struct snap_cuda_point {
    uint64_t time_ns;
    uint64_t live[SNAP_POINT_DEVICES]; /* live bytes on each device */
};

enum snap_mark_kind {
    SNAP_MARK_RUN_BEGAN = 1,
    SNAP_MARK_RUN_ENDED, /* detail: the outcome, as in snap_owner */
    SNAP_MARK_CAME,      /* a model or custom owner was registered */
    SNAP_MARK_RETIRED,   /* the program said that the owner is gone */
    SNAP_MARK_TRIGGER,   /* detail: the reason, as in memstow.h; 5: rescue */
    SNAP_MARK_KEPT,   /* the memory stayed; this kind and the next three are outcomes of a trigger, and have `live` */
    SNAP_MARK_STOWED, /* the memory was stowed, by a trigger, a request or the program's own call */
    SNAP_MARK_FREED,
    SNAP_MARK_BLOCKED,
    SNAP_MARK_RESTORED,
    SNAP_MARK_OUT_OF_MEMORY, /* the driver refused `bytes`; detail: the device */
    SNAP_MARK_KINDS
};
#define SNAP_MARK_UNKNOWN UINT64_MAX
/* What a model, custom owner or value of the store had at a mark. There is a record only if the figures differ
 * from those in the owner's previous record. The time is written last and cleared first. */
struct snap_owner_mark {
    uint64_t time_ns; /* the time of the mark */
    uint32_t owner;
    uint32_t pad;
    uint64_t live;       /* live bytes of heap and mappings */
    uint64_t on_devices; /* live bytes on devices */
};
struct snap_mark {
    uint64_t time_ns;
    uint32_t kind;  /* enum snap_mark_kind; written last, cleared first */
    uint32_t owner; /* 0: none */
    uint32_t detail, pad;
    uint64_t bytes;                    /* bytes that moved, that were given back, or that were requested; 0: none */
    uint64_t live;                     /* the owner's live bytes afterwards; SNAP_MARK_UNKNOWN: not known */
    uint64_t host, mapped, on_devices; /* live bytes of the process, as in the curves */
    uint64_t rss;                      /* 0: not measured */
};

/* --- CUDA memory --- */

enum snap_cuda_kind {
    SNAP_CUDA_DEVICE_MEMORY = 1, /* cudaMalloc and the like; this kind and the next four are memory of a device */
    SNAP_CUDA_POOL_MEMORY = 2,   /* allocated in stream order, from a pool */
    SNAP_CUDA_MANAGED = 3,
    SNAP_CUDA_ARRAY = 4,
    SNAP_CUDA_PHYSICAL = 5,   /* from cuMemCreate; counted until it is released and no longer mapped */
    SNAP_CUDA_GRAPH = 6,      /* memory of a node of a graph: it exists only while the graph runs */
    SNAP_CUDA_PINNED = 7,     /* host memory from the driver */
    SNAP_CUDA_REGISTERED = 8, /* host memory from the program; it also counts as host or mapped memory */
    SNAP_CUDA_IMPORTED = 9,   /* memory of another process, and memory of unknown size; bytes are 0 for both */
    SNAP_CUDA_RESERVED = 10,  /* reserved addresses */
    SNAP_CUDA_MAPPING = 11,   /* a mapping of physical memory to addresses */
    SNAP_CUDA_POOL = 12,      /* a pool itself: bytes are 0 */
    SNAP_CUDA_HANDLE = 13,    /* a handle of physical memory: bytes are 0 */
    SNAP_CUDA_BACKUP = 14,    /* memstow's host memory for content that was moved off a device; since 1.5 */
    SNAP_CUDA_BUFFER = 15,    /* memstow's pinned host memory, a buffer for copies; since 1.5 */
    SNAP_CUDA_KINDS = 16
};
/* Whether the kind is memory of a device. */
static inline int snap_cuda_on_device(uint32_t kind) {
    return kind >= SNAP_CUDA_DEVICE_MEMORY && kind <= SNAP_CUDA_PHYSICAL;
}

enum { SNAP_CUDA_DEVICES = 64, SNAP_CUDA_UNKNOWN = 4 };

struct snap_cuda {
    int64_t live;           /* [live] bytes on devices */
    uint64_t peak, peak_ns; /* [live] */
    /* [live] frees of blocks without a record: memstow did not see the allocation, or the block was freed before */
    uint64_t foreign_frees;
    uint64_t missed_frees; /* [live] blocks that still had a record when a new block came at their address */
    uint64_t refused;      /* [live] requests for which the driver had no memory; refused_… describe the latest one */
    uint64_t refused_bytes, refused_ns, refused_live;
    uint32_t refused_device, refused_kind;
    /* [live] look-ups of entries of CUDA that memstow does not know. SNAP_LOST_CUDA counts these look-ups, too.
     * `unknown` is the name of the first unknown entry */
    uint64_t unknown_entries;
    char unknown[64];
    uint32_t captures;      /* [live] streams in capture */
    uint32_t refused_files; /* how many snapshots were made at refusals: FILE.oom1.mst and so on */
    char unknown_more[SNAP_CUDA_UNKNOWN - 1][64]; /* the names of the next unknown entries */
};

/* A device. figures_ns is the time at which the driver gave `total`, `available`, and the figures of the pool and of
 * graphs. figures_ns is 0 if the driver never gave them. */
struct snap_cuda_device {
    uint32_t used, pad; /* [live] 0: the device is unknown */
    int64_t live;       /* [live] bytes in the ledger */
    uint64_t peak;      /* [live] */
    uint64_t figures_ns, total, available;
    int64_t figures_live;                /* `live` at figures_ns, without memory that was moved off the device */
    uint64_t pool_reserved, pool_used;   /* of the device's default pool */
    uint64_t graph_reserved, graph_used; /* of the device's graphs */
    char name[64];
    uint8_t uuid[16]; /* since 1.6; NVML has the same id for the device. A MIG instance has an id of its own */
    uint32_t kind;    /* enum snap_cuda_device_kind */
    uint32_t pad2;
    uint64_t spare; /* since 1.6: bytes that the program has freed and memstow keeps for its next requests */
};

enum snap_cuda_device_kind {
    SNAP_CUDA_HAS_UUID = 1,  /* `uuid` is valid */
    SNAP_CUDA_KNOWS_MIG = 2, /* SNAP_CUDA_IS_MIG is valid */
    SNAP_CUDA_IS_MIG = 4,    /* the device is a MIG instance */
    SNAP_CUDA_KNOWS_MPS = 8, /* SNAP_CUDA_IS_MPS is valid */
    SNAP_CUDA_IS_MPS = 16,   /* the process uses the device through an MPS server */
};

/* The memory that was allocated at a site under a tag, of one kind, on one device. In a ledger, stack and module are
 * those of the site. In a snapshot `site` is 0. */
struct snap_cuda_site {
    /* [live] blocks that are counted here; SNAP_CUDA_SITE_CLOSED: the record is about to be given to another site */
    uint32_t users;
    uint32_t site, tag;
    uint16_t device;
    uint8_t kind; /* [live] enum snap_cuda_kind; 0: empty */
    uint8_t pad;
    uint32_t stack, module;
    struct snap_counter counter; /* [live] any thread may change it */
};
#define SNAP_CUDA_SITE_CLOSED 0x80000000u

enum snap_cuda_state { SNAP_CUDA_EMPTY = 0, SNAP_CUDA_WRITING = 1, SNAP_CUDA_LIVE = 2 };
enum snap_cuda_flag {
    SNAP_CUDA_EXPORTED = 1,
    SNAP_CUDA_BOUND = 2,
    SNAP_CUDA_PARTS = 4,       /* some of its bytes belong to other owners, and have records of their own (PART) */
    SNAP_CUDA_PART = 8,        /* the record is of a part of a block; `pool` is the block's address */
    SNAP_CUDA_OF_HOST = 16,    /* of a pool: its memory is the host's */
    SNAP_CUDA_OF_MANAGED = 32, /* of a pool: its memory is managed */
};
struct snap_cuda_block {
    uint32_t state; /* [live] enum snap_cuda_state */
    uint8_t kind;   /* enum snap_cuda_kind */
    uint8_t flags;  /* [live] enum snap_cuda_flag */
    uint16_t device;
    /* Of an array, a pool or a handle of physical memory, this is the driver's handle. Of physical memory, it is a
     * number that memstow chose. Of all other kinds, it is an address. */
    uint64_t address;
    uint64_t size; /* the requested size; the rounded size instead, if the program is told the rounded size */
    uint64_t birth_ns;
    /* pool: the block's pool. For graph memory: the graph. For mappings and handles: the `address` of the physical
     * memory. For a part of a block (SNAP_CUDA_PART): the address of the block */
    uint64_t context, stream, pool;
    uint32_t count;  /* [live] id of its snap_cuda_site */
    uint32_t thread; /* slot */
    /* [live] Of physical memory, the number of its handles and mappings. Of a handle, how many releases end it. Of
     * opened memory, how many closes end it. Of graph memory, the id of the capture. */
    uint32_t users;
    /* [live] how many teardowns (of contexts, devices and graphs) had begun when the block came, or when its capture
     * became a graph */
    uint32_t ends;
};

/* --- NVML's figures for a device's memory and its users; the command asks NVML --- */

enum snap_nvml_state {
    SNAP_NVML_KNOWN = 1,      /* the figures are valid */
    SNAP_NVML_NO_LIBRARY = 2, /* NVML's library was not found */
    SNAP_NVML_ERROR = 3,      /* `error` is NVML's number */
    SNAP_NVML_NO_DEVICE = 4,  /* NVML knows no device with this uuid, or the ledger has no uuid */
};
enum snap_nvml_flag {
    SNAP_NVML_HAS_OWN = 1,    /* the process is in NVML's list, with its bytes */
    SNAP_NVML_UNTOLD = 2,     /* some process is in the list without its bytes */
    SNAP_NVML_PROCESSES = 4,  /* NVML has a list of processes */
    SNAP_NVML_OWN_UNTOLD = 8, /* the process is in the list without its bytes */
};
struct snap_nvml {
    uint32_t device, state;
    int32_t error;
    uint32_t flags;
    uint64_t total, used;
    uint64_t own, others; /* bytes of this process, and of all others */
    uint32_t other_count, pad;
};
struct snap_nvml_process { /* other processes, the largest first, as many as fit */
    uint32_t device, pid;
    uint64_t bytes; /* UINT64_MAX: unknown */
    char name[16];
};

/* --- CUPTI's figures for CUDA memory, beside the ledger or in place of hooks; libmemstow_cupti.so writes them --- */

enum snap_cupti_state {
    SNAP_CUPTI_LISTENING = 1, /* CUPTI's records are being read; the process has not run its exit handlers */
    SNAP_CUPTI_COMPARED = 2,  /* the comparison is done, and its figures are valid */
    SNAP_CUPTI_NOT_FOUND = 3, /* there is no libcupti.so for the process's CUDA */
    SNAP_CUPTI_TOO_OLD = 4,   /* CUPTI is older than in CUDA 11.2 (in files before 1.6: than in CUDA 12) */
    SNAP_CUPTI_REFUSED = 5,   /* `call` returned `result` */
    SNAP_CUPTI_SOURCE = 6,    /* like LISTENING, but the ledger has only CUPTI's records; since 1.6, as is ENDED */
    SNAP_CUPTI_ENDED = 7      /* like SOURCE, and everything up to the exit is in the ledger */
};

struct snap_cupti_sum {
    uint64_t blocks, bytes;
};

struct snap_cupti {
    uint32_t state;                    /* [live] enum snap_cupti_state */
    uint32_t result;                   /* the result of the failed call, a CUptiResult */
    uint32_t version;                  /* cuptiGetVersion */
    uint32_t no_calls;                 /* 0: CUPTI reports `calls`; else the error of cuptiEnableCallback; since 1.6 */
    uint64_t records;                  /* [live] records that were read */
    uint64_t dropped;                  /* [live] records that CUPTI dropped: its buffers were full */
    uint64_t unread;                   /* [live] records that were not read: the table was full */
    uint64_t compared_ns;              /* 0: not compared yet. The figures from `same` to `others` are of that time */
    struct snap_cupti_sum same;        /* blocks in the ledger and in CUPTI's records */
    struct snap_cupti_sum only_cupti;  /* blocks that are not in the ledger */
    struct snap_cupti_sum only_ledger; /* blocks that are not in CUPTI's records */
    struct snap_cupti_sum sizes;       /* blocks in both, with different sizes; bytes: CUPTI's */
    struct snap_cupti_sum others;      /* CUPTI's blocks whose kinds are not compared */
    char call[40];
    char library[160];              /* the end of the path of libcupti.so */
    char other[64];                 /* the name of another client of CUPTI; this field and all below: since 1.6 */
    uint64_t unknown;               /* [live] records of unknown kind or layout; unknown_kind: the first one's kind */
    uint32_t unknown_kind, several; /* several: CUPTI has other clients, too */
    uint64_t read_ns;               /* [live] all records that CUPTI completed up to this time have been read */
    /* [live] calls about physical memory and addresses that CUPTI reported; it has no records for such calls */
    uint64_t calls;
    struct snap_cupti_sum addresses_same;  /* mappings and reserved addresses in the ledger and in CUPTI's reports */
    struct snap_cupti_sum addresses_other; /* mappings and reserved addresses that differ */
    /* pools_same: the program's own pools that are in the ledger and in CUPTI's records. pools_other: pools that
     * only the ledger or only CUPTI's records have, plus devices for which the ledger and CUPTI's records differ in the
     * memory that pools have handed out */
    uint64_t pools_same, pools_other;
    uint64_t pool_reserved, pool_used; /* bytes of all pools, by the latest record of each */
    uint32_t no_pools, pad;            /* 0: CUPTI has records of pools; else the error of cuptiActivityEnable */
    /* [live] records that say how much of a pool is in use; 0 in the first versions of CUDA 11 */
    uint64_t pool_records;
};

/* What is different about a block: the ledger lacks it, CUPTI's records lack it, or both have it with different
 * sizes. */
enum snap_cupti_difference { SNAP_CUPTI_ONLY_CUPTI = 1, SNAP_CUPTI_ONLY_LEDGER = 2, SNAP_CUPTI_SIZES = 3 };
enum { SNAP_CUPTI_BLOCKS = 256 }; /* the most differences that are listed; the sums in snap_cupti include all */
struct snap_cupti_block {
    uint32_t state; /* enum snap_cupti_difference */
    uint16_t kind;  /* enum snap_cuda_kind */
    uint16_t device;
    uint64_t address;
    uint64_t bytes, ledger_bytes; /* CUPTI's and the ledger's */
    char source[96];              /* the end of the path of the library that asked for the block; "": unknown */
};

/* How the name of a file of moved memory begins, if the file system does not support O_TMPFILE. The name is removed at
 * once, so the file's path in /proc ends with " (deleted)". (A file that was made with O_TMPFILE never had a name. For
 * such a file, /proc shows a name that begins with '#'.) */
#define SNAP_STOW_FILE "memstow-stow."

enum snap_region_flag { SNAP_REGION_WRITE = 1, SNAP_REGION_EXEC = 2, SNAP_REGION_SHARED = 4 };
struct snap_region {
    uint64_t start, end;
    uint64_t resident;  /* bytes present */
    uint64_t anonymous; /* the bytes in `resident` that no file backs */
    uint32_t path;      /* string as in /proc/PID/maps: "", a file, [heap], [stack] … */
    uint32_t flags;
};

/* SNAP_TOTALS: section.count entries, one for each site and class. An entry has these unsigned LEB128 numbers:
 *   class (1 host, 2 mapped), tag, stack, module, flags, alloc_bytes, alloc_blocks, free_bytes, free_blocks,
 *   peak_bytes, peak_blocks
 * Entries are sorted by site, host first. No file has ON_CUDA. Only the memstow command uses it, for the totals
 * that it makes from CUDA_SITE. */
enum snap_class { SNAP_HOST = 1, SNAP_MAPPED = 2, SNAP_ON_CUDA = 3 };
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
_Static_assert(sizeof(struct snap_chunk) == 1088 && sizeof(struct snap_chunk) % 64 == 0, "chunk");
_Static_assert(offsetof(struct snap_chunk, words) + sizeof(struct snap_chunk) - offsetof(struct snap_chunk, mark) >= 64,
               "a mark and the words of the next chunk share no cache line");
_Static_assert(sizeof(struct snap_thread) == 128, "thread");
_Static_assert(sizeof(struct snap_large) == 40, "large");
_Static_assert(sizeof(struct snap_mapping) == 64, "mapping");
_Static_assert(sizeof(struct snap_origin) == 40, "origin");
_Static_assert(sizeof(struct snap_misuse) == 88, "misuse");
_Static_assert(sizeof(struct snap_point) == 32, "point");
_Static_assert(sizeof(struct snap_cuda_point) == 72, "cuda point");
_Static_assert(sizeof(struct snap_mark) == 72, "mark");
_Static_assert(sizeof(struct snap_owner_mark) == 32, "owner mark");
_Static_assert(sizeof(struct snap_region) == 40, "region");
_Static_assert(sizeof(struct snap_ring) == 32, "ring");
_Static_assert(sizeof(struct snap_line) == 16, "line");
_Static_assert(sizeof(struct snap_cuda) == 352, "cuda");
_Static_assert(sizeof(struct snap_cuda_device) == 184, "cuda device");
_Static_assert(sizeof(struct snap_nvml) == 56, "nvml");
_Static_assert(sizeof(struct snap_nvml_process) == 32, "nvml process");
_Static_assert(sizeof(struct snap_cuda_site) == 56, "cuda site");
_Static_assert(sizeof(struct snap_cuda_block) == 72, "cuda block");
_Static_assert(sizeof(struct snap_cupti) == 504, "cupti");
_Static_assert(sizeof(struct snap_cupti_block) == 128, "cupti block");

#endif
