/* diff_blocks.c — see diff_blocks.h. */
#include "tools/diff/diff_blocks.h"
#include "tools/base/json.h"
#include "tools/base/list.h"
#include "tools/html/html_page.h"
#include "tools/html/html_sites.h"
#include "tools/reader/cuda_image.h"

#include <stdlib.h>

enum { STAYED_PART = 8 }; /* a block that is in both files weighs at least 1/8 of its size, even if it hardly changed */

void diff_blocks_end(struct diff_blocks *self) {
    free(self->list);
    *self = (struct diff_blocks){0};
}

/* ---- collecting blocks */

static int diff_blocks_put(struct diff_blocks *self, const struct image *image, uint32_t row, struct diff_block block) {
    if (!LIST_GROW(self->list, self->count, self->capacity)) return -1;
    uint64_t now = image_now(image);
    block.row = row;
    block.age_ns = now > block.birth_ns ? now - block.birth_ns : 0;
    block.place = block.side ? DIFF_BLOCK_IN_B : DIFF_BLOCK_IN_A;
    self->list[self->count++] = block;
    return 0;
}

static uint32_t row_of_site(const struct image *image, const uint32_t *row_of, uint32_t site) {
    return image_total(image, site) ? row_of[site - 1] : 0;
}

int diff_blocks_add(struct diff_blocks *self, const struct image *image, const uint32_t *row_of, int side) {
    self->taken_ns[side] = image_knows_now(image) ? image_now(image) : UINT64_MAX;
    self->start_ns[side] = image->header.start_ns;
    self->measured[side] = image->header.flags & SNAP_RESIDENCY;
    for (size_t i = 0; i < image->large_count; i++) {
        const struct snap_large *large = &image->large[i];
        struct diff_block block = {.address = large->address, .birth_ns = large->birth_ns, .side = side & 1};
        block.size[side] = large->size;
        block.resident[side] = large->resident;
        if (diff_blocks_put(self, image, row_of_site(image, row_of, large->site), block) < 0) return -1;
    }
    for (size_t i = 0; i < image->mapping_count; i++) {
        const struct snap_mapping *mapping = &image->mappings[i];
        struct diff_block block = {.address = mapping->address,
                                   .birth_ns = mapping->birth_ns,
                                   .kind = (uint8_t)html_kind_of_mapping(mapping),
                                   .side = side & 1};
        block.size[side] = mapping->length;
        block.resident[side] = mapping->resident;
        if (diff_blocks_put(self, image, row_of_site(image, row_of, mapping->site), block) < 0) return -1;
    }
    return 0;
}

int diff_blocks_add_on_devices(struct diff_blocks *self, const struct image *image, const uint32_t *row_of, int side) {
    uint32_t *totals = cuda_view_indices(image);
    int result = totals ? 0 : -1;
    for (size_t i = 0; result == 0 && i < image->cuda.block_count; i++) {
        const struct snap_cuda_block *at = &image->cuda.blocks[i];
        if (!cuda_block_is_whole(at)) continue;
        struct diff_block block = {.address = at->address,
                                   .birth_ns = at->birth_ns,
                                   .device = 1u + at->device,
                                   .kind = (uint8_t)(HTML_KIND_ON_DEVICE + at->kind),
                                   .side = side & 1};
        block.size[side] = at->size;
        uint32_t total = at->count < image->cuda.site_count ? totals[at->count] : 0;
        result = diff_blocks_put(self, image, total ? row_of[total - 1] : 0, block);
    }
    free(totals);
    return result;
}

/* ---- finding blocks of both files */

uint8_t diff_blocks_later(const struct diff_blocks *self) { return self->taken_ns[1] >= self->taken_ns[0]; }

static int by_identity(const void *left, const void *right) {
    const struct diff_block *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    if (a->birth_ns != b->birth_ns) return a->birth_ns < b->birth_ns ? -1 : 1;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    if (!a->kind != !b->kind) return a->kind ? 1 : -1;
    return a->side - b->side;
}

static bool is_same(const struct diff_block *a, const struct diff_block *b) {
    return a->address == b->address && a->birth_ns == b->birth_ns && a->device == b->device && !a->kind == !b->kind &&
           a->side != b->side;
}

