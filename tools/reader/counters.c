/* counters.c — turns the sections SITE and COUNTERS of a ledger into totals by site and class. A site is one call stack
 * with one set of owners; the class tells blocks from mappings.
 * In: chunks of counters, which a running process may be adding to. Out: totals. They are exact if the counters held
 * still for a moment, else marked inexact. It never stops the process.
 *
 * One thread can free a block of another. So the allocation and the free of a block may be in different counters, which
 * are read one after the other. Of a block that is allocated and freed between the two readings, only the event that is
 * read second is counted. If this is the free, the block has a free and no allocation. If this is the allocation, the
 * block looks live. So there are two ways to check whether the figures are exact:
 * - If the chunks have marks (snapshot.h), the marks are read before and after the counters. If no mark has changed,
 *   the figures are exact.
 * - If there are no marks, or if the marks keep changing, frees are read before and after the allocations. If the frees
 *   of no thread have changed, the figures are exact for the moment when the allocations were read. */
#include "tools/reader/counters.h"
#include "tools/base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_TRIES = 64, MARK_TRIES = 2 };

struct group {
    struct reader *reader;
    const struct counters_chunk *refs;
    size_t count;
    struct counters_sites *taken; /* the result */
    struct snap_counter *sums;    /* of each chunk, over its sites; NULL: not wanted */
};

static int by_index(const void *left, const void *right) {
    const struct counters_chunk *a = left, *b = right;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

uint64_t counters_chunks(const struct reader *reader) {
    uint64_t count = 0;
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == SNAP_COUNTERS) count += reader->sections[i].head.count;
    return count;
}

struct counters_chunk counters_chunk_at(const struct section *section, uint64_t record) {
    size_t stride = section->head.record_size;
    return (struct counters_chunk){.offset = section->data + record * stride,
                                   .marked = stride >= offsetof(struct snap_chunk, reserved)};
}

static int collect_section(const struct reader *reader, const struct section *section, struct counters_chunk *refs,
                           size_t *used) {
    for (uint64_t i = 0; i < section->head.count; i++) {
        uint32_t start[2]; /* thread and index */
        struct counters_chunk ref = counters_chunk_at(section, i);
        if (source_read(reader->source, ref.offset, start, sizeof start) < 0)
            return reader_damaged(reader, ref.offset, "counters cannot be read");
        if (start[0] == 0) continue;
        ref.thread = start[0];
        ref.index = start[1];
        if (ref.index > UINT32_MAX / SNAP_CHUNK_SITES)
            return reader_damaged(reader, ref.offset, "counters of an impossible site");
        refs[(*used)++] = ref;
    }
    return 0;
}

static int chunks_collect(const struct reader *reader, struct counters_chunk **refs, size_t *used) {
    *used = 0;
    *refs = NULL;
    if (reader_bound(reader, 0, counters_chunks(reader), sizeof(struct snap_chunk)) < 0) return -1;
    *refs = calloc(counters_chunks(reader) + 1, sizeof **refs);
    if (!*refs) return reader_memory(reader);
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == SNAP_COUNTERS &&
            collect_section(reader, &reader->sections[i], *refs, used) < 0)
            return -1;
    qsort(*refs, *used, sizeof **refs, by_index);
    return 0;
}

static int keep_wide_section(struct reader *reader, const struct section *section) {
    struct wide_counters *wide = &reader->wide;
    if (wide->count == sizeof wide->sections / sizeof *wide->sections)
        return reader_damaged(reader, section->data, "too many sections of counters");
    struct snap_counter first = {0};
    if (section->capacity && source_read(reader->source, section->data, &first, sizeof first) < 0)
        return reader_damaged(reader, section->data, "counters cannot be read");
    wide->sections[wide->count++] =
        (struct wide_section){*section, first.alloc_bytes, section->capacity * section->head.record_size};
    return 0;
}

int counters_find_wide(struct reader *reader) {
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == SNAP_WIDE && keep_wide_section(reader, &reader->sections[i]) < 0)
            return -1;
    return 0;
}

