/* owned.c — see owned.h. */
#include "preload/owners/owned.h"

#include "preload/blocks/blocks.h"
#include "preload/count/counters.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/ledger/ledger.h"
#include "preload/blocks/mappings.h"
#include "preload/shared/os.h"
#include "preload/owners/owners.h"
#include "preload/blocks/parts.h"
#include "preload/count/site.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_pages.h"
#include "preload/serve/serve_settings.h"
#include "preload/vram/vram_owned.h"
#include "preload/count/tags.h"
#include "preload/base/seal.h"

const struct owned_store *owned_store;

/* The tag number of a site; 0: the site is free, or untagged. */
static uint32_t owned_number_of(uint32_t site) {
    struct snap_site record = site_record(site);
    return record.word == SNAP_SITE_FREE ? 0 : snap_site_tag(record);
}

/* The owners of a tag. A model that was adopted is replaced by its adopter. */
static struct snap_tag owners_of(uint32_t number) {
    struct snap_tag tag = tags_at(number);
    tag.model = owner_final(tag.model);
    return tag;
}

static struct snap_tag tag_of(uint32_t site) { return owners_of(owned_number_of(site)); }

/* The whole pages of a range: returns their bytes, and sets *first to the first page. */
static uint64_t whole_pages(uint64_t start, uint64_t length, uintptr_t *first) {
    uint64_t end = (start + length) & ~(uint64_t)(OS_PAGE - 1);
    *first = os_round_up(start, OS_PAGE);
    return end > *first ? end - *first : 0;
}

/* --- sums by owner, from the counters of sites --- */

struct sums {
    struct owned *all; /* indexed by owner or by tag */
    uint32_t count;
};

static void add_to_sum(const struct sums *sums, uint32_t which, const struct snap_counter *sum) {
    if (!which || which >= sums->count) return;
    struct owned *has = &sums->all[which];
    has->allocated_bytes += sum->alloc_bytes;
    has->live_bytes += sum->alloc_bytes - sum->free_bytes;
    has->live_blocks += sum->alloc_blocks - sum->free_blocks;
}

typedef void add_counter(const struct sums *sums, uint32_t tag, const struct snap_counter *sum);

static void add_to_owners(const struct sums *sums, uint32_t number, const struct snap_counter *sum) {
    struct snap_tag tag = owners_of(number);
    add_to_sum(sums, tag.model, sum);
    add_to_sum(sums, tag.node, sum);
    add_to_sum(sums, tag.run, sum);
}

/* Calls `to` with the counters of each tagged site in a chunk. Most chunks have no tagged site, and then no counters
 * are summed. */
static void add_chunk(const struct sums *sums, uint32_t chunk, add_counter *to) {
    struct snap_counter counters[SNAP_CHUNK_SITES];
    bool summed = false;
    for (uint32_t i = 0, site = chunk * SNAP_CHUNK_SITES; i < SNAP_CHUNK_SITES; i++, site++) {
        uint32_t number = owned_number_of(site);
        if (!number) continue;
        if (!summed) counters_sum(chunk, counters);
        summed = true;
        to(sums, number, &counters[i]);
    }
}

static void add_sites(const struct sums *sums, add_counter *to) {
    for (uint32_t chunk = 0; chunk * SNAP_CHUNK_SITES < site_count(); chunk++) add_chunk(sums, chunk, to);
}

static void owned_add_part(uint32_t site, uintptr_t start, uint64_t length, void *context) {
    const struct sums *sums = context;
    uintptr_t first;
    uint32_t model = tag_of(site).model;
    if (model && model < sums->count) sums->all[model].movable_bytes += whole_pages(start, length, &first);
}

/* Adds a large block. Each part of the block is counted for the owner of the part. */
static void owned_add_block(struct snap_large *record, void *context) { parts_each(record, owned_add_part, context); }

static void add_mapping(struct snap_mapping *record, void *context) {
    const struct sums *sums = context;
    struct snap_tag tag = tag_of(record->site);
    uintptr_t first;
    if (record->kind != SNAP_MAP_ANONYMOUS) return;
    if (tag.model && tag.model < sums->count)
        sums->all[tag.model].movable_bytes += whole_pages(record->address, record->length, &first);
    const uint32_t owners[] = {tag.model, tag.node, tag.run};
    for (int i = 0; i < 3; i++)
        if (owners[i] && owners[i] < sums->count) sums->all[owners[i]].mapped_bytes += record->length;
}

/* Adds device memory to an owner: to its sum, and to the sum of the device. */
static void owned_add_device(struct owned *has, uint32_t device, uint64_t bytes) {
    has->cuda_bytes += bytes;
    if (device < MEMSTOW_DEVICES) has->on_device_bytes[device] += bytes;
}

static void add_cuda(const struct snap_cuda_site *site, void *context) {
    const struct sums *sums = context;
    struct snap_tag tag = tags_at(site->tag);
    const uint32_t owners[] = {owner_final(tag.model), tag.node, tag.run};
    uint64_t freed = os_load(&site->counter.free_bytes), allocated = os_load(&site->counter.alloc_bytes);
    for (int i = 0; i < 3 && snap_cuda_on_device(site->kind); i++)
        if (owners[i] && owners[i] < sums->count)
            owned_add_device(&sums->all[owners[i]], site->device, allocated - freed);
}

