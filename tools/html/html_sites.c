/* html_sites.c — see html_sites.h. */
#include "tools/html/html_sites.h"
#include "tools/reader/cuda_image.h"
#include "tools/views/estimate.h"

#include <stdlib.h>
#include <string.h>

/* ---- collecting sites */

static const struct image *image_of(const struct html_sites *self, size_t index) {
    return index < self->host_count ? self->report->image : &self->devices;
}

static struct total total_of(const struct html_sites *self, size_t index) {
    return report_site(image_of(self, index), &self->sites[index]);
}

static struct listed_site *html_sites_list(const struct report *report, const struct image *image, size_t *count) {
    struct report all = *report;
    all.image = image;
    all.top = 0; /* unsorted */
    return report_sites(&all, true, count);
}

/* Lists the sites of host memory, and then those of device memory, in self->sites. Returns 0, or -1: no memory. */
static int find_sites(struct html_sites *self) {
    size_t host = 0, device = 0;
    const struct image *image = self->report->image;
    if (image->cuda.used) self->devices = cuda_view(image);
    struct listed_site *devices = image->cuda.used ? html_sites_list(self->report, &self->devices, &device) : NULL;
    self->sites = html_sites_list(self->report, image, &host);
    struct listed_site *both = self->sites && device ? realloc(self->sites, (host + device + 1) * sizeof *both) : NULL;
    if (both) {
        memcpy(both + host, devices, device * sizeof *both);
        self->sites = both;
    }
    bool failed = !self->sites || (device && !both) || (image->cuda.used && (!devices || !self->devices.totals));
    free(devices);
    self->host_count = host;
    self->count = host + device;
    return failed ? -1 : 0;
}

/* ---- the weight of a site: its share of all memory, in the measure in which this share is largest */

struct whole {
    double bytes[MEASURES];
};

static struct whole html_sites_add_up(const struct html_sites *self, size_t first, size_t end) {
    struct whole whole = {{1, 1, 1}};
    for (size_t i = first; i < end; i++) {
        struct total total = total_of(self, i);
        for (int measure = 0; measure < MEASURES; measure++)
            whole.bytes[measure] += (double)total_measure(&total, (enum measure)measure);
    }
    return whole;
}

static float weight_of(const struct total *total, const struct whole *whole) {
    double most = 0;
    for (int measure = 0; measure < MEASURES; measure++) {
        double part = (double)total_measure(total, (enum measure)measure) / whole->bytes[measure];
        if (measure == MEASURE_ALLOCATED) part /= 4; /* freed memory matters less than present memory */
        if (part > most) most = part;
    }
    return (float)most;
}

static unsigned bits_of(uint64_t number) { return number ? 64 - (unsigned)__builtin_clzll(number) : 0; }

/* The cost of a total's figures in the page, in eighths of a byte. Figures that are 0 or equal the live figures take
 * almost no space. Most other figures compress well, too. */
static unsigned cost_of(const struct total *total) {
    unsigned cost = 6;
    for (int measure = 0; measure < MEASURES; measure++) {
        uint64_t bytes = total_measure(total, (enum measure)measure),
                 blocks = total_measure_blocks(total, (enum measure)measure);
        uint64_t live = measure ? total_live_bytes(total) : 0, live_blocks = measure ? total_live_blocks(total) : 0;
        cost += bits_of(bytes > live ? bytes - live : live - bytes);
        cost += bits_of(blocks > live_blocks ? blocks - live_blocks : live_blocks - blocks);
    }
    return cost;
}

static uint32_t *module_lines(struct html_sites *self) {
    const struct image *image = self->report->image;
    uint32_t *lines = calloc(image->module_count + 1, sizeof *lines);
    for (uint32_t i = 0; lines && i <= image->module_count; i++)
        lines[i] = html_lines_module(&self->lines, image_module(image, i));
    return lines;
}

