/* reader.c — bytes of a ledger or snapshot → struct image; see reader.h. */
#include "tools/reader/birth_stacks.h"
#include "tools/reader/cuda_image.h"
#include "tools/reader/cupti_image.h"
#include "tools/reader/misuse_image.h"
#include "tools/reader/nvml_image.h"
#include "tools/reader/packed.h"
#include "tools/reader/reader.h"
#include "tools/reader/order.h"
#include "tools/reader/runs.h"
#include "tools/reader/trace_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SECTIONS_MAX = 1 << 20,
    LIVE_TRIES = 4,
    FOLD_TRIES = 12,
    FOLD_WAITS = 100,
    FOLD_WAIT_NS = 10 * 1000 * 1000,
    WINDOW = 65536,
};
static const uint64_t TABLE_BYTES_MAX = UINT64_C(1) << 31; /* no honest table comes near; a sparse file could */

int reader_damaged(const struct reader *reader, uint64_t offset, const char *why) {
    snprintf(reader->image->error, sizeof reader->image->error, "damaged at byte %" PRIu64 ": %s", offset, why);
    return -1;
}

int reader_memory(const struct reader *reader) {
    snprintf(reader->image->error, sizeof reader->image->error, "not enough memory to read it");
    return -1;
}

static int truncated(const struct reader *reader, uint64_t offset) {
    snprintf(reader->image->error, sizeof reader->image->error, "truncated at byte %" PRIu64, offset);
    return -1;
}

int reader_header(struct snap_header *header, const struct source *source, char *error, size_t error_size) {
    memset(header, 0, sizeof *header);
    size_t have = source->size < sizeof *header ? (size_t)source->size : sizeof *header;
    size_t fixed = offsetof(struct snap_header, flags);
    if (source_read(source, 0, header, have) < 0) have = 0;
    if (have == 0)
        snprintf(error, error_size, "empty");
    else if (have < 8 || memcmp(header->magic, SNAP_MAGIC, 8) != 0)
        snprintf(error, error_size, "not a memstow file");
    else if (have < fixed)
        snprintf(error, error_size, "truncated at byte %zu", have);
    else if (header->byte_order != SNAP_BYTE_ORDER)
        snprintf(error, error_size, "not a memstow file of this machine: another byte order");
    else if (header->major > SNAP_MAJOR)
        snprintf(error, error_size, "format %u.%u is newer than this memstow (%d.%d) reads", header->major,
                 header->minor, SNAP_MAJOR, SNAP_MINOR);
    else if (header->major < SNAP_MAJOR)
        snprintf(error, error_size, "format %u.%u is older than this memstow (%d.%d) reads", header->major,
                 header->minor, SNAP_MAJOR, SNAP_MINOR);
    else if (header->kind != SNAP_LEDGER && header->kind != SNAP_SNAPSHOT)
        snprintf(error, error_size, "of a kind (%" PRIu32 ") that this memstow does not know", header->kind);
    else if (header->header_size < sizeof *header || header->header_size % 8 || header->size < header->header_size)
        snprintf(error, error_size, "damaged: its header does not add up");
    else if (header->size > source->size)
        snprintf(error, error_size, "truncated at byte %" PRIu64 " of %" PRIu64, source->size, header->size);
    else {
        header->name[sizeof header->name - 1] = 0;
        return 0;
    }
    return -1;
}

