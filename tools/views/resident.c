/* resident.c — see resident.h. The use of a region is found in three steps: from the ledger's list of address ranges,
 * from the region's path, and from the layout of glibc's heaps. Retained memory is freed memory that the allocator
 * keeps. It is estimated as the resident bytes of heaps minus live blocks and the allocator's overhead. Except in a
 * forked child, the estimate is never more than was freed. */
#include "tools/views/resident.h"
#include "tools/views/overhead.h"
#include "tools/subject/ranges.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGNMENT = 64 << 20 }; /* HEAP_MAX_SIZE of glibc on x86-64 */

struct split {
    const struct image *image;
    struct resident *resident;
    struct ranges ranges;
    uint64_t *large;   /* addresses of large blocks, sorted */
    uint64_t heap;     /* resident bytes of the allocator's heaps */
    uint64_t overhead; /* estimate: the allocator's overhead for live blocks */
    uint64_t stowed;   /* resident memory of stowed blocks, which a file of memstow backs */
    bool bss_here;     /* if set, a region that begins at bss_at is the .bss of a module */
    uint64_t bss_at;
    uint64_t arena_at; /* a region that begins here continues a heap of glibc for threads; 0: none does */
};

static uint64_t resident_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static int by_value(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static bool holds_large_block(const struct split *split, const struct snap_region *region) {
    size_t low = 0, high = split->image->large_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (split->large[middle] < region->start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < split->image->large_count && split->large[low] < region->end;
}

static bool is_arena(const struct split *split, const struct snap_region *region) {
    return region->start % ARENA_ALIGNMENT == 0 || region->start == split->arena_at;
}

/* Anonymous memory that no mapping of the program explains is either a heap of the allocator or a mapping of the C
 * library. Returns whether this region counts as a heap. With glibc's allocator, it does if an arena may begin at its
 * start, or if a large block lies in it. With another allocator, every such region counts, because the heaps have
 * another layout. In a forked child every such region counts, too, because the child does not know its parent's blocks
 * one by one. */
static bool is_heap(const struct split *split, const struct snap_region *region) {
    return is_arena(split, region) || holds_large_block(split, region) ||
           (split->image->header.flags & SNAP_FORK_CHILD) || !overhead_is_glibc(split->image);
}

static void add_file(struct split *split, uint32_t path, uint64_t bytes) {
    struct resident *resident = split->resident;
    resident->file += bytes;
    if (bytes)
        resident->files[resident->file_count++] = (struct resident_file){image_string(split->image, path), bytes};
}

/* The bytes of a piece of a region. resident: in memory. anonymous: the part of `resident` that no file backs. */
struct piece {
    uint64_t resident, anonymous;
};

/* Whether the region maps a file to which memory was stowed. The path of such a file ends with " (deleted)". If the
 * file was made without a name (O_TMPFILE), the kernel shows a name that begins with '#'. Otherwise the name begins
 * with SNAP_STOW_FILE. */
static bool is_stowed(const struct split *split, const struct snap_region *region) {
    static const char gone[] = " (deleted)";
    const char *path = image_string(split->image, region->path), *name = strrchr(path, '/');
    size_t length = strlen(path);
    if (*path != '/' || region->flags & SNAP_REGION_SHARED || length < sizeof gone) return false;
    if (strcmp(path + length - (sizeof gone - 1), gone) != 0) return false;
    return name[1] == '#' || strncmp(name + 1, SNAP_STOW_FILE, strlen(SNAP_STOW_FILE)) == 0;
}

/* Adds a piece of a region. The list of address ranges does not have the piece's use, so the use is found from the
 * region's path and place. In a private mapping of a module, pages without a file are .data that the loader or the
 * program wrote to. The anonymous region right behind the mapping is the module's .bss. */
static void add_region(struct split *split, const struct snap_region *region, struct piece piece) {
    const char *path = image_string(split->image, region->path);
    if (strcmp(path, "[heap]") == 0) {
        split->heap += piece.resident;
    } else if (strncmp(path, "[stack", 6) == 0) {
        split->resident->stack += piece.resident;
    } else if (is_stowed(split, region)) {
        split->stowed += piece.resident;
    } else if (*path == '/') {
        uint64_t data = region->flags & SNAP_REGION_SHARED ? 0 : resident_least(piece.anonymous, piece.resident);
        split->resident->program_data += data;
        add_file(split, region->path, piece.resident - data);
    } else if (!*path && split->bss_here && split->bss_at == region->start && !holds_large_block(split, region)) {
        split->resident->program_data += piece.resident;
    } else if (!*path && is_heap(split, region)) {
        split->heap += piece.resident;
    } /* other memory belongs to the rest of the RSS */
}

static void add_piece(struct split *split, const struct snap_region *region, enum use use,
                      const struct use_range *range, struct piece piece) {
    const char *path = image_string(split->image, region->path);
    if (use == USE_OWN)
        split->resident->own += piece.resident;
    else if (use == USE_BACKUP)
        split->resident->of_devices += piece.resident;
    else if (use == USE_BUFFER)
        split->resident->buffers += piece.resident;
    else if (use == USE_MAPPING && range->mapping->kind == SNAP_MAP_FILE && *path == '/')
        add_file(split, region->path, piece.resident);
    else if (use == USE_MAPPING && is_stowed(split, region))
        split->resident->stowed += piece.resident;
    else if (use == USE_MAPPING)
        split->resident->anonymous += piece.resident;
    else if (use == USE_STACK && !*path)
        split->resident->stack += piece.resident;
    else
        add_region(split, region, piece);
}

/* The bytes of a region from `start` to `end`. The process that measured the regions cut them wherever it knew of a
 * change of use. If it did not know of a change inside a region, each piece gets a share of the region's bytes by its
 * size. */
static struct piece piece_of(const struct snap_region *region, uint64_t start, uint64_t end) {
    if (start == region->start && end == region->end) return (struct piece){region->resident, region->anonymous};
    double share = (double)(end - start) / (double)(region->end - region->start);
    return (struct piece){(uint64_t)(share * (double)region->resident), (uint64_t)(share * (double)region->anonymous)};
}

static void split_region(struct split *split, const struct snap_region *region) {
    for (uint64_t start = region->start, end; start < region->end; start = end) {
        const struct use_range *range;
        end = ranges_next_edge(&split->ranges, start, region->end);
        enum use use = ranges_use(&split->ranges, start, &range);
        add_piece(split, region, use, range, piece_of(region, start, end));
    }
    const char *path = image_string(split->image, region->path);
    bool file = *path == '/' && !is_stowed(split, region);
    split->arena_at = !*path && is_arena(split, region) ? region->end : 0;
    split->bss_here = file && !(region->flags & SNAP_REGION_SHARED);
    split->bss_at = region->end;
}

static int by_path(const void *left, const void *right) {
    return strcmp(((const struct resident_file *)left)->path, ((const struct resident_file *)right)->path);
}

static int resident_by_bytes(const void *left, const void *right) {
    const struct resident_file *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : by_path(a, b);
}

static void merge_files(struct resident *resident) {
    size_t used = 0;
    qsort(resident->files, resident->file_count, sizeof *resident->files, by_path);
    for (size_t i = 0; i < resident->file_count; i++) {
        if (used && strcmp(resident->files[used - 1].path, resident->files[i].path) == 0)
            resident->files[used - 1].bytes += resident->files[i].bytes;
        else
            resident->files[used++] = resident->files[i];
    }
    resident->file_count = used;
    qsort(resident->files, used, sizeof *resident->files, resident_by_bytes);
}

/* The bytes that were freed: the limit for retained memory. A forked child has no limit, because its heap also has
 * memory that its parent freed. */
static uint64_t resident_freed(const struct image *image) {
    if (image->header.flags & SNAP_FORK_CHILD) return UINT64_MAX;
    const struct sum *host = &image->host;
    return host->alloc_bytes > host->live_bytes ? host->alloc_bytes - host->live_bytes : 0;
}

static uint64_t bytes_take(uint64_t *left, uint64_t wanted) {
    uint64_t taken = resident_least(*left, wanted);
    *left -= taken;
    return taken;
}

/* Splits the resident bytes of heaps into live blocks, headers, overhead and retained memory. Large blocks count by
 * their resident pages, small blocks by their size. */
static void split_heap(struct split *split) {
    const struct image *image = split->image;
    struct resident *resident = split->resident;
    uint64_t large = 0, large_resident = 0, left = split->heap;
    for (size_t i = 0; i < image->large_count; i++) {
        large += image->large[i].size;
        large_resident += resident_least(image->large[i].resident, image->large[i].size);
    }
    large_resident -= resident_least(large_resident, split->stowed);
    resident->stowed += split->stowed;
    uint64_t small = image->host.live_bytes > large ? image->host.live_bytes - large : 0;
    small += image->inherited.live_bytes;
    resident->live = bytes_take(&left, large_resident + small);
    resident->headers = bytes_take(&left, image->host.live_blocks * image->header.header_overhead);
    resident->own += resident->headers;
    resident->overhead = bytes_take(&left, split->overhead);
    resident->retained = bytes_take(&left, resident_freed(image));
    /* The remaining bytes of glibc's heaps are overhead. For other allocators this is not certain, so they stay in
     * `rest`. */
    if (overhead_is_glibc(image)) resident->overhead += left;
}

static void resident_advise(const struct image *image, struct resident *resident) {
    if (resident->retained <= resident->rss / 4 || resident->retained <= 16 << 20) return;
    if (overhead_is_glibc(image))
        snprintf(resident->advice, sizeof resident->advice,
                 "glibc keeps %s of freed memory: this is not a leak. malloc_trim(0), or fewer arenas "
                 "(MALLOC_ARENA_MAX=2), may return it.",
                 text_size(resident->retained).s);
    else
        snprintf(resident->advice, sizeof resident->advice,
                 "the allocator keeps %s of freed memory: this is not a leak.", text_size(resident->retained).s);
}

static int resident_prepare(struct split *split) {
    const struct image *image = split->image;
    size_t pieces = image->region_count;
    if (ranges_collect(&split->ranges, image) < 0 || overhead_estimate(image, &split->overhead) < 0) return -1;
    /* Edges of address ranges cut regions into pieces, and a piece adds at most one file. An edge cuts at most one
     * region, so there are at most as many pieces as regions and edges together. */
    split->resident->files = calloc(pieces + split->ranges.edge_count + 1, sizeof *split->resident->files);
    split->large = calloc(image->large_count + 1, sizeof *split->large);
    if (!split->resident->files || !split->large) return -1;
    for (size_t i = 0; i < image->large_count; i++) split->large[i] = image->large[i].address;
    qsort(split->large, image->large_count, sizeof *split->large, by_value);
    return 0;
}

/* Whether the regions are sorted and do not overlap. In a damaged file they may overlap. Then one edge of an address
 * range could cut several regions, and there could be more pieces than `files` has entries (resident_prepare). */
static bool in_order(const struct image *image) {
    for (size_t i = 0; i < image->region_count; i++)
        if (image->regions[i].end <= image->regions[i].start ||
            (i && image->regions[i].start < image->regions[i - 1].end))
            return false;
    return true;
}

int resident_split(struct resident *resident, const struct image *image) {
    memset(resident, 0, sizeof *resident);
    if (!(image->header.flags & SNAP_RESIDENCY) || image->region_count == 0 || !in_order(image)) return 0;
    struct split split = {.image = image, .resident = resident};
    int result = resident_prepare(&split);
    for (size_t i = 0; result == 0 && i < image->region_count; i++) split_region(&split, &image->regions[i]);
    if (result == 0) {
        merge_files(resident);
        split_heap(&split);
        resident->rss = image->rss;
        uint64_t known = resident->live + resident->overhead + resident->retained + resident->anonymous +
                         resident->program_data + resident->file + resident->stowed + resident->of_devices +
                         resident->buffers + resident->stack + resident->own;
        resident->rest = resident->rss > known ? resident->rss - known : 0;
        resident->measured = true;
        resident_advise(image, resident);
    }
    free(split.large);
    ranges_clear(&split.ranges);
    return result;
}

void resident_clear(struct resident *resident) {
    free(resident->files);
    memset(resident, 0, sizeof *resident);
}
