/* cuda_image.c — see cuda_image.h. */
#include "tools/reader/cuda_image.h"
#include "tools/reader/reader.h"

#include <stdlib.h>
#include <string.h>

/* --- names of kinds of memory --- */

static const char *const kind_names[SNAP_CUDA_KINDS] = {
    [SNAP_CUDA_DEVICE_MEMORY] = "device", [SNAP_CUDA_POOL_MEMORY] = "pool",      [SNAP_CUDA_MANAGED] = "managed",
    [SNAP_CUDA_ARRAY] = "array",          [SNAP_CUDA_PHYSICAL] = "vmm",          [SNAP_CUDA_GRAPH] = "graph",
    [SNAP_CUDA_PINNED] = "pinned",        [SNAP_CUDA_REGISTERED] = "registered", [SNAP_CUDA_IMPORTED] = "imported",
    [SNAP_CUDA_RESERVED] = "reserved",    [SNAP_CUDA_MAPPING] = "mapping",       [SNAP_CUDA_POOL] = "pool handle",
    [SNAP_CUDA_HANDLE] = "handle",        [SNAP_CUDA_BACKUP] = "backup",         [SNAP_CUDA_BUFFER] = "buffer",
};

const char *cuda_kind_name(uint32_t kind) {
    return kind < SNAP_CUDA_KINDS && kind_names[kind] ? kind_names[kind] : "unknown";
}

bool cuda_kind_is_shown(uint32_t kind) { return kind >= SNAP_CUDA_DEVICE_MEMORY && kind <= SNAP_CUDA_RESERVED; }

/* --- loading CUDA memory --- */

/* The total of a record. A snapshot's record has the stack and the module of its site. A ledger's record has only the
 * number of the site, and the table `sites` has the rest. */
static struct total total_of(const struct snap_cuda_site *record, const struct snap_site *sites, size_t count) {
    struct total total = {.class = SNAP_ON_CUDA,
                          .tag = record->tag,
                          .stack = record->stack,
                          .module = record->module,
                          .alloc_bytes = record->counter.alloc_bytes,
                          .alloc_blocks = record->counter.alloc_blocks,
                          .free_bytes = record->counter.free_bytes,
                          .free_blocks = record->counter.free_blocks};
    if (!record->site || record->site >= count || sites[record->site].word == SNAP_SITE_FREE) return total;
    total.stack = snap_site_stack(sites[record->site]);
    total.module = snap_site_module(sites[record->site]);
    return total;
}

static int sites_lend(struct reader *reader, const struct snap_site *sites, size_t count) {
    const struct cuda_image *cuda = &reader->image->cuda;
    for (size_t i = 0; i < cuda->site_count; i++) {
        struct total total = total_of(&cuda->sites[i], sites, count);
        if (reader_add_total(reader, &total) < 0) return -1;
    }
    return 0;
}

int cuda_image_lend(struct reader *reader) {
    struct cuda_image *cuda = &reader->image->cuda;
    struct snap_site *sites = NULL;
    size_t count = 0;
    if (reader_table(reader, SNAP_CUDA_SITE, sizeof *cuda->sites, (void **)&cuda->sites, &cuda->site_count) < 0)
        return -1;
    if (!cuda->site_count) return 0;
    bool ledger = reader->image->header.kind == SNAP_LEDGER;
    if (ledger && reader_table(reader, SNAP_SITE, sizeof *sites, (void **)&sites, &count) < 0) return -1;
    int result = sites_lend(reader, sites, count);
    free(sites);
    return result;
}

/* Removes from the image the totals that cuda_image_lend added. They are the image's last totals. */
static int take_back(struct reader *reader) {
    struct image *image = reader->image;
    struct cuda_image *cuda = &image->cuda;
    if (!cuda->site_count) return 0;
    cuda->totals = malloc(cuda->site_count * sizeof *cuda->totals);
    if (!cuda->totals) return reader_memory(reader);
    image->total_count -= cuda->site_count;
    memcpy(cuda->totals, image->totals + image->total_count, cuda->site_count * sizeof *cuda->totals);
    return 0;
}

static void cuda_image_add_up(struct cuda_image *cuda) {
    for (size_t i = 0; i < cuda->site_count; i++) {
        uint32_t kind = cuda->sites[i].kind;
        if (kind >= SNAP_CUDA_KINDS) kind = cuda->sites[i].kind = 0;
        total_sum_add(&cuda->kinds[kind], &cuda->totals[i]);
        if (snap_cuda_on_device(kind)) total_sum_add(&cuda->device, &cuda->totals[i]);
    }
}

static int load_head(struct reader *reader) {
    struct cuda_image *cuda = &reader->image->cuda;
    struct snap_cuda *heads = NULL;
    size_t count;
    if (reader_table(reader, SNAP_CUDA, sizeof *heads, (void **)&heads, &count) < 0) {
        free(heads);
        return -1;
    }
    cuda->used = count != 0;
    if (count) cuda->head = heads[0];
    cuda->head.unknown[sizeof cuda->head.unknown - 1] = 0;
    for (uint32_t i = 0; i + 1 < SNAP_CUDA_UNKNOWN; i++)
        cuda->head.unknown_more[i][sizeof cuda->head.unknown_more[i] - 1] = 0;
    free(heads);
    return 0;
}