/* The least size of a record of each type; 0 for types that this version skips. */
static size_t least_record(uint32_t type) {
    static const size_t sizes[] = {
        [SNAP_STRINGS] = 1,
        [SNAP_PROCESS] = sizeof(struct snap_fact),
        [SNAP_MODULE] = sizeof(struct snap_module),
        [SNAP_TAG] = sizeof(struct snap_tag),
        [SNAP_OWNER] = offsetof(struct snap_owner, policy), /* before 1.3: the rest is 0 */
        [SNAP_SITE] = sizeof(struct snap_site),
        [SNAP_THREAD] = sizeof(struct snap_thread),
        [SNAP_COUNTERS] = sizeof(struct snap_chunk),
        [SNAP_LARGE] = sizeof(struct snap_large),
        [SNAP_MAPPING] = sizeof(struct snap_mapping),
        [SNAP_PEAK_0] = 1,
        [SNAP_PEAK_1] = 1,
        [SNAP_REGION] = sizeof(struct snap_region),
        [SNAP_TOTALS] = SNAP_TOTALS_FIELDS,
        [SNAP_FRAME] = sizeof(struct snap_frame),
        [SNAP_CODE] = sizeof(struct snap_code),
        [SNAP_SEGMENT] = sizeof(uint32_t),
        [SNAP_NODE] = sizeof(struct snap_node),
        [SNAP_WIDE] = sizeof(struct snap_counter),
        [SNAP_RUN] = sizeof(uint32_t),
        [SNAP_TRACE] = 1,
        [SNAP_CUDA] = sizeof(struct snap_cuda),
        [SNAP_CUDA_DEVICE] = offsetof(struct snap_cuda_device, uuid), /* before 1.6: the rest is 0 */
        [SNAP_CUDA_SITE] = sizeof(struct snap_cuda_site),
        [SNAP_CUDA_BLOCK] = sizeof(struct snap_cuda_block),
        [SNAP_SERIES] = 1,
        [SNAP_BIRTH] = sizeof(struct snap_birth),
        [SNAP_START] = sizeof(struct snap_birth),
        [SNAP_MISUSE] = sizeof(struct snap_misuse),
        [SNAP_CUPTI] = offsetof(struct snap_cupti, other), /* before 1.6: the rest is 0 */
        [SNAP_CUPTI_BLOCK] = sizeof(struct snap_cupti_block),
        [SNAP_NVML] = sizeof(struct snap_nvml),
        [SNAP_NVML_PROCESS] = sizeof(struct snap_nvml_process),
    };
    return type < sizeof sizes / sizeof *sizes ? sizes[type] : 0;
}

/* Checks one section that this version reads. */
static int check_section(const struct reader *reader, struct section *section) {
    struct snap_section *head = &section->head;
    size_t least = least_record(head->type);
    uint64_t offset = section->data - sizeof *head, room = head->length - sizeof *head;
    bool bytes = head->type == SNAP_PEAK_0 || head->type == SNAP_PEAK_1 || head->type == SNAP_TRACE;
    if (head->type == SNAP_STRINGS || head->type == SNAP_TOTALS || head->type == SNAP_SERIES || bytes)
        head->record_size = (uint16_t)least; /* bytes, and entries of varying length */
    if (head->record_size < least) return reader_damaged(reader, offset, "records are too small");
    section->capacity = room / head->record_size;
    if (bytes) head->count = section->capacity; /* it is not kept */
    if (head->count > section->capacity) return reader_damaged(reader, offset, "more records than there is room for");
    return 0;
}

static int add_section(struct reader *reader, const struct section *section) {
    size_t count = reader->section_count;
    if ((count & (count - 1)) == 0) { /* full at each power of two */
        struct section *grown = realloc(reader->sections, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown) return reader_memory(reader);
        reader->sections = grown;
    }
    reader->sections[reader->section_count++] = *section;
    return 0;
}

static int scan_sections(struct reader *reader) {
    const struct snap_header *header = &reader->image->header;
    for (uint64_t offset = header->header_size; offset < header->size;) {
        struct section section = {.data = offset + sizeof section.head};
        if (header->size - offset < sizeof section.head || source_read(reader->source, offset, &section.head, 32) < 0)
            return truncated(reader, offset);
        if (section.head.length < sizeof section.head || section.head.length > header->size - offset)
            return reader_damaged(reader, offset, "a section of impossible length");
        if (section.head.version == 1 && least_record(section.head.type)) {
            if (reader->section_count >= SECTIONS_MAX) return reader_damaged(reader, offset, "too many sections");
            if (check_section(reader, &section) < 0 || add_section(reader, &section) < 0) return -1;
        }
        offset += section.head.length;
    }
    return 0;
}

/* Records that all sections of a type cover; ids may not leave gaps, which would cost memory for nothing. */
static int table_extent(const struct reader *reader, uint32_t type, uint64_t *extent) {
    uint64_t next = 0;
    *extent = 0;
    for (size_t i = 0; i < reader->section_count; i++) {
        const struct section *section = &reader->sections[i];
        if (section->head.type != type) continue;
        if (section->head.first > next) return reader_damaged(reader, section->data, "records before it are missing");
        next = section->head.first + section->capacity > next ? section->head.first + section->capacity : next;
        if (section->head.count && section->head.first + section->head.count > *extent)
            *extent = section->head.first + section->head.count;
    }
    return 0;
}

/* Copies `count` records of a section, each cut to `size` bytes. */
static int copy_records(const struct reader *reader, const struct section *section, size_t size, uint64_t count,
                        uint8_t *to) {
    size_t stride = section->head.record_size;
    if (stride == size) return source_read(reader->source, section->data, to, count * size);
    for (uint64_t i = 0; i < count; i++)
        if (source_read(reader->source, section->data + i * stride, to + i * size, stride < size ? stride : size) < 0)
            return -1;
    return 0;
}

