/* writer.c — see writer.h. Totals are packed before anything is written, because the length of their section comes
 * before its data. In a snapshot, the field `site` of a large block or mapping is 1 + the index of the site's entry in
 * TOTALS. */
#include "tools/subject/writer.h"
#include "tools/base/list.h"
#include "tools/reader/packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct part {
    uint32_t type;
    size_t record_size;
    const void *records;
    uint64_t count;
};

static uint64_t writer_padded(uint64_t length) { return (length + 7) / 8 * 8; }

static uint64_t part_length(const struct part *part) {
    return sizeof(struct snap_section) + writer_padded(part->count * part->record_size);
}

struct packed {
    uint8_t *bytes;
    size_t length, capacity;
};

static int totals_pack(const struct image *image, struct packed *packed) {
    for (size_t i = 0; i < image->total_count; i++) {
        if (packed->capacity - packed->length < PACKED_MAX &&
            !list_grow(&packed->bytes, 1, packed->length, PACKED_MAX, &packed->capacity))
            return -1;
        packed->length += packed_total(&image->totals[i], packed->bytes + packed->length);
    }
    return 0;
}

static uint64_t totals_length(const struct packed *packed) {
    return sizeof(struct snap_section) + writer_padded(packed->length);
}

static int bytes_put(FILE *to, const void *bytes, uint64_t length) {
    return length == 0 || fwrite(bytes, 1, length, to) == length ? 0 : -1;
}

static int put_padding(FILE *to, uint64_t length) {
    static const char zeros[8];
    return bytes_put(to, zeros, writer_padded(length) - length);
}

static int put_part(FILE *to, const struct part *part) {
    struct snap_section head = {.type = part->type,
                                .version = 1,
                                .record_size = (uint16_t)part->record_size,
                                .length = part_length(part),
                                .count = part->count};
    uint64_t length = part->count * part->record_size;
    return bytes_put(to, &head, sizeof head) < 0 || bytes_put(to, part->records, length) < 0 ? -1
                                                                                             : put_padding(to, length);
}

static int put_totals(FILE *to, const struct packed *packed, uint64_t count) {
    struct snap_section head = {
        .type = SNAP_TOTALS, .version = 1, .record_size = 1, .length = totals_length(packed), .count = count};
    return bytes_put(to, &head, sizeof head) < 0 || bytes_put(to, packed->bytes, packed->length) < 0
               ? -1
               : put_padding(to, packed->length);
}

static void finish_header(struct image *image, uint64_t size) {
    struct snap_header *header = &image->header;
    struct timespec now;
    header->major = SNAP_MAJOR;
    header->minor = SNAP_MINOR;
    header->header_size = SNAP_HEADER_SIZE;
    header->size = size;
    header->kind = SNAP_SNAPSHOT;
    header->picture_buffer = image->has_picture ? 0 : 2;
    if (header->total_peak < image->host.live_bytes + image->mapped.live_bytes)
        header->total_peak = image->host.live_bytes + image->mapped.live_bytes;
    if (!header->taken_ns) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        header->taken_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
}

/* Writes the stack and the module of each CUDA site into the site's record, in place of the site's id: a snapshot has
 * no ids of sites. */
static void name_cuda_sites(struct cuda_image *cuda) {
    for (size_t i = 0; i < cuda->site_count; i++) {
        cuda->sites[i].site = 0;
        cuda->sites[i].stack = cuda->totals[i].stack;
        cuda->sites[i].module = cuda->totals[i].module;
    }
}

static int put_snapshot(struct image *image, const struct packed *totals, FILE *to) {
    const struct cuda_image *cuda = &image->cuda;
    const struct part parts[] = {
        {SNAP_STRINGS, 1, image->strings, image->strings_size},
        {SNAP_PROCESS, sizeof *image->facts, image->facts, image->fact_count},
        {SNAP_MODULE, sizeof *image->modules, image->modules, image->module_count},
        {SNAP_TAG, sizeof *image->tags, image->tags, image->tag_count},
        {SNAP_OWNER, sizeof *image->owners, image->owners, image->owner_count},
        {SNAP_THREAD, sizeof *image->threads, image->threads, image->thread_count},
        {SNAP_LARGE, sizeof *image->large, image->large, image->large_count},
        {SNAP_MAPPING, sizeof *image->mappings, image->mappings, image->mapping_count},
        {SNAP_MISUSE, sizeof *image->misuses, image->misuses, image->misuse_count},
        {SNAP_POINT, sizeof *image->points, image->points, image->point_count},
        {SNAP_CUDA_POINT, sizeof *image->cuda_points, image->cuda_points, image->cuda_point_count},
        {SNAP_MARK, sizeof *image->marks, image->marks, image->mark_count},
        {SNAP_OWNER_MARK, sizeof *image->owner_marks, image->owner_marks, image->owner_mark_count},
        {SNAP_REGION, sizeof *image->regions, image->regions, image->region_count},
        {SNAP_FRAME, sizeof *image->frames, image->frames, image->frame_count},
        {SNAP_CODE, sizeof *image->codes, image->codes, image->code_count},
        {SNAP_SEGMENT, sizeof *image->words, image->words, image->word_count},
        {SNAP_NODE, sizeof *image->nodes, image->nodes, image->node_count},
        {SNAP_TRACE, 1, image->trace, image->trace_size},
        {SNAP_CUDA, sizeof cuda->head, &cuda->head, cuda->used},
        {SNAP_CUDA_DEVICE, sizeof *cuda->devices, cuda->devices, cuda->device_count},
        {SNAP_CUDA_SITE, sizeof *cuda->sites, cuda->sites, cuda->site_count},
        {SNAP_CUDA_BLOCK, sizeof *cuda->blocks, cuda->blocks, cuda->block_count},
        {SNAP_CUPTI, sizeof image->cupti.head, &image->cupti.head, image->cupti.asked},
        {SNAP_CUPTI_BLOCK, sizeof *image->cupti.blocks, image->cupti.blocks, image->cupti.block_count},
        {SNAP_NVML, sizeof *image->nvml.devices, image->nvml.devices, image->nvml.device_count},
        {SNAP_NVML_PROCESS, sizeof *image->nvml.processes, image->nvml.processes, image->nvml.process_count},
        {SNAP_SERIES, 1, image->series, image->series_size},
    };
    name_cuda_sites(&image->cuda);
    uint64_t size = SNAP_HEADER_SIZE + totals_length(totals);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) size += part_length(&parts[i]);
    finish_header(image, size);
    uint8_t page[SNAP_HEADER_SIZE] = {0};
    memcpy(page, &image->header, sizeof image->header);
    if (bytes_put(to, page, sizeof page) < 0) return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (put_part(to, &parts[i]) < 0) return -1;
    return put_totals(to, totals, image->total_count);
}

int writer_snapshot(struct image *image, FILE *to) {
    struct packed totals = {NULL, 0, 0};
    int result = totals_pack(image, &totals);
    if (result == 0) result = put_snapshot(image, &totals, to);
    int error = errno;
    free(totals.bytes);
    errno = error;
    return result;
}
