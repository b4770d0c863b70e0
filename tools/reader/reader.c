/* reader.c — see reader.h. */
#include "tools/reader/reader.h"
#include "tools/base/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SECTIONS_MAX = 1 << 20 };
/* the limit for a table: honest tables are much smaller */
static const uint64_t TABLE_BYTES_MAX = UINT64_C(1) << 31;

int reader_damaged(const struct reader *reader, uint64_t offset, const char *why) {
    snprintf(reader->image->error, sizeof reader->image->error, "damaged at byte %" PRIu64 ": %s", offset, why);
    return -1;
}

int reader_memory(const struct reader *reader) {
    snprintf(reader->image->error, sizeof reader->image->error, "not enough memory to read it");
    return -1;
}

int reader_truncated(const struct reader *reader, uint64_t offset) {
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

/* The smallest record size of each type; 0 for types that this version skips. */
static size_t least_record(uint32_t type) {
    static const size_t sizes[] = {
        [SNAP_STRINGS] = 1,
        [SNAP_PROCESS] = sizeof(struct snap_fact),
        [SNAP_MODULE] = sizeof(struct snap_module),
        [SNAP_TAG] = sizeof(struct snap_tag),
        [SNAP_OWNER] = offsetof(struct snap_owner, policy), /* before 1.3, shorter: the rest reads as 0 */
        [SNAP_SITE] = sizeof(struct snap_site),
        [SNAP_THREAD] = sizeof(struct snap_thread),
        [SNAP_COUNTERS] = offsetof(struct snap_chunk, mark), /* older libraries write no mark */
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
        [SNAP_CUDA] = offsetof(struct snap_cuda, unknown_more),       /* older libraries write one name */
        [SNAP_CUDA_DEVICE] = offsetof(struct snap_cuda_device, uuid), /* before 1.6, shorter: the rest reads as 0 */
        [SNAP_CUDA_SITE] = sizeof(struct snap_cuda_site),
        [SNAP_CUDA_BLOCK] = sizeof(struct snap_cuda_block),
        [SNAP_SERIES] = 1,
        [SNAP_ORIGIN] = sizeof(struct snap_origin),
        [SNAP_START] = sizeof(struct snap_origin),
        [SNAP_MISUSE] = sizeof(struct snap_misuse),
        [SNAP_POINT] = sizeof(struct snap_point),
        [SNAP_CUDA_POINT] = sizeof(struct snap_cuda_point),
        [SNAP_MARK] = sizeof(struct snap_mark),
        [SNAP_OWNER_MARK] = sizeof(struct snap_owner_mark),
        [SNAP_CUPTI] = offsetof(struct snap_cupti, other), /* before 1.6, shorter: the rest reads as 0 */
        [SNAP_CUPTI_BLOCK] = sizeof(struct snap_cupti_block),
        [SNAP_NVML] = sizeof(struct snap_nvml),
        [SNAP_NVML_PROCESS] = sizeof(struct snap_nvml_process),
    };
    return type < sizeof sizes / sizeof *sizes ? sizes[type] : 0;
}

/* Checks a section of a type that this version reads. */
static int check_section(const struct reader *reader, struct section *section) {
    struct snap_section *head = &section->head;
    size_t least = least_record(head->type);
    uint64_t offset = section->data - sizeof *head, space = head->length - sizeof *head;
    bool bytes = head->type == SNAP_PEAK_0 || head->type == SNAP_PEAK_1 || head->type == SNAP_TRACE;
    if (head->type == SNAP_STRINGS || head->type == SNAP_TOTALS || head->type == SNAP_SERIES || bytes)
        head->record_size = (uint16_t)least; /* plain bytes, or entries of varying length */
    if (head->record_size < least) return reader_damaged(reader, offset, "records are too small");
    section->capacity = space / head->record_size;
    if (bytes) head->count = section->capacity; /* such a section keeps no count */
    if (head->count > section->capacity)
        return reader_damaged(reader, offset, "more records than the section can hold");
    return 0;
}

static int add_section(struct reader *reader, const struct section *section) {
    if (!LIST_GROW(reader->sections, reader->section_count, reader->section_capacity)) return reader_memory(reader);
    reader->sections[reader->section_count++] = *section;
    return 0;
}

int reader_scan(struct reader *reader) {
    const struct snap_header *header = &reader->image->header;
    for (uint64_t offset = header->header_size; offset < header->size;) {
        struct section section = {.data = offset + sizeof section.head};
        if (header->size - offset < sizeof section.head || source_read(reader->source, offset, &section.head, 32) < 0)
            return reader_truncated(reader, offset);
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

/* *extent: 1 + the highest id of all records of a type. A gap between the ids of two sections is an error, because it
 * would waste memory. Returns 0 or -1. */
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

int reader_bound(const struct reader *reader, uint64_t where, uint64_t count, size_t record_size) {
    if (count <= TABLE_BYTES_MAX / record_size) return 0;
    return reader_damaged(reader, where, "a table of more than 2 GiB");
}

int reader_table(struct reader *reader, uint32_t type, size_t record_size, void **records, size_t *count) {
    uint64_t extent;
    if (table_extent(reader, type, &extent) < 0) return -1;
    if (reader_bound(reader, 0, extent, record_size) < 0) return -1;
    uint8_t *table = calloc(extent + 1, record_size); /* one record more, so that strings always end in NUL */
    if (!table) return reader_memory(reader);
    *records = table;
    *count = extent;
    for (size_t i = 0; i < reader->section_count; i++) {
        const struct section *section = &reader->sections[i];
        if (section->head.type == type && section->head.count &&
            copy_records(reader, section, record_size, section->head.count, table + section->head.first * record_size) <
                0) {
            free(table);
            *records = NULL;
            *count = 0;
            return reader_truncated(reader, section->data);
        }
    }
    return 0;
}

/* Asks for huge pages, because at a million sites, making pages of 4 KiB one by one is a quarter of all work. */
int reader_reserve_totals(struct reader *reader, size_t count) {
    enum { HUGE_PAGE = 2 << 20 };
    struct image *image = reader->image;
    if (!list_grow(&image->totals, sizeof *image->totals, 0, count, &image->total_capacity))
        return reader_memory(reader);
    if (!image->total_capacity) return 0;
    uintptr_t start = ((uintptr_t)image->totals + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t end = (uintptr_t)(image->totals + image->total_capacity) / HUGE_PAGE * HUGE_PAGE;
    if (start < end) madvise((void *)start, end - start, MADV_HUGEPAGE);
    return 0;
}

int reader_add_total(struct reader *reader, const struct total *total) {
    struct image *image = reader->image;
    if (!LIST_GROW(image->totals, image->total_count, image->total_capacity)) return reader_memory(reader);
    image->totals[image->total_count++] = *total;
    return 0;
}