int reader_table(struct reader *reader, uint32_t type, size_t record_size, void **records, size_t *count) {
    uint64_t extent;
    if (table_extent(reader, type, &extent) < 0) return -1;
    if (extent > TABLE_BYTES_MAX / record_size) return reader_damaged(reader, 0, "a table of more than 2 GiB");
    uint8_t *table = calloc(extent + 1, record_size); /* one more: strings end in NUL whatever the file says */
    if (!table) return reader_memory(reader);
    *records = table;
    *count = extent;
    for (size_t i = 0; i < reader->section_count; i++) {
        const struct section *section = &reader->sections[i];
        if (section->head.type == type && section->head.count &&
            copy_records(reader, section, record_size, section->head.count, table + section->head.first * record_size) <
                0)
            return truncated(reader, section->data);
    }
    return 0;
}

int reader_add_total(struct reader *reader, const struct total *total) {
    struct image *image = reader->image;
    if (image->total_count == image->total_capacity) {
        size_t capacity = image->total_capacity ? 2 * image->total_capacity : 1024;
        struct total *grown = realloc(image->totals, capacity * sizeof *grown);
        if (!grown) return reader_memory(reader);
        image->totals = grown;
        image->total_capacity = capacity;
    }
    image->totals[image->total_count++] = *total;
    return 0;
}

/* A slot table, most of which is empty: reads windows, keeps what `used` says. */
struct slots {
    size_t record_size;
    bool (*used)(const void *record); /* in use and not being written */
    bool (*busy)(const void *record); /* being written */
    uint8_t *kept;
    size_t count, capacity;
};

static bool large_used(const void *record) {
    const struct snap_large *large = record;
    return large->address != 0 && !(large->address & 1);
}

static bool large_busy(const void *record) { return ((const struct snap_large *)record)->address & 1; }

static bool mapping_used(const void *record) {
    const struct snap_mapping *mapping = record;
    return mapping->length != 0 && !(mapping->sequence & 1);
}

static bool mapping_busy(const void *record) { return ((const struct snap_mapping *)record)->sequence & 1; }

static bool cuda_used(const void *record) { return ((const struct snap_cuda_block *)record)->state == SNAP_CUDA_LIVE; }

static bool cuda_busy(const void *record) {
    return ((const struct snap_cuda_block *)record)->state == SNAP_CUDA_WRITING;
}

static bool shared_used(const void *record) {
    const struct snap_mapping *mapping = record;
    return mapping_used(record) && mapping->shared;
}

static bool birth_used(const void *record) {
    const struct snap_birth *birth = record;
    return birth->kind != 0 && !(birth->sequence & 1);
}

static bool birth_busy(const void *record) { return ((const struct snap_birth *)record)->sequence & 1; }

static int slots_keep(const struct reader *reader, struct slots *slots, const void *record) {
    if (slots->count == slots->capacity) {
        size_t capacity = slots->capacity ? 2 * slots->capacity : 64;
        uint8_t *grown = realloc(slots->kept, capacity * slots->record_size);
        if (!grown) return reader_memory(reader);
        slots->kept = grown;
        slots->capacity = capacity;
    }
    memcpy(slots->kept + slots->count++ * slots->record_size, record, slots->record_size);
    return 0;
}

/* In a live ledger a record counts when two readings agree. */
static bool slots_settle(const struct reader *reader, const struct slots *slots, uint64_t offset, uint8_t *record) {
    uint8_t again[sizeof(struct snap_cuda_block)];
    if (!reader->live) return slots->used(record);
    for (int i = 0; i < LIVE_TRIES; i++) {
        if (source_read(reader->source, offset, again, slots->record_size) < 0) return false;
        if (!slots->busy(record) && memcmp(record, again, slots->record_size) == 0) return slots->used(record);
        memcpy(record, again, slots->record_size);
    }
    return false;
}

static int slots_section(const struct reader *reader, struct slots *slots, const struct section *section) {
    static uint8_t window[WINDOW];
    size_t stride = section->head.record_size, batch = WINDOW / stride ? WINDOW / stride : 1;
    for (uint64_t done = 0; done < section->capacity; done += batch) {
        uint64_t offset = section->data + done * stride, left = section->capacity - done;
        if (left < batch) batch = (size_t)left;
        if (source_read(reader->source, offset, window, batch * stride) < 0) return truncated(reader, offset);
        for (size_t i = 0; i < batch; i++) {
            uint8_t *record = window + i * stride;
            if ((slots->used(record) || slots->busy(record)) &&
                slots_settle(reader, slots, offset + i * stride, record) && slots_keep(reader, slots, record) < 0)
                return -1;
        }
    }
    return 0;
}

