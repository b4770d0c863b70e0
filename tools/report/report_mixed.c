/* report_mixed.c — blocks of device memory that several owners share, with the share of each; see report.h. PyTorch's
 * native allocator puts allocations of several models into one segment. Such a segment is not moved with any of these
 * models. */
#include "tools/reader/cuda_image.h"
#include "tools/report/report.h"

#include <stdlib.h>

struct share {
    uint64_t bytes;
    uint32_t model; /* 0: no owner */
};

/* The shares of a block, the largest first. */
struct mixed {
    const struct snap_cuda_block *block;
    struct share *shares;
    size_t count;
};

struct part {
    uint64_t block, bytes;
    uint32_t model;
};

static uint32_t model_of(const struct image *image, const struct snap_cuda_block *block) {
    return image_tag(image, cuda_block_tag(&image->cuda, block))->model;
}

static int by_bytes(const void *left, const void *right) {
    const struct share *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->model < b->model ? -1 : a->model > b->model;
}

static int by_model(const void *left, const void *right) {
    const struct part *a = left, *b = right;
    if (a->block != b->block) return a->block < b->block ? -1 : 1;
    return a->model < b->model ? -1 : a->model > b->model;
}

static int by_address(const void *left, const void *right) {
    const struct snap_cuda_block *a = *(const struct snap_cuda_block *const *)left;
    const struct snap_cuda_block *b = *(const struct snap_cuda_block *const *)right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* parts: the parts of blocks (pieces that were assigned to another model than the rest of the block), sorted by block
 * and model. blocks: the blocks that have parts, sorted by address. The rest of a block, which is in no part, belongs
 * to the block's own model. This rest is a share, too. */
struct found {
    struct part *parts;
    const struct snap_cuda_block **blocks;
    size_t part_count, block_count;
};

static void parts_take(struct found *found, const struct image *image) {
    for (size_t i = 0; i < image->cuda.block_count; i++) {
        const struct snap_cuda_block *block = &image->cuda.blocks[i];
        if (block->flags & SNAP_CUDA_PART)
            found->parts[found->part_count++] = (struct part){block->pool, block->size, model_of(image, block)};
        else if (block->flags & SNAP_CUDA_PARTS)
            found->blocks[found->block_count++] = block;
    }
    qsort(found->parts, found->part_count, sizeof *found->parts, by_model);
    qsort(found->blocks, found->block_count, sizeof *found->blocks, by_address);
}

static const struct snap_cuda_block *block_at(const struct found *found, uint64_t address) {
    struct snap_cuda_block key = {.address = address};
    const struct snap_cuda_block *looked_for = &key;
    const struct snap_cuda_block **at =
        bsearch(&looked_for, found->blocks, found->block_count, sizeof *found->blocks, by_address);
    return at ? *at : NULL;
}

static void share_add(struct mixed *mixed, uint32_t model, uint64_t bytes, uint64_t *left) {
    uint64_t taken = bytes < *left ? bytes : *left;
    if (!mixed->count || mixed->shares[mixed->count - 1].model != model)
        mixed->shares[mixed->count++] = (struct share){.model = model};
    mixed->shares[mixed->count - 1].bytes += taken;
    *left -= taken;
}

/* Adds the bytes that are in no part. They belong to the block's own model, and are added to the share of this model.
 * If the model has no share yet, they are a new share. */
static void add_rest(struct mixed *mixed, uint32_t model, uint64_t left) {
    size_t i = 0;
    while (i < mixed->count && mixed->shares[i].model != model) i++;
    if (i == mixed->count && left) mixed->shares[mixed->count++] = (struct share){.model = model};
    if (left) mixed->shares[i].bytes += left;
}

/* Splits a block into shares, by its parts. False: no memory. */
static bool block_split(const struct image *image, const struct part *parts, size_t count,
                        const struct snap_cuda_block *block, struct mixed *out) {
    uint64_t left = block->size;
    *out = (struct mixed){.block = block, .shares = calloc(count + 1, sizeof *out->shares)};
    if (!out->shares) return false;
    for (size_t i = 0; i < count; i++) share_add(out, parts[i].model, parts[i].bytes, &left);
    add_rest(out, model_of(image, block), left);
    qsort(out->shares, out->count, sizeof *out->shares, by_bytes);
    return true;
}

static int largest_first(const void *left, const void *right) {
    const struct mixed *a = left, *b = right;
    if (a->block->size != b->block->size) return a->block->size > b->block->size ? -1 : 1;
    return a->block->address < b->block->address ? -1 : a->block->address > b->block->address;
}

static void mixed_free(struct mixed *mixed, size_t count) {
    for (size_t i = 0; mixed && i < count; i++) free(mixed[i].shares);
    free(mixed);
}

/* Adds to `mixed` the blocks that several models share. Looks at each part only once, whatever a file says. False: no
 * memory. */
static bool find_in(const struct image *image, const struct found *found, struct mixed *mixed, size_t *count) {
    for (size_t first = 0, end; first < found->part_count; first = end) {
        for (end = first; end < found->part_count && found->parts[end].block == found->parts[first].block;) end++;
        const struct snap_cuda_block *block = block_at(found, found->parts[first].block);
        if (!block) continue;
        if (!block_split(image, found->parts + first, end - first, block, &mixed[*count])) return false;
        if (mixed[*count].count > 1)
            (*count)++;
        else
            free(mixed[*count].shares);
    }
    return true;
}

/* The blocks that several models share. NULL: no memory. */
static struct mixed *find_mixed(const struct image *image, size_t *count) {
    size_t most = image->cuda.block_count + 1;
    struct mixed *mixed = calloc(most, sizeof *mixed);
    struct found found = {.parts = calloc(most, sizeof *found.parts), .blocks = calloc(most, sizeof *found.blocks)};
    bool fine = mixed && found.parts && found.blocks;
    *count = 0;
    if (fine) parts_take(&found, image);
    fine = fine && find_in(image, &found, mixed, count);
    free(found.parts);
    free(found.blocks);
    if (!fine) {
        mixed_free(mixed, *count);
        return NULL;
    }
    qsort(mixed, *count, sizeof *mixed, largest_first);
    return mixed;
}

int report_text_mixed(const struct report *report) {
    enum { LINES = 10 };
    size_t count, most = report->top < LINES ? report->top : LINES;
    struct mixed *mixed = find_mixed(report->image, &count);
    uint64_t bytes = 0;
    if (!mixed) return -1;
    for (size_t i = 0; i < count; i++) bytes += mixed[i].block->size;
    if (count) printf("\n  blocks that several owners share: %s, %s\n", text_count(count).s, text_size(bytes).s);
    for (size_t i = 0; i < count && i < most; i++) {
        printf("  %12s:", text_size(mixed[i].block->size).s);
        for (size_t j = 0; j < mixed[i].count; j++) {
            struct text_line words;
            const char *name = image_owner_words(report->image, mixed[i].shares[j].model, words.s, sizeof words.s);
            printf("%s %s %s", j ? "," : "", text_size(mixed[i].shares[j].bytes).s,
                   name ? TEXT_SAFE(name) : "untagged");
        }
        putchar('\n');
    }
    mixed_free(mixed, count);
    return 0;
}

static void json_mixed(struct json *json, const struct image *image, const struct mixed *mixed) {
    json_object(json, NULL);
    json_number(json, "address", mixed->block->address);
    json_number(json, "size_bytes", mixed->block->size);
    json_string(json, "kind", cuda_kind_name(mixed->block->kind));
    json_number(json, "device", mixed->block->device);
    json_array(json, "shares");
    for (size_t i = 0; i < mixed->count; i++) {
        json_object(json, NULL);
        report_json_owner(json, image, mixed->shares[i].model);
        json_number(json, "bytes", mixed->shares[i].bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

int report_json_mixed(struct json *json, const struct report *report) {
    size_t count;
    struct mixed *mixed = find_mixed(report->image, &count);
    json_array(json, "mixed_blocks");
    for (size_t i = 0; mixed && i < count && i < report->top; i++) json_mixed(json, report->image, &mixed[i]);
    json_end_array(json);
    mixed_free(mixed, mixed ? count : 0);
    return mixed ? 0 : -1;
}