static struct html_leaf *make_leaves(struct html_sites *self) {
    struct html_leaf *leaves = calloc(self->count + 1, sizeof *leaves);
    uint32_t *lines = module_lines(self);
    const struct whole host = html_sites_add_up(self, 0, self->host_count),
                       device = html_sites_add_up(self, self->host_count, self->count);
    uint32_t tags = (uint32_t)self->report->image->tag_count;
    size_t modules = self->report->image->module_count;
    for (size_t i = 0; leaves && lines && i < self->count; i++) {
        struct total total = total_of(self, i);
        bool on_device = i >= self->host_count;
        uint32_t tag = total.tag < tags ? html_owners_tag(self->owners, total.tag) : 0;
        leaves[i] = (struct html_leaf){.stack = total.stack,
                                       .line = lines[total.module <= modules ? total.module : 0],
                                       .tag = on_device ? tags + 1 + tag : tag,
                                       .cost = cost_of(&total) & UINT16_MAX,
                                       .weight = weight_of(&total, on_device ? &device : &host)};
    }
    if (!lines) free(leaves);
    struct html_leaf *result = lines ? leaves : NULL;
    free(lines);
    return result;
}

/* ---- figures of an entry: the sums over its leaves */

struct html_figures {
    uint64_t bytes[MEASURES], blocks[MEASURES];
    double variance[MEASURES];
    bool inexact;
};

static void add_leaf(const struct html_sites *self, uint32_t leaf, struct html_figures *figures) {
    struct total total = total_of(self, leaf);
    const struct image *image = image_of(self, leaf);
    for (int measure = 0; measure < MEASURES; measure++) {
        figures->bytes[measure] += total_measure(&total, (enum measure)measure);
        figures->blocks[measure] += total_measure_blocks(&total, (enum measure)measure);
        figures->variance[measure] += report_site_variance(image, &self->sites[leaf], (enum measure)measure);
    }
    figures->inexact |= total.flags & TOTAL_INEXACT;
}

static struct html_figures add_leaves(const struct html_sites *self, size_t entry) {
    size_t count;
    const uint32_t *leaves = html_tree_entry(&self->tree, entry, &count);
    struct html_figures figures = {{0}, {0}, {0}, false};
    for (size_t i = 0; i < count; i++) add_leaf(self, leaves[i], &figures);
    return figures;
}

static struct html_figures figures_of(const struct html_sites *self, size_t entry) {
    return self->sum_of[entry] ? self->sums[self->sum_of[entry] - 1] : add_leaves(self, entry);
}

/* Computes the figures of entries that have several merged sites. Every column needs these figures, and a few entries
 * may have a million sites, so the sums are made only once. Returns 0, or -1: no memory. */
static int add_up_entries(struct html_sites *self) {
    size_t entries = self->tree.entry_count, count, sums = 0;
    free(self->sum_of);
    free(self->sums);
    self->sums = NULL;
    self->sum_of = calloc(entries + 1, sizeof *self->sum_of);
    if (!self->sum_of) return -1;
    for (size_t i = 0; i < entries; i++) {
        html_tree_entry(&self->tree, i, &count);
        if (count > 1) self->sum_of[i] = (uint32_t)++sums;
    }
    self->sums = calloc(sums + 1, sizeof *self->sums);
    for (size_t i = 0; self->sums && i < entries; i++)
        if (self->sum_of[i]) self->sums[self->sum_of[i] - 1] = add_leaves(self, i);
    return self->sums ? 0 : -1;
}

void html_sites_end(struct html_sites *self) {
    html_tree_end(&self->tree);
    html_lines_end(&self->lines);
    if (self->devices.totals) cuda_view_end(&self->devices);
    html_fit_end(&self->packed);
    free(self->sites);
    free(self->blocks);
    free(self->sums);
    free(self->sum_of);
}

/* ---- the columns of sites */