/* Reads a wide counter from the file of a process that is gone. It reads a window of the file at once, because
 * neighbouring counters were made one after the other and are needed together. */
static int read_window(struct reader *reader, uint64_t offset, uint64_t end, struct snap_counter *counter) {
    struct wide_counters *wide = &reader->wide;
    if (offset < wide->window || offset + sizeof *counter > wide->window + wide->window_length) {
        size_t length = sizeof wide->window_bytes < end - offset ? sizeof wide->window_bytes : (size_t)(end - offset);
        wide->window_length = 0;
        if (source_read(reader->source, offset, wide->window_bytes, length) < 0) return -1;
        wide->window = offset;
        wide->window_length = length;
    }
    memcpy(counter, wide->window_bytes + (offset - wide->window), sizeof *counter);
    return 0;
}

/* The section that has a wide counter at this address. The first record of a section is no counter: it holds the
 * section's own address. NULL: there is no such section. */
static const struct wide_section *section_with(struct wide_counters *wide, uint64_t address) {
    for (size_t i = 0; i < wide->count; i++) {
        size_t at = (wide->last + i) % wide->count;
        uint64_t distance = address - wide->sections[at].address;
        if (!distance || distance >= wide->sections[at].length) continue;
        wide->last = at;
        return distance % wide->sections[at].section.head.record_size ? NULL : &wide->sections[at];
    }
    return NULL;
}

/* Returns a pointer to `count` words of the source. If the words do not lie aligned in memory, the pointer is `space`,
 * which gets a copy of them. Returns NULL if the source does not have the words. */
static const uint64_t *words_at(const struct source *source, uint64_t offset, uint64_t *space, size_t count) {
    const void *there = source_bytes(source, offset, count * sizeof *space);
    if (there && (uintptr_t)there % sizeof *space == 0) return there;
    return source_read(source, offset, space, count * sizeof *space) == 0 ? space : NULL;
}

static int read_live(const struct source *source, uint64_t offset, struct snap_counter *counter) {
    uint64_t space[sizeof *counter / sizeof(uint64_t)];
    const uint64_t *words = words_at(source, offset, space, sizeof space / sizeof *space);
    if (!words) return -1;
    *counter = (struct snap_counter){
        __atomic_load_n(&words[0], __ATOMIC_ACQUIRE), __atomic_load_n(&words[1], __ATOMIC_ACQUIRE),
        __atomic_load_n(&words[2], __ATOMIC_ACQUIRE), __atomic_load_n(&words[3], __ATOMIC_ACQUIRE)};
    return 0;
}

/* Reads a wide counter. A running process may have made the counter's section after the list of sections was read. In
 * that case wide.missing is set, the counter is 0, and the next try to read the ledger finds the section. */
static int read_wide(struct reader *reader, const struct counters_chunk *ref, uint64_t address,
                     struct snap_counter *counter) {
    *counter = (struct snap_counter){0};
    const struct wide_section *wide = section_with(&reader->wide, address);
    if (wide) {
        uint64_t data = wide->section.data, offset = data + (address - wide->address);
        int result = reader->live ? read_live(reader->source, offset, counter)
                                  : read_window(reader, offset, data + wide->length, counter);
        return result < 0 ? reader_damaged(reader, offset, "a counter cannot be read") : 0;
    }
    if (!reader->live) return reader_damaged(reader, ref->offset, "a counter that is not there");
    reader->wide.missing = true;
    return 0;
}

enum part { ALLOCATIONS = 1, FREES = 2, ALL_PARTS = ALLOCATIONS | FREES };

static void add_parts(struct snap_counter *to, const struct snap_counter *from, enum part parts) {
    if (parts & ALLOCATIONS) {
        to->alloc_bytes += from->alloc_bytes;
        to->alloc_blocks += from->alloc_blocks;
    }
    if (parts & FREES) {
        to->free_bytes += from->free_bytes;
        to->free_blocks += from->free_blocks;
    }
}