static int slots_load(const struct reader *reader, uint32_t type, struct slots *slots) {
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == type && slots_section(reader, slots, &reader->sections[i]) < 0) return -1;
    return 0;
}

static int load_slots(struct reader *reader) {
    struct image *image = reader->image;
    struct slots large = {.record_size = sizeof *image->large, .used = large_used, .busy = large_busy};
    struct slots mapping = {.record_size = sizeof *image->mappings, .used = mapping_used, .busy = mapping_busy};
    struct slots cuda = {.record_size = sizeof *image->cuda.blocks, .used = cuda_used, .busy = cuda_busy};
    int failed = slots_load(reader, SNAP_LARGE, &large) < 0 || slots_load(reader, SNAP_MAPPING, &mapping) < 0 ||
                 slots_load(reader, SNAP_CUDA_BLOCK, &cuda) < 0;
    image->large = (struct snap_large *)(void *)large.kept;
    image->large_count = large.count;
    image->mappings = (struct snap_mapping *)(void *)mapping.kept;
    image->mapping_count = mapping.count;
    image->cuda.blocks = (struct snap_cuda_block *)(void *)cuda.kept;
    image->cuda.block_count = cuda.count;
    return failed ? -1 : 0;
}

/* In a snapshot it is not told where what is gone was opened. */
static int load_births(struct reader *reader) {
    struct slots births = {.record_size = sizeof(struct snap_birth), .used = birth_used, .busy = birth_busy};
    struct slots shared = {.record_size = sizeof(struct snap_mapping), .used = shared_used, .busy = mapping_busy};
    int failed = reader->image->header.kind == SNAP_LEDGER &&
                 (slots_load(reader, SNAP_BIRTH, &births) < 0 || slots_load(reader, SNAP_START, &births) < 0 ||
                  slots_load(reader, SNAP_MAPPING, &shared) < 0 ||
                  birth_stacks_keep(reader, (void *)births.kept, births.count, (void *)shared.kept, shared.count) < 0);
    free(births.kept);
    free(shared.kept);
    return failed ? -1 : 0;
}

#define TABLE(reader, type, field, count)                                                                              \
    reader_table((reader), (type), sizeof *(reader)->image->field, (void **)&(reader)->image->field,                   \
                 &(reader)->image->count)

static int load_stacks(struct reader *reader) {
    struct image *image = reader->image;
    if (TABLE(reader, SNAP_FRAME, frames, frame_count) < 0 || TABLE(reader, SNAP_CODE, codes, code_count) < 0 ||
        TABLE(reader, SNAP_RUN, words, word_count) < 0)
        return -1;
    if (image->word_count) return runs_unfold(image) < 0 ? reader_memory(reader) : 0;
    free(image->words);
    image->words = NULL;
    if (TABLE(reader, SNAP_NODE, nodes, node_count) < 0 || TABLE(reader, SNAP_SEGMENT, words, word_count) < 0)
        return -1;
    return order_nodes(image) < 0 ? reader_memory(reader) : 0;
}

static int load_tables(struct reader *reader) {
    size_t strings;
    if (load_births(reader) < 0 || cuda_image_lend(reader) < 0 || birth_stacks_lend(reader) < 0 ||
        misuse_image_lend(reader) < 0 || load_stacks(reader) < 0)
        return -1;
    misuse_image_take_back(reader);
    birth_stacks_take_back(reader);
    if (cuda_image_load(reader) < 0 || cupti_image_load(reader) < 0 || nvml_image_load(reader) < 0) return -1;
    if (reader_table(reader, SNAP_STRINGS, 1, (void **)&reader->image->strings, &strings) < 0) return -1;
    reader->image->strings_size = strings;
    if (TABLE(reader, SNAP_PROCESS, facts, fact_count) < 0 || TABLE(reader, SNAP_MODULE, modules, module_count) < 0 ||
        TABLE(reader, SNAP_TAG, tags, tag_count) < 0 || TABLE(reader, SNAP_OWNER, owners, owner_count) < 0 ||
        TABLE(reader, SNAP_THREAD, threads, thread_count) < 0 ||
        TABLE(reader, SNAP_REGION, regions, region_count) < 0 || TABLE(reader, SNAP_SERIES, series, series_size) < 0)
        return -1;
    image_sort_owners(reader->image);
    image_adopt(reader->image);
    for (size_t i = 0; i < reader->image->thread_count; i++)
        reader->image->threads[i].name[sizeof reader->image->threads[i].name - 1] = 0;
    if (trace_lines_load(reader) < 0) return -1;
    return load_slots(reader);
}