static void write_bytes(const struct html_sites *self, struct html_out *out, enum measure measure, const char *column) {
    html_column_begin(out, "sites", column, measure ? "over live_bytes" : "numbers", self->tree.entry_count);
    for (size_t i = 0; i < self->tree.entry_count; i++) {
        struct html_figures figures = figures_of(self, i);
        if (measure)
            html_column_put_signed(out, (int64_t)(figures.bytes[measure] - figures.bytes[0]));
        else
            html_column_put(out, figures.bytes[0]);
    }
    html_column_end(out);
}

static void write_blocks(const struct html_sites *self, struct html_out *out, enum measure measure,
                         const char *column) {
    html_column_begin(out, "sites", column, measure ? "over live_blocks" : "numbers", self->tree.entry_count);
    for (size_t i = 0; i < self->tree.entry_count; i++) {
        struct html_figures figures = figures_of(self, i);
        if (measure)
            html_column_put_signed(out, (int64_t)(figures.blocks[measure] - figures.blocks[0]));
        else
            html_column_put(out, figures.blocks[0]);
    }
    html_column_end(out);
}

static void write_errors(const struct html_sites *self, struct html_out *out, enum measure measure,
                         const char *column) {
    html_column_begin(out, "sites", column, "numbers", self->tree.entry_count);
    for (size_t i = 0; i < self->tree.entry_count; i++)
        html_column_put(out, estimate_error(figures_of(self, i).variance[measure]));
    html_column_end(out);
}

enum leaf_fact { FACT_TAG, FACT_DEVICE, FACT_FOLDED, FACT_INEXACT };

static uint64_t leaf_fact_of(const struct html_sites *self, size_t entry, enum leaf_fact what) {
    size_t count;
    uint32_t first = html_tree_entry(&self->tree, entry, &count)[0];
    const struct html_leaf *leaf = &self->tree.leaves[first];
    bool on_device = first >= self->host_count;
    if (what == FACT_TAG) return on_device ? leaf->tag - self->report->image->tag_count - 1 : leaf->tag;
    if (what == FACT_DEVICE) return on_device;
    if (what == FACT_FOLDED) return leaf->folded ? count : 0;
    return figures_of(self, entry).inexact;
}

static void write_leaf_facts(const struct html_sites *self, struct html_out *out, enum leaf_fact what,
                             const char *column) {
    html_column_begin(out, "sites", column, "numbers", self->tree.entry_count);
    for (size_t i = 0; i < self->tree.entry_count; i++) html_column_put(out, leaf_fact_of(self, i, what));
    html_column_end(out);
}

static void write_sites(const struct html_sites *self, struct html_out *out) {
    const struct image *image = self->report->image;
    write_bytes(self, out, MEASURE_LIVE, "live_bytes");
    write_blocks(self, out, MEASURE_LIVE, "live_blocks");
    if (image->has_picture) write_bytes(self, out, MEASURE_PEAK, "peak_bytes");
    if (image->has_picture) write_blocks(self, out, MEASURE_PEAK, "peak_blocks");
    write_bytes(self, out, MEASURE_ALLOCATED, "allocated_bytes");
    write_blocks(self, out, MEASURE_ALLOCATED, "allocated_blocks");
    if (image_has_tags(image)) write_leaf_facts(self, out, FACT_TAG, "tag");
    if (self->count > self->host_count) write_leaf_facts(self, out, FACT_DEVICE, "device");
    if (self->tree.folded) write_leaf_facts(self, out, FACT_FOLDED, "folded");
    if (image->inexact) write_leaf_facts(self, out, FACT_INEXACT, "inexact");
    if (!image->variances) return;
    write_errors(self, out, MEASURE_LIVE, "live_error");
    write_errors(self, out, MEASURE_PEAK, "peak_error");
    write_errors(self, out, MEASURE_ALLOCATED, "allocated_error");
}