/* Reads the counters of a chunk for `count` sites, from its site `first` on. Adds the `parts` of each counter to the
 * site's element of `to`, and to `sum`. `to` and `sum` may be NULL. */
static int counters_fetch(struct reader *reader, const struct counters_chunk *ref, size_t first, size_t count,
                          enum part parts, struct snap_counter *to, struct snap_counter *sum) {
    uint64_t space[SNAP_CHUNK_SITES], offset = ref->offset + offsetof(struct snap_chunk, words) + first * sizeof *space;
    const uint64_t *words = words_at(reader->source, offset, space, count);
    if (!words) return reader_damaged(reader, ref->offset, "counters cannot be read");
    for (size_t i = 0; i < count; i++) {
        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
        if (!word) continue;
        struct snap_counter counter = snap_narrow_counter(word);
        if (word & SNAP_WIDE_BIT && read_wide(reader, ref, word ^ SNAP_WIDE_BIT, &counter) < 0) return -1;
        if (to) add_parts(&to[i], &counter, parts);
        if (sum) add_parts(sum, &counter, parts);
    }
    return 0;
}

static struct snap_counter *sites_of(struct counters_sites *tally, const struct counters_chunk *chunk) {
    return chunk->thread == SNAP_THREAD_MAPPINGS + 1 ? tally->mapped : tally->host;
}

/* Adds the allocations or the frees (`part`) of all threads to the tally, for `count` sites from `first` on. */
static int read_part(const struct group *group, struct counters_sites *tally, enum part part, size_t first,
                     size_t count) {
    for (size_t i = 0; i < group->count; i++) {
        struct snap_counter *to = sites_of(tally, &group->refs[i]) + first;
        if (counters_fetch(group->reader, &group->refs[i], first, count, part, to, NULL) < 0) return -1;
    }
    return 0;
}

/* Reads each counter once. */
static int read_once(const struct group *group) {
    memset(group->taken, 0, sizeof *group->taken);
    for (size_t i = 0; i < group->count; i++) {
        const struct counters_chunk *chunk = &group->refs[i];
        struct snap_counter *to = sites_of(group->taken, chunk), *sum = group->sums ? &group->sums[i] : NULL;
        if (sum) *sum = (struct snap_counter){0};
        if (counters_fetch(group->reader, chunk, 0, SNAP_CHUNK_SITES, ALL_PARTS, to, sum) < 0) return -1;
    }
    return 0;
}

/* --- settling by marks --- */

bool counters_chunk_tells(const struct counters_chunk *chunk) { return chunk->marked && chunk->index; }

int counters_mark(const struct reader *reader, const struct counters_chunk *chunk, uint64_t *mark) {
    uint64_t offset = chunk->offset + offsetof(struct snap_chunk, mark);
    return source_read(reader->source, offset, mark, sizeof *mark) < 0 ? reader_truncated(reader, offset) : 0;
}

/* Marks only grow, so an unchanged sum means that no mark has changed. */
static int marks_sum(const struct group *group, uint64_t *sum) {
    *sum = 0;
    for (size_t i = 0; i < group->count; i++) {
        uint64_t mark;
        if (counters_mark(group->reader, &group->refs[i], &mark) < 0) return -1;
        *sum += mark;
    }
    return 0;
}

static bool group_has_marks(const struct group *group) {
    for (size_t i = 0; i < group->count; i++)
        if (!counters_chunk_tells(&group->refs[i])) return false;
    return true;
}

/* Returns 1 if the counters did not change while they were read, 0 if they may have changed, or -1 if they cannot be
 * read.
 *
 * Why this is exact: thread B can free a block of thread A only after A has written the mark of the allocation. So if
 * the free is seen and the allocation is not, A's mark has changed. */
static int settle_by_marks(struct group *group) {
    uint64_t before, after;
    if (marks_sum(group, &before) < 0 || read_once(group) < 0 || marks_sum(group, &after) < 0) return -1;
    return before == after;
}

/* --- settling by frees --- */