/* Copies A's figures of a block into B's item for the same block. In the list B's item follows A's item. */
static void unite(struct diff_block *a, struct diff_block *b) {
    b->size[0] = a->size[0];
    b->resident[0] = a->resident[0];
    b->place = DIFF_BLOCK_IN_BOTH;
    if (!b->row) b->row = a->row;
}

static void find_both(struct diff_blocks *self) {
    size_t kept = 0;
    for (size_t i = 0; i < self->count; i++) {
        struct diff_block *block = &self->list[i], *before = kept ? &self->list[kept - 1] : NULL;
        bool both = before && before->place != DIFF_BLOCK_IN_BOTH && is_same(before, block);
        if (both) unite(before, block);
        self->list[both ? kept - 1 : kept++] = *block;
    }
    self->count = kept;
}

/* Marks as unclear the blocks that only the later file has, although they are older than the earlier file. */
static void find_unclear(struct diff_blocks *self) {
    uint8_t later = diff_blocks_later(self);
    for (size_t i = 0; i < self->count; i++) {
        struct diff_block *block = &self->list[i];
        if (block->place == DIFF_BLOCK_IN_BOTH || block->side != later) continue;
        if (block->birth_ns <= self->taken_ns[!later]) block->place = DIFF_BLOCK_UNCLEAR;
    }
}

static uint64_t diff_blocks_weight(const struct diff_block *block) {
    uint64_t a = block->size[0], b = block->size[1], most = a > b ? a : b;
    if (block->place != DIFF_BLOCK_IN_BOTH) return most;
    uint64_t change = a > b ? a - b : b - a;
    return change > most / STAYED_PART ? change : most / STAYED_PART;
}

static int by_weight(const void *left, const void *right) {
    const struct diff_block *a = left, *b = right;
    uint64_t first = diff_blocks_weight(a), second = diff_blocks_weight(b);
    return first != second ? (first > second ? -1 : 1) : by_identity(a, b);
}

/* Whether a block counts as live memory. Mappings of files and of reserved addresses do not count. */
static bool is_live(const struct diff_block *block) {
    return block->device || (block->kind / 2 != SNAP_MAP_FILE && block->kind / 2 != SNAP_MAP_RESERVED);
}

static void diff_blocks_add_up(struct diff_blocks *self) {
    for (size_t i = 0; i < self->count; i++) {
        if (!is_live(&self->list[i])) {
            self->not_live++;
            continue;
        }
        struct diff_blocks_sum *sum = &self->sums[self->list[i].device != 0][self->list[i].place];
        sum->blocks++;
        sum->bytes[0] += self->list[i].size[0];
        sum->bytes[1] += self->list[i].size[1];
    }
}

void diff_blocks_match(struct diff_blocks *self, bool same) {
    if (self->count) qsort(self->list, self->count, sizeof *self->list, by_identity);
    if (same) find_both(self);
    if (same) find_unclear(self);
    diff_blocks_add_up(self);
    if (self->count) qsort(self->list, self->count, sizeof *self->list, by_weight);
    self->shown = self->count < HTML_BLOCKS_MOST ? self->count : HTML_BLOCKS_MOST;
}

/* ---- the columns of a page */

enum block_column {
    COLUMN_ADDRESS,
    COLUMN_SIZE,
    COLUMN_RESIDENT,
    COLUMN_AGE,
    COLUMN_KIND,
    COLUMN_DEVICE,
    COLUMN_PLACE
};

static uint64_t diff_blocks_value(const struct diff_block *block, enum block_column column, int side) {
    switch (column) {
    case COLUMN_ADDRESS:
        return block->address;
    case COLUMN_SIZE:
        return block->size[side];
    case COLUMN_RESIDENT:
        return block->resident[side];
    case COLUMN_AGE:
        return block->age_ns / 1000;
    case COLUMN_KIND:
        return block->kind;
    case COLUMN_DEVICE:
        return block->device;
    default:
        return block->place;
    }
}