static void add_state(uint32_t owner, uint64_t bytes, bool in_file, void *context) {
    struct sums *sums = context;
    if (owner < sums->count && in_file) sums->all[owner].stowed_bytes += bytes;
}

/* Adds device memory that memstow serves, whether it is on its device or was moved out. */
static void add_served(uint32_t owner, uint64_t bytes, bool stowed, void *context) {
    struct sums *sums = context;
    if (owner >= sums->count) return;
    sums->all[owner].movable_bytes += bytes;
    sums->all[owner].device_movable_bytes += bytes;
    if (!stowed) return;
    sums->all[owner].stowed_bytes += bytes;
    sums->all[owner].device_stowed_bytes += bytes;
}

/* Subtracts a block that was moved off its device from the sum of that device. It subtracts the bytes that the program
 * requested, because the site counts the requested bytes. */
static void owned_take_stowed(const struct vram_stowed *block, void *context) {
    const struct sums *sums = context;
    if (block->owner >= sums->count || block->device >= MEMSTOW_DEVICES) return;
    uint64_t *on_device = &sums->all[block->owner].on_device_bytes[block->device];
    *on_device -= block->asked < *on_device ? block->asked : *on_device;
}

static size_t bytes_for(uint32_t count) { return os_round_up(count * sizeof(struct owned), OS_PAGE); }

struct owned *owned_of_all(uint32_t count) {
    struct sums sums = {os_map(bytes_for(count)), count};
    if (!sums.all) return NULL;
    add_sites(&sums, add_to_owners);
    blocks_visit_records(owned_add_block, &sums);
    mappings_visit_records(add_mapping, &sums);
    cuda_counts_visit(add_cuda, &sums);
    bool stowed = __atomic_load_n(&stow_watch, __ATOMIC_RELAXED) != 0;
    for (uint32_t owner = 1; stowed && owner < count; owner++)
        if (sums.all[owner].movable_bytes) sums.all[owner].stowed_bytes = stow_bytes(owner);
    if (owned_store) owned_store->visit(add_state, &sums);
    if (serve_wanted) vram_owned_visit(add_served, &sums);
    if (serve_wanted) vram_owned_visit_stowed(owned_take_stowed, &sums);
    return sums.all;
}

void owned_let_go(struct owned *all, uint32_t count) {
    if (all) os_unmap(all, bytes_for(count));
}

/* --- sums by tag --- */

static void add_cuda_to_tag(const struct snap_cuda_site *site, void *context) {
    const struct sums *sums = context;
    if (site->tag < sums->count && snap_cuda_on_device(site->kind))
        sums->all[site->tag].cuda_bytes += site->counter.alloc_bytes - site->counter.free_bytes;
}

struct owned *owned_of_tags(uint32_t count) {
    struct sums sums = {os_map(bytes_for(count)), count};
    if (!sums.all) return NULL;
    add_sites(&sums, add_to_sum);
    cuda_counts_visit(add_cuda_to_tag, &sums);
    return sums.all;
}

/* --- the pieces of an owner's memory --- */

struct search {
    uint32_t owner, which;
    owned_visit *visit;
    void *context;
    bool over;
};

static void visit_piece(struct search *search, uint32_t site, uintptr_t start, uint64_t length) {
    if (search->over || !length || tag_of(site).model != search->owner) return;
    search->over = !search->visit(start, length, search->context);
}

static void visit_part(uint32_t site, uintptr_t start, uint64_t length, void *context) {
    uintptr_t first;
    length = whole_pages(start, length, &first);
    visit_piece(context, site, first, length);
}

static void visit_block(struct snap_large *record, void *context) { parts_each(record, visit_part, context); }

static void visit_mapping(struct snap_mapping *record, void *context) {
    const struct search *search = context;
    bool wanted = (record->kind == SNAP_MAP_ANONYMOUS && search->which & OWNED_MEMORY) ||
                  (record->kind == SNAP_MAP_FILE && search->which & OWNED_FILES);
    uintptr_t first;
    /* Perhaps only a part of the mapping is assigned, so its borders may be in the middle of pages. */
    uint64_t length = whole_pages(record->address, record->length, &first);
    if (wanted) visit_piece(context, record->site, first, length);
}

void owned_visit_pieces(uint32_t owner, uint32_t which, owned_visit *visit, void *context) {
    struct search search = {owner, which, visit, context, false};
    if (which & OWNED_MEMORY) blocks_visit_records(visit_block, &search);
    mappings_visit_records(visit_mapping, &search);
}

/* --- bytes that are in memory --- */

struct resident {
    int pagemap;
    uint64_t bytes;
};

static bool add_resident(uintptr_t start, uint64_t length, void *context) {
    struct resident *self = context;
    self->bytes += stow_pages_count(self->pagemap, start, start + length, STOW_PAGES_RESIDENT);
    return true;
}

uint64_t owned_resident(uint32_t owner) {
    if (seal_is_set()) return UINT64_MAX;
    struct resident self = {.pagemap = stow_pages_open()};
    if (self.pagemap < 0) return UINT64_MAX;
    owned_visit_pieces(owner, OWNED_MEMORY, add_resident, &self);
    os_close(self.pagemap);
    return self.bytes;
}