static bool same_frees(const struct snap_counter *a, const struct snap_counter *b) {
    return a->free_bytes == b->free_bytes && a->free_blocks == b->free_blocks;
}

/* Reads the frees of some sites, then their allocations, then their frees again. The result has the allocations and the
 * second frees. A site is marked as inexact if its frees changed between the two readings. */
static int settle_once(struct group *group, size_t first, size_t count) {
    struct counters_sites before, after;
    memset(&before.host[first], 0, count * sizeof *before.host);
    memset(&before.mapped[first], 0, count * sizeof *before.mapped);
    memset(&after.host[first], 0, count * sizeof *after.host);
    memset(&after.mapped[first], 0, count * sizeof *after.mapped);
    if (read_part(group, &before, FREES, first, count) < 0 || read_part(group, &after, ALLOCATIONS, first, count) < 0 ||
        read_part(group, &after, FREES, first, count) < 0)
        return -1;
    for (size_t i = first; i < first + count; i++) {
        group->taken->host[i] = after.host[i];
        group->taken->mapped[i] = after.mapped[i];
        group->taken->inexact[i] =
            !same_frees(&before.host[i], &after.host[i]) || !same_frees(&before.mapped[i], &after.mapped[i]);
    }
    return 0;
}

/* Reads all sites together. If some sites changed meanwhile, reads each of these sites again by itself, because
 * counters are more likely to hold still during a shorter reading. A site is read SETTLE_TRIES times at most. */
static int settle_by_frees(struct group *group) {
    if (settle_once(group, 0, SNAP_CHUNK_SITES) < 0) return -1;
    for (size_t site = 0; site < SNAP_CHUNK_SITES; site++)
        for (int try = 1; group->taken->inexact[site] && try < SETTLE_TRIES; try++)
            if (settle_once(group, site, 1) < 0) return -1;
    return 0;
}

static int sums_read(const struct group *group) {
    for (size_t i = 0; group->sums && i < group->count; i++)
        if (counters_sum_chunk(group->reader, &group->refs[i], &group->sums[i]) < 0) return -1;
    return 0;
}

int counters_settle(struct reader *reader, const struct counters_chunk *chunks, size_t count,
                    struct counters_sites *sites, struct snap_counter *sums) {
    struct group group = {.reader = reader, .refs = chunks, .count = count, .taken = sites, .sums = sums};
    int settled = 0, tries = group_has_marks(&group) ? MARK_TRIES : 0;
    if (!reader->live) return read_once(&group);
    while (settled == 0 && tries-- > 0) settled = settle_by_marks(&group);
    if (settled) return settled < 0 ? -1 : 0;
    return settle_by_frees(&group) < 0 ? -1 : sums_read(&group);
}

int counters_sum_chunk(struct reader *reader, const struct counters_chunk *chunk, struct snap_counter *sum) {
    *sum = (struct snap_counter){0};
    return counters_fetch(reader, chunk, 0, SNAP_CHUNK_SITES, ALL_PARTS, NULL, sum);
}

static int counters_emit(struct group *group, uint32_t site, const struct snap_counter *counter, uint8_t class,
                         bool inexact) {
    struct total total = {.stack = site, /* the id of a site; counters_name_sites replaces it by the stack */
                          .class = class,
                          .alloc_bytes = counter->alloc_bytes,
                          .alloc_blocks = counter->alloc_blocks,
                          .free_bytes = counter->free_bytes,
                          .free_blocks = counter->free_blocks};
    if (!(counter->alloc_blocks | counter->free_blocks | counter->alloc_bytes | counter->free_bytes)) return 0;
    if (site == SNAP_SITE_INHERITED)
        total.flags |= TOTAL_INHERITED;
    else if (inexact || counter->free_bytes > counter->alloc_bytes)
        total.flags |= TOTAL_INEXACT;
    if (site == SNAP_SITE_UNKNOWN) total.flags |= TOTAL_UNKNOWN_SITE;
    if (site == SNAP_SITE_NOT_SAMPLED && group->reader->image->header.sample_bytes) total.flags |= TOTAL_NOT_SAMPLED;
    return reader_add_total(group->reader, &total);
}