/* A tag that another tag replaces (html_owners_tag) gets no owners, because no site of the page has it. */
static void write_tag(const struct html_sites *self, struct html_out *out, const char *column, size_t offset) {
    const struct image *image = self->report->image;
    html_column_begin(out, "tags", column, "numbers", image->tag_count);
    for (uint32_t i = 0; i < image->tag_count; i++) {
        uint32_t owner = 0;
        if (html_owners_tag(self->owners, i) == i) memcpy(&owner, (const char *)&image->tags[i] + offset, sizeof owner);
        html_column_put(out, html_owners_id(self->owners, owner));
    }
    html_column_end(out);
}

static void write_tags(const struct html_sites *self, struct html_out *out) {
    if (!image_has_tags(self->report->image)) return;
    write_tag(self, out, "model", offsetof(struct snap_tag, model));
    write_tag(self, out, "node", offsetof(struct snap_tag, node));
    write_tag(self, out, "run", offsetof(struct snap_tag, run));
}

/* ---- the columns of large blocks, mappings, and blocks on devices */

enum block_column {
    BLOCK_ADDRESS,
    BLOCK_SIZE,
    BLOCK_RESIDENT,
    BLOCK_AGE,
    BLOCK_KIND,
    BLOCK_DEVICE,
    BLOCK_THREAD,
    BLOCK_SITE
};

/* host_entries and device_entries have 1 + the index of an entry on the page; 0: there is none. */
struct blocks {
    const struct html_sites *self;
    uint32_t *host_entries;   /* by total of the image */
    uint32_t *device_entries; /* by total of self->devices */
    uint32_t *device_totals;  /* by CUDA site: 1 + its total in self->devices */
    size_t count;
};

static uint32_t entry_of_block(const struct blocks *blocks, const struct listed *item) {
    const struct image *image = blocks->self->report->image;
    if (!item->on_device) return image_total(image, item->site) ? blocks->host_entries[item->site - 1] : 0;
    uint32_t total = item->site < image->cuda.site_count ? blocks->device_totals[item->site] : 0;
    return total ? blocks->device_entries[total - 1] : 0;
}

uint32_t html_kind_of_mapping(const struct snap_mapping *mapping) {
    uint32_t most = HTML_KIND_ON_DEVICE / 2 - 1;
    return 2 * (mapping->kind < most ? mapping->kind : most) + (mapping->shared != 0);
}

static uint32_t html_sites_kind(const struct listed *item) {
    if (item->on_device) return HTML_KIND_ON_DEVICE + item->on_device->kind;
    return item->mapping ? html_kind_of_mapping(item->mapping) : 0;
}

static uint64_t block_value(const struct blocks *blocks, const struct listed *item, enum block_column column) {
    switch (column) {
    case BLOCK_ADDRESS:
        return item->address;
    case BLOCK_SIZE:
        return item->size;
    case BLOCK_RESIDENT:
        return item->resident;
    case BLOCK_AGE:
        return report_age_ns(blocks->self->report->image, item->birth_ns) / 1000;
    case BLOCK_KIND:
        return html_sites_kind(item);
    case BLOCK_DEVICE:
        return item->on_device ? 1 + item->on_device->device : 0;
    case BLOCK_THREAD:
        return item->thread;
    default:
        return entry_of_block(blocks, item);
    }
}

static void write_block_column(const struct blocks *blocks, struct html_out *out, enum block_column column,
                               const char *name) {
    html_column_begin(out, "blocks", name, "numbers", blocks->count);
    for (size_t i = 0; i < blocks->count; i++)
        html_column_put(out, block_value(blocks, &blocks->self->blocks[i], column));
    html_column_end(out);
}

/* Returns, for each total of `image`, 1 + the index of its entry. `entries` has the index of each leaf's entry. The
 * leaves of the image begin at `first` and end before `end`. NULL: no memory. */
static uint32_t *entries_of_totals(const struct html_sites *self, const struct image *image, const uint32_t *entries,
                                   size_t first, size_t end) {
    uint32_t *of_totals = calloc(image->total_count + 1, sizeof *of_totals);
    for (size_t leaf = first; of_totals && leaf < end; leaf++)
        for (uint32_t i = 0; i < self->sites[leaf].count; i++)
            of_totals[self->sites[leaf].first + i] = entries[leaf] + 1;
    return of_totals;
}