static void diff_blocks_column(const struct diff_blocks *self, struct html_out *out, enum block_column column, int side,
                               const char *name) {
    html_column_begin(out, "blocks", name, "numbers", self->shown);
    for (size_t i = 0; i < self->shown; i++) html_column_put(out, diff_blocks_value(&self->list[i], column, side));
    html_column_end(out);
}

static bool has_devices(const struct diff_blocks *self) {
    uint64_t blocks = 0;
    for (int place = 0; place < DIFF_BLOCK_PLACES; place++) blocks += self->sums[1][place].blocks;
    return blocks != 0;
}

/* All columns but the one of sites. */
static int write_facts(struct html_out *out, void *context) {
    const struct diff_blocks *self = context;
    static const char *const sizes[] = {"before_size", "after_size"}, *const residents[] = {"before_resident",
                                                                                            "after_resident"};
    diff_blocks_column(self, out, COLUMN_ADDRESS, 0, "address");
    for (int side = 0; side < 2; side++) {
        diff_blocks_column(self, out, COLUMN_SIZE, side, sizes[side]);
        if (self->measured[side]) diff_blocks_column(self, out, COLUMN_RESIDENT, side, residents[side]);
    }
    diff_blocks_column(self, out, COLUMN_AGE, 0, "age");
    diff_blocks_column(self, out, COLUMN_KIND, 0, "kind");
    if (has_devices(self)) diff_blocks_column(self, out, COLUMN_DEVICE, 0, "device");
    diff_blocks_column(self, out, COLUMN_PLACE, 0, "place");
    return 0;
}

int diff_blocks_fit(struct diff_blocks *self, size_t *limit) {
    return html_fit_blocks(&self->shown, limit, write_facts, self);
}

void diff_blocks_write(const struct diff_blocks *self, struct html_out *out, const uint32_t *host_entries,
                       const uint32_t *device_entries) {
    if (!self->shown) return;
    write_facts(out, (void *)self);
    html_column_begin(out, "blocks", "site", "numbers", self->shown);
    for (size_t i = 0; i < self->shown; i++) {
        const struct diff_block *block = &self->list[i];
        const uint32_t *entries = block->device ? device_entries : host_entries;
        html_column_put(out, block->row ? entries[block->row - 1] : 0);
    }
    html_column_end(out);
}

/* ---- the document with the sums */

static void json_sum(struct json *json, const char *key, const struct diff_blocks_sum *sum) {
    json_object(json, key);
    json_number(json, "blocks", sum->blocks);
    json_number(json, "before_bytes", sum->bytes[0]);
    json_number(json, "after_bytes", sum->bytes[1]);
    json_end_object(json);
}

static void json_sums(struct json *json, const struct diff_blocks_sum sums[DIFF_BLOCK_PLACES]) {
    json_sum(json, "only_a", &sums[DIFF_BLOCK_IN_A]);
    json_sum(json, "only_b", &sums[DIFF_BLOCK_IN_B]);
    json_sum(json, "both", &sums[DIFF_BLOCK_IN_BOTH]);
    json_sum(json, "unclear", &sums[DIFF_BLOCK_UNCLEAR]);
}

/* Writes when a file was taken, in seconds after the start of its process. Writes null if this is not known. */
static void json_taken(struct json *json, const struct diff_blocks *self, int side) {
    uint64_t taken = self->taken_ns[side], start = self->start_ns[side];
    const char *key = side ? "b_seconds" : "a_seconds";
    if (taken == UINT64_MAX || taken < start)
        json_null(json, key);
    else
        json_real(json, key, (double)(taken - start) / 1e9);
}

int diff_blocks_write_sums(const struct diff_blocks *self, struct html_out *out) {
    static struct json json;
    FILE *to = html_document(out, "blocks");
    if (!to) return -1;
    json_begin(&json, to, "memstow-blocks");
    json_taken(&json, self, 0);
    json_taken(&json, self, 1);
    json_sums(&json, self->sums[0]);
    json_number(&json, "not_live", self->not_live);
    json_object(&json, "on_devices");
    json_sums(&json, self->sums[1]);
    json_end_object(&json);
    json_finish(&json);
    return fclose(to) == 0 ? 0 : -1;
}