static int group_emit(struct group *group) {
    uint32_t first = group->refs[0].index * SNAP_CHUNK_SITES;
    for (uint32_t i = 0; i < SNAP_CHUNK_SITES; i++)
        if (counters_emit(group, first + i, &group->taken->host[i], SNAP_HOST, group->taken->inexact[i]) < 0 ||
            counters_emit(group, first + i, &group->taken->mapped[i], SNAP_MAPPED, group->taken->inexact[i]) < 0)
            return -1;
    return 0;
}

static int slots_add(struct reader *reader, const struct counters_chunk *refs, size_t count,
                     const struct snap_counter *sums) {
    for (size_t i = 0; i < count; i++) {
        size_t slot = refs[i].thread - 1, old = reader->slot_capacity;
        if (slot > UINT16_MAX) continue; /* no thread has such a slot */
        if (!list_grow(&reader->slots, sizeof *reader->slots, slot, 1, &reader->slot_capacity))
            return reader_memory(reader);
        memset(reader->slots + old, 0, (reader->slot_capacity - old) * sizeof *reader->slots);
        add_parts(&reader->slots[slot], &sums[i], ALL_PARTS);
    }
    return 0;
}

static int tally_groups(struct reader *reader, const struct counters_chunk *refs, size_t count,
                        struct snap_counter *sums) {
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && refs[next].index == refs[first].index;) next++;
        struct counters_sites taken;
        struct group group = {.reader = reader, .refs = refs + first, .count = next - first, .taken = &taken};
        if (counters_settle(reader, group.refs, group.count, &taken, sums) < 0 || group_emit(&group) < 0 ||
            slots_add(reader, group.refs, group.count, sums) < 0)
            return -1;
    }
    return 0;
}

static int tally_all(struct reader *reader, const struct counters_chunk *refs, size_t count) {
    struct snap_counter *sums = malloc((count + 1) * sizeof *sums);
    int result = sums ? tally_groups(reader, refs, count, sums) : reader_memory(reader);
    free(sums);
    return result;
}

/* How many sites the sorted chunks have. */
static size_t sites_count(const struct counters_chunk *refs, size_t count) {
    size_t indices = 0;
    for (size_t i = 0; i < count; i++) indices += i == 0 || refs[i].index != refs[i - 1].index;
    return indices * SNAP_CHUNK_SITES;
}

int counters_tally(struct reader *reader) {
    struct counters_chunk *refs;
    size_t count;
    int result = chunks_collect(reader, &refs, &count);
    if (result == 0) result = reader_reserve_totals(reader, sites_count(refs, count));
    if (result == 0) result = tally_all(reader, refs, count);
    free(refs);
    return result;
}

/* Returns 1 + the index of the total of this site and class. If there is no such total, returns 1 + the index of the
 * site's total of the other class, or 0 if the site has no total. */
static uint32_t find_total(const struct reader *reader, uint32_t site, uint8_t class) {
    const struct image *image = reader->image;
    size_t low = 0, high = image->total_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reader->site_of[middle] < site)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == image->total_count || reader->site_of[low] != site) return 0;
    if (image->totals[low].class != class && low + 1 < image->total_count && reader->site_of[low + 1] == site) low++;
    return (uint32_t)(low + 1);
}

void counters_link_blocks(struct reader *reader) {
    struct image *image = reader->image;
    for (size_t i = 0; i < image->large_count; i++)
        image->large[i].site = find_total(reader, image->large[i].site, SNAP_HOST);
    for (size_t i = 0; i < image->mapping_count; i++)
        image->mappings[i].site = find_total(reader, image->mappings[i].site, SNAP_MAPPED);
}

/* Copies the site of each total into reader->site_of, which is then in ascending order. Gives each total the tag, stack
 * and module of its site, and drops totals of free sites. A process that was killed while it closed a site may leave
 * such a total; none of its memory was live. */