static bool html_sites_find_entries(struct blocks *blocks) {
    const struct html_sites *self = blocks->self;
    uint32_t *entries = html_tree_entries_of_leaves(&self->tree);
    if (!entries) return false;
    blocks->host_entries = entries_of_totals(self, self->report->image, entries, 0, self->host_count);
    blocks->device_entries = entries_of_totals(self, &self->devices, entries, self->host_count, self->count);
    blocks->device_totals = cuda_view_indices(self->report->image);
    free(entries);
    return blocks->host_entries && blocks->device_entries && blocks->device_totals;
}

/* All columns but the one of sites. */
static int write_block_facts(struct html_out *out, void *context) {
    const struct blocks *blocks = context;
    write_block_column(blocks, out, BLOCK_ADDRESS, "address");
    write_block_column(blocks, out, BLOCK_SIZE, "size");
    if (blocks->self->report->resident.measured) write_block_column(blocks, out, BLOCK_RESIDENT, "resident");
    write_block_column(blocks, out, BLOCK_AGE, "age");
    write_block_column(blocks, out, BLOCK_KIND, "kind");
    if (blocks->self->report->image->cuda.used) write_block_column(blocks, out, BLOCK_DEVICE, "device");
    write_block_column(blocks, out, BLOCK_THREAD, "thread");
    return 0;
}

static int write_all_blocks(const struct html_sites *self, struct html_out *out) {
    struct blocks blocks = {.self = self, .count = self->blocks_shown};
    bool found = html_sites_find_entries(&blocks);
    if (found) write_block_facts(out, &blocks);
    if (found) write_block_column(&blocks, out, BLOCK_SITE, "site");
    free(blocks.host_entries);
    free(blocks.device_entries);
    free(blocks.device_totals);
    return found ? 0 : -1;
}

/* Chooses how many blocks the page has; the largest blocks come first. Sets *limit to the bytes that the blocks leave.
 * Returns 0, or -1 if there is no memory. */
static int fit_blocks(struct html_sites *self, size_t *limit) {
    struct blocks blocks = {.self = self, .count = self->block_count};
    if (blocks.count > HTML_BLOCKS_MOST) blocks.count = HTML_BLOCKS_MOST;
    int result = html_fit_blocks(&blocks.count, limit, write_block_facts, &blocks);
    self->blocks_shown = blocks.count;
    return result;
}

static int write_columns(struct html_out *out, void *context) {
    struct html_sites *self = context;
    if (add_up_entries(self) < 0 || html_lines_write(&self->lines, out) < 0) return -1;
    if (html_tree_write(&self->tree, out) < 0) return -1;
    write_tags(self, out);
    write_sites(self, out);
    return 0;
}

int html_sites_write(struct html_sites *self, struct html_out *out) {
    html_out_text(out, self->packed.text, self->packed.size);
    return self->blocks_shown ? write_all_blocks(self, out) : 0;
}

int html_sites_begin(struct html_sites *self, const struct report *report, const struct html_owners *owners,
                     size_t most, size_t limit) {
    *self = (struct html_sites){.report = report, .owners = owners};
    html_lines_begin(&self->lines);
    const struct image *const images[2] = {report->image};
    struct symbols *const symbols[2] = {report->symbols};
    if (find_sites(self) < 0) return -1;
    self->blocks = report_listed(report, LISTED_BLOCKS | LISTED_MAPPINGS | LISTED_ON_DEVICES, &self->block_count);
    if (html_tree_begin(&self->tree, &self->lines, images, symbols, make_leaves(self), self->count) < 0) return -1;
    if (!self->blocks || fit_blocks(self, &limit) < 0) return -1;
    return html_fit_begin(&self->packed, &self->tree, most, limit, write_columns, self);
}