/* A running process registers sites, modules and strings before it counts at them: reading the sections again
 * after the counters finds all that the counters refer to. False when chunks were added meanwhile. */
static int rescan(struct reader *reader, bool *steady) {
    uint64_t chunks = counters_chunks(reader), size = 0;
    free(reader->sections);
    reader->sections = NULL;
    reader->section_count = 0;
    if (source_read(reader->source, offsetof(struct snap_header, size), &size, sizeof size) < 0)
        return reader_damaged(reader, 0, "its header vanished");
    *steady = size <= reader->source->size;
    if (*steady) reader->image->header.size = size;
    if (scan_sections(reader) < 0) return -1;
    *steady = *steady && counters_chunks(reader) == chunks;
    return 0;
}

static uint32_t fold_sequence(const struct reader *reader) {
    uint32_t sequence = 0;
    source_read(reader->source, offsetof(struct snap_header, fold_sequence), &sequence, sizeof sequence);
    return sequence;
}

/* Before it is worth reading anything. Ids are given away many at a time, and when some were (since `seen`, unless that
 * is odd) others will soon be: it waits until none are for a while. Not for ever, because the process may be stopped.
 */
static void wait_for_fold(const struct reader *reader, uint32_t seen, int *waits) {
    const struct timespec pause = {.tv_nsec = FOLD_WAIT_NS};
    uint32_t now = fold_sequence(reader);
    if (seen & 1) seen = now;
    for (; (now & 1 || now != seen) && (*waits)-- > 0; now = fold_sequence(reader)) {
        seen = now;
        nanosleep(&pause, NULL);
    }
}

/* Sites that become others' while they are read would be taken for each other. Killed in the middle of that, a process
 * leaves totals of dead sites behind that are in no site, or in the wrong one. */
static bool folds_meanwhile(const struct reader *reader) {
    uint32_t before = reader->image->header.fold_sequence;
    return before & 1 || (reader->live && fold_sequence(reader) != before);
}

/* Should it be so each time, what is shown says that it may be wrong. */
static void mark_inexact(struct image *image) {
    for (size_t i = 0; i < image->total_count; i++) image->totals[i].flags |= TOTAL_INEXACT;
}

static int load_ledger(struct reader *reader, bool *steady) {
    if (counters_find_wide(reader) < 0 || counters_tally(reader) < 0 || (reader->live && rescan(reader, steady) < 0))
        return -1;
    if (picture_load(reader) < 0 || counters_name_sites(reader) < 0 || load_tables(reader) < 0) return -1;
    counters_link_blocks(reader);
    if (counters_sum_threads(reader) < 0) return -1;
    if (!folds_meanwhile(reader) && !reader->wide.missing) return 0;
    mark_inexact(reader->image);
    *steady = !reader->live;
    return 0;
}

static int load_once(struct reader *reader, bool *steady) {
    struct image *image = reader->image;
    if (reader_header(&image->header, reader->source, image->error, sizeof image->error) < 0 ||
        scan_sections(reader) < 0)
        return -1;
    int result = image->header.kind == SNAP_LEDGER ? load_ledger(reader, steady)
                 : packed_load(reader) < 0         ? -1
                                                   : load_tables(reader);
    if (result < 0) return -1;
    image_sum(image);
    image_sum_rss(image);
    return 0;
}

static void keep_error_only(struct image *image) {
    struct image failed = {0};
    memcpy(failed.error, image->error, sizeof failed.error);
    image_clear(image);
    *image = failed;
}

int reader_load(struct image *image, struct source *source, bool live) {
    int tries = LIVE_TRIES, folds = FOLD_TRIES, waits = FOLD_WAITS;
    uint32_t seen = 1;
    for (;;) {
        memset(image, 0, sizeof *image);
        struct reader reader = {.image = image, .source = source, .live = live};
        bool steady = true;
        if (live) wait_for_fold(&reader, seen, &waits);
        int result = load_once(&reader, &steady);
        bool grew = live && image->header.size > source->size; /* since it was mapped */
        int *left = folds_meanwhile(&reader) ? &folds : &tries;
        free(reader.sections);
        free(reader.site_of);
        seen = image->header.fold_sequence;
        if (result < 0) keep_error_only(image);
        if ((result < 0 && !grew) || (result == 0 && steady) || --*left == 0) {
            image->running = live && result == 0;
            return result;
        }
        image_clear(image);
        if (source_refresh(source) < 0) return reader_damaged(&reader, 0, "it could not be mapped again");
    }
}