int counters_name_sites(struct reader *reader) {
    struct image *image = reader->image;
    struct snap_site *sites;
    size_t count, kept = 0;
    if (reader_table(reader, SNAP_SITE, sizeof *sites, (void **)&sites, &count) < 0) return -1;
    reader->site_of = malloc((image->total_count + 1) * sizeof *reader->site_of);
    if (!reader->site_of) {
        free(sites);
        return reader_memory(reader);
    }
    for (size_t i = 0; i < image->total_count; i++) {
        struct total *total = &image->totals[kept];
        if (kept != i) *total = image->totals[i];
        uint32_t id = total->stack;
        struct snap_site site = id < count ? sites[id] : (struct snap_site){0};
        if (site.word == SNAP_SITE_FREE) continue;
        if (id >= count) total->flags |= TOTAL_UNKNOWN_SITE;
        total->tag = snap_site_tag(site);
        total->stack = snap_site_stack(site);
        total->module = snap_site_module(site);
        bool sampled = image->header.sample_bytes && total->class == SNAP_HOST;
        if (sampled && total->tag && !total->stack) total->flags |= TOTAL_NOT_SAMPLED;
        reader->site_of[kept++] = id;
    }
    image->total_count = kept;
    free(sites);
    return 0;
}

static bool counter_reaches(const struct snap_counter *a, const struct snap_counter *b) {
    return a->alloc_bytes >= b->alloc_bytes && a->alloc_blocks >= b->alloc_blocks && a->free_bytes >= b->free_bytes &&
           a->free_blocks >= b->free_blocks;
}

/* Finds stale slots. `before` of a slot is what the slot had counted when its present thread began. A slot is stale if
 * `before` is more than the counters that were read. This can happen if the thread began after the counters were read,
 * and before the table of threads was read. Sets stale[slot], and sets the counters of stale slots to 0. Returns
 * whether there are stale slots. */
static bool slots_find_stale(const struct reader *reader, size_t count, bool *stale) {
    bool any = false;
    for (size_t slot = 0; slot < count; slot++) {
        const struct snap_thread *thread = &reader->image->threads[slot];
        struct snap_counter sum = thread->total;
        add_parts(&sum, &reader->slots[slot], ALL_PARTS);
        if (counter_reaches(&sum, &thread->before)) continue;
        reader->slots[slot] = (struct snap_counter){0};
        any = stale[slot] = true;
    }
    return any;
}

/* Reads the counters of the stale slots again. */
static int slots_read(struct reader *reader, size_t slot_count, const bool *stale) {
    struct counters_chunk *refs = NULL;
    size_t count = 0;
    int result = chunks_collect(reader, &refs, &count);
    for (size_t i = 0; result == 0 && i < count; i++) {
        struct snap_counter sum;
        size_t slot = refs[i].thread - 1;
        if (slot >= slot_count || !stale[slot]) continue;
        result = counters_sum_chunk(reader, &refs[i], &sum);
        if (result == 0) add_parts(&reader->slots[slot], &sum, ALL_PARTS);
    }
    free(refs);
    return result;
}

static int slots_renew(struct reader *reader) {
    size_t threads = reader->image->thread_count;
    size_t count = threads < reader->slot_capacity ? threads : reader->slot_capacity;
    bool *stale = calloc(count + 1, sizeof *stale);
    int result = stale ? 0 : reader_memory(reader);
    if (result == 0 && slots_find_stale(reader, count, stale)) result = slots_read(reader, count, stale);
    free(stale);
    return result;
}

/* Adds the counters of each slot to the `total` of its thread, because in a ledger `total` does not include them
 * (struct snap_thread). */
int counters_sum_threads(struct reader *reader) {
    struct image *image = reader->image;
    if (reader->live && slots_renew(reader) < 0) return -1;
    for (size_t slot = 0; slot < image->thread_count && slot < reader->slot_capacity; slot++)
        add_parts(&image->threads[slot].total, &reader->slots[slot], ALL_PARTS);
    return 0;
}
