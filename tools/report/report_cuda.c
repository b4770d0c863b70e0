/* report_cuda.c — CUDA memory in a report, in text and JSON; see report.h. It compares the figures of the ledger, of
 * the device's memory pool and of the driver, and explains the difference. */
#include "tools/views/cuda_devices.h"
#include "tools/reader/cuda_image.h"
#include "tools/symbols/json_stack.h"
#include "tools/report/report.h"

#include <stdlib.h>

/* Compares for qsort: the largest first. */
static int report_cuda_by_size(const void *left, const void *right) {
    const struct snap_cuda_block *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* The blocks of the kinds that are shown, the largest first. The pieces of a block that are assigned to another owner
 * than the rest are entries of their own. NULL: no memory. */
static struct snap_cuda_block *blocks_by_size(const struct cuda_image *cuda, size_t *count) {
    struct snap_cuda_block *blocks = calloc(cuda->block_count + 1, sizeof *blocks);
    *count = 0;
    for (size_t i = 0; blocks && i < cuda->block_count; i++)
        if (cuda_kind_is_shown(cuda->blocks[i].kind)) blocks[(*count)++] = cuda->blocks[i];
    if (blocks) qsort(blocks, *count, sizeof *blocks, report_cuda_by_size);
    return blocks;
}

/* --- CUDA memory as text --- */

static void text_kinds(const struct cuda_image *cuda) {
    printf("\n  %-12s %12s %14s %12s\n", "kind", "live", "blocks", "allocated");
    for (uint32_t kind = 0; kind < SNAP_CUDA_KINDS; kind++) {
        const struct sum *sum = &cuda->kinds[kind];
        if (!cuda_kind_is_shown(kind) || !sum->alloc_blocks) continue;
        printf("  %-12s %12s %14s %12s\n", cuda_kind_name(kind), text_size(sum->live_bytes).s,
               text_count(sum->live_blocks).s, text_size(sum->alloc_bytes).s);
    }
}

/* The name of the CUDA function number `i` (from 0) among those that the program looked up and that memstow does not
 * know. NULL: there is no such function. */
static const char *unknown_name(const struct snap_cuda *head, uint32_t i) {
    const char *name = i ? head->unknown_more[i - 1] : head->unknown;
    return *name ? name : NULL;
}

static void text_unknown(const struct snap_cuda *head) {
    const char *name;
    printf("  look-ups of unknown CUDA functions for memory, not counted: %s, the first %s",
           text_count(head->unknown_entries).s, TEXT_SAFE(head->unknown));
    for (uint32_t i = 1; i < SNAP_CUDA_UNKNOWN && (name = unknown_name(head, i)); i++) printf(", %s", TEXT_SAFE(name));
    printf("\n");
}

static void text_troubles(const struct cuda_image *cuda) {
    const struct snap_cuda *head = &cuda->head;
    if (head->refused)
        printf("\n  no memory for %s request%s: the last was %s on device %u, with %s live\n",
               text_count(head->refused).s, head->refused == 1 ? "" : "s", text_size(head->refused_bytes).s,
               head->refused_device, text_size(head->refused_live).s);
    if (head->refused_files)
        printf("  what was live then: snapshot FILE.oom1.mst%s, beside the ledger\n",
               head->refused_files > 1 ? " and so on" : "");
    if (head->foreign_frees)
        printf("  frees of memory that is not in the ledger (freed before, or allocated unseen): %s\n",
               text_count(head->foreign_frees).s);
    if (head->missed_frees) printf("  blocks whose free was not seen: %s\n", text_count(head->missed_frees).s);
    if (head->unknown_entries) text_unknown(head);
}

int report_text_cuda(const struct report *report) {
    const struct cuda_image *cuda = &report->image->cuda;
    if (!cuda->used && !report->image->cupti.asked && !report_has_vbars(report)) return 0;
    text_heading("CUDA");
    for (size_t i = 0; i < cuda->device_count; i++)
        if (cuda->devices[i].used) cuda_device_text(report->image, i);
    text_kinds(cuda);
    text_troubles(cuda);
    report_text_cupti(report);
    if (report_text_mixed(report) < 0) return -1;
    report_text_vbars(report);
    if (!cuda->device.live_blocks || report->measure == MEASURE_PEAK) return 0;
    struct image view = cuda_view(report->image);
    struct report of_view = *report;
    of_view.image = &view;
    int result = view.totals && report_text_owners(&of_view) == 0 &&
                         (!image_has_stacks(&view) || report_text_sites(&of_view) == 0)
                     ? 0
                     : -1;
    cuda_view_end(&view);
    return result;
}

/* --- CUDA memory as JSON --- */

static void json_kinds(struct json *json, const struct cuda_image *cuda) {
    json_object(json, "kinds");
    for (uint32_t kind = 0; kind < SNAP_CUDA_KINDS; kind++) {
        const struct sum *sum = &cuda->kinds[kind];
        if (!cuda_kind_is_shown(kind)) continue;
        json_object(json, cuda_kind_name(kind));
        json_number(json, "live_bytes", sum->live_bytes);
        json_number(json, "live_blocks", sum->live_blocks);
        json_number(json, "allocated_bytes", sum->alloc_bytes);
        json_number(json, "allocated_blocks", sum->alloc_blocks);
        json_end_object(json);
    }
    json_end_object(json);
}

/* block->count is the number of the block's site. */
static void json_block(struct json *json, const struct image *image, const struct snap_cuda_block *block) {
    json_object(json, NULL);
    json_number(json, "site", block->count);
    json_number(json, "address", block->address);
    json_number(json, "size_bytes", block->size);
    json_string(json, "kind", cuda_kind_name(block->kind));
    json_number(json, "device", block->device);
    json_number(json, "context", block->context);
    json_number(json, "stream", block->stream);
    json_number(json, "pool", block->flags & SNAP_CUDA_PART ? 0 : block->pool);
    if (block->flags & SNAP_CUDA_PART)
        json_number(json, "part_of", block->pool);
    else
        json_null(json, "part_of");
    json_bool(json, "exported", block->flags & SNAP_CUDA_EXPORTED);
    json_bool(json, "bound", block->flags & SNAP_CUDA_BOUND);
    json_real(json, "age_seconds", (double)report_age_ns(image, block->birth_ns) / 1e9);
    report_json_tag(json, image, cuda_block_tag(&image->cuda, block));
    json_end_object(json);
}

static int json_blocks(struct json *json, const struct report *report) {
    size_t count;
    struct snap_cuda_block *blocks = blocks_by_size(&report->image->cuda, &count);
    if (!blocks) return -1;
    json_array(json, "blocks");
    for (size_t i = 0; i < count && i < report->top; i++) json_block(json, report->image, &blocks[i]);
    json_end_array(json);
    free(blocks);
    return 0;
}

static void json_unknown(struct json *json, const struct snap_cuda *head) {
    const char *name;
    json_string(json, "first_unknown", unknown_name(head, 0));
    json_array(json, "unknown_names");
    for (uint32_t i = 0; i < SNAP_CUDA_UNKNOWN && (name = unknown_name(head, i)); i++) json_string(json, NULL, name);
    json_end_array(json);
}

static void json_troubles(struct json *json, const struct snap_cuda *head) {
    json_object(json, "refused");
    json_number(json, "requests", head->refused);
    json_number(json, "last_bytes", head->refused_bytes);
    json_number(json, "last_device", head->refused_device);
    json_string(json, "last_kind", head->refused ? cuda_kind_name(head->refused_kind) : NULL);
    json_number(json, "live_bytes", head->refused_live);
    json_number(json, "snapshots", head->refused_files);
    json_end_object(json);
    json_number(json, "foreign_frees", head->foreign_frees);
    json_number(json, "missed_frees", head->missed_frees);
    json_number(json, "unknown_entries", head->unknown_entries);
    json_unknown(json, head);
}

/* A site of device memory, and its live bytes. */
struct ranked {
    uint64_t bytes;
    uint32_t id;
};

static int report_cuda_by_bytes(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The sites of device memory, those with the most memory first. Sites without live memory are left out. NULL: no
 * memory. */
static struct ranked *ranked_sites(const struct report *report, size_t *count) {
    const struct cuda_image *cuda = &report->image->cuda;
    struct ranked *ranked = calloc(cuda->site_count + 1, sizeof *ranked);
    *count = 0;
    for (size_t i = 0; ranked && i < cuda->site_count; i++)
        if (snap_cuda_on_device(cuda->sites[i].kind) &&
            total_live_blocks(&cuda->totals[i]) + total_live_bytes(&cuda->totals[i]) &&
            report_keeps(report, &cuda->totals[i]))
            ranked[(*count)++] = (struct ranked){total_live_bytes(&cuda->totals[i]), (uint32_t)i};
    if (ranked) qsort(ranked, *count, sizeof *ranked, report_cuda_by_bytes);
    return ranked;
}

static void json_site(struct json *json, const struct image *image, struct json_stacks *stacks, uint32_t id) {
    const struct total *total = &image->cuda.totals[id];
    json_object(json, NULL);
    json_number(json, "site", id);
    json_string(json, "kind", cuda_kind_name(image->cuda.sites[id].kind));
    json_number(json, "device", image->cuda.sites[id].device);
    report_json_tag(json, image, total->tag);
    json_number(json, "live_bytes", total_live_bytes(total));
    json_number(json, "live_blocks", total_live_blocks(total));
    json_number(json, "allocated_bytes", total->alloc_bytes);
    json_number(json, "allocated_blocks", total->alloc_blocks);
    json_stack(json, stacks, total->stack, total->module);
    json_end_object(json);
}

static int json_sites(struct json *json, const struct report *report) {
    size_t count;
    struct ranked *ranked = ranked_sites(report, &count);
    struct json_stacks *stacks = json_stacks_begin(report->image, report->symbols);
    json_array(json, "sites");
    for (size_t i = 0; ranked && stacks && i < count && i < report->top_sites; i++)
        json_site(json, report->image, stacks, ranked[i].id);
    json_end_array(json);
    json_number(json, "sites_omitted", count > report->top_sites ? count - report->top_sites : 0);
    int result = ranked && stacks ? 0 : -1;
    json_stacks_end(stacks);
    free(ranked);
    return result;
}

int report_json_cuda(struct json *json, const struct report *report) {
    const struct cuda_image *cuda = &report->image->cuda;
    if (!cuda->used && !report->image->cupti.asked && !report_has_vbars(report)) {
        json_null(json, "cuda");
        return 0;
    }
    json_object(json, "cuda");
    json_array(json, "devices");
    for (size_t i = 0; i < cuda->device_count; i++)
        if (cuda->devices[i].used) cuda_device_json(json, report->image, i);
    json_end_array(json);
    json_kinds(json, cuda);
    json_troubles(json, &cuda->head);
    if (report_json_cupti(json, report) < 0) return -1;
    report_json_vbars(json, report);
    int result = json_sites(json, report);
    if (result == 0) result = json_blocks(json, report);
    if (result == 0) result = report_json_mixed(json, report);
    json_end_object(json);
    return result;
}