int cuda_image_load(struct reader *reader) {
    struct cuda_image *cuda = &reader->image->cuda;
    if (take_back(reader) < 0 || load_head(reader) < 0) return -1;
    if (reader_table(reader, SNAP_CUDA_DEVICE, sizeof *cuda->devices, (void **)&cuda->devices, &cuda->device_count) < 0)
        return -1;
    if (cuda->device_count > SNAP_CUDA_DEVICES) cuda->device_count = SNAP_CUDA_DEVICES;
    for (size_t i = 0; i < cuda->device_count; i++) cuda->devices[i].name[sizeof cuda->devices[i].name - 1] = 0;
    cuda_image_add_up(cuda);
    return 0;
}

/* --- views of CUDA memory --- */

struct image cuda_view(const struct image *image) {
    struct image view = *image;
    view.totals = calloc(image->cuda.site_count + 1, sizeof *view.totals);
    view.total_count = view.total_capacity = 0;
    view.variances = NULL;
    view.has_picture = view.picture_is_live = false;
    view.header.sample_bytes = 0;
    view.host = image->cuda.device;
    view.mapped = (struct sum){0};
    for (size_t i = 0; view.totals && i < image->cuda.site_count; i++)
        if (snap_cuda_on_device(image->cuda.sites[i].kind)) view.totals[view.total_count++] = image->cuda.totals[i];
    return view;
}

uint32_t *cuda_view_indices(const struct image *image) {
    uint32_t *indices = calloc(image->cuda.site_count + 1, sizeof *indices), count = 0;
    for (size_t i = 0; indices && i < image->cuda.site_count; i++)
        if (snap_cuda_on_device(image->cuda.sites[i].kind)) indices[i] = ++count;
    return indices;
}

bool cuda_block_is_whole(const struct snap_cuda_block *block) {
    return snap_cuda_on_device(block->kind) && !(block->flags & SNAP_CUDA_PART);
}

const struct total *cuda_block_total(const struct cuda_image *cuda, const struct snap_cuda_block *block) {
    return block->count < cuda->site_count ? &cuda->totals[block->count] : NULL;
}

uint32_t cuda_block_tag(const struct cuda_image *cuda, const struct snap_cuda_block *block) {
    const struct total *total = cuda_block_total(cuda, block);
    return total ? total->tag : 0;
}

size_t cuda_every_count(const struct image *image) { return image->total_count + image->cuda.site_count; }

bool cuda_every_total(const struct image *image, size_t index, struct total *out) {
    if (index < image->total_count) {
        *out = image->totals[index];
        return true;
    }
    index -= image->total_count;
    uint32_t kind = image->cuda.sites[index].kind;
    *out = image->cuda.totals[index];
    if (kind == SNAP_CUDA_PINNED) out->class = SNAP_HOST;
    return snap_cuda_on_device(kind) || kind == SNAP_CUDA_PINNED;
}

void cuda_view_end(struct image *view) { free(view->totals); }

static void add_share(const struct image *image, struct cuda_share *shares, uint32_t id, uint32_t kind,
                      const struct total *total) {
    const struct snap_owner *owner = image_owner(image, id);
    struct cuda_share *share = &shares[owner ? (size_t)(owner - image->owners) : image->owner_count];
    if (snap_cuda_on_device(kind)) {
        share->device_bytes += total_live_bytes(total);
        share->device_blocks += total_live_blocks(total);
    } else if (kind == SNAP_CUDA_PINNED) {
        share->pinned_bytes += total_live_bytes(total);
    }
}

struct cuda_share *cuda_shares(const struct image *image) {
    struct cuda_share *shares = calloc(image->owner_count + 1, sizeof *shares);
    for (size_t i = 0; shares && i < image->cuda.site_count; i++) {
        const struct total *total = &image->cuda.totals[i];
        const struct snap_tag *tag = image_tag(image, total->tag);
        uint32_t kind = image->cuda.sites[i].kind;
        if (!tag->model && !tag->node && !tag->run) add_share(image, shares, 0, kind, total);
        if (tag->model) add_share(image, shares, tag->model, kind, total);
        if (tag->node) add_share(image, shares, tag->node, kind, total);
        if (tag->run) add_share(image, shares, tag->run, kind, total);
    }
    return shares;
}

/* `live` includes the used memory of the pool, so `pool_idle` is only the rest of what the pool reserved. `graphs` is
 * all that graphs reserved. */
struct cuda_gap cuda_gap(const struct snap_cuda_device *device) {
    struct cuda_gap gap = {.known = device->figures_ns && device->total >= device->available};
    if (!gap.known) return gap;
    gap.used = device->total - device->available;
    gap.live = device->figures_live > 0 ? (uint64_t)device->figures_live : 0;
    gap.pool_idle = device->pool_reserved > device->pool_used ? device->pool_reserved - device->pool_used : 0;
    gap.graphs = device->graph_reserved;
    gap.spare = device->spare;
    gap.rest = (int64_t)(gap.used - gap.live - gap.pool_idle - gap.graphs - gap.spare);
    return gap;
}

uint64_t cuda_peak(const struct image *image) {
    uint64_t live = image->cuda.device.live_bytes;
    return image->cuda.head.peak > live ? image->cuda.head.peak : live;
}
