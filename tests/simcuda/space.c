/* space.c — device addresses: one large range without access (the host cannot read it), its reserved parts, and the
 * blocks that are mapped in it, sorted by address. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SPACE (512 * GB)
#define LOW_SPACE (64 * MB)

static char *base, *low_base; /* low_base: NULL until it is needed */
static struct extents unused, low_unused;
static struct extent *reserved; /* by the program */
static struct block **blocks;
static size_t count, room;
static uint64_t next_id = 1, faults;

CUresult space_begin(void) {
    base = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return CUDA_ERROR_OPERATING_SYSTEM;
    uint64_t start = round_up((uint64_t)(uintptr_t)base, GRANULE);
    extents_give(&unused, start, SPACE - GRANULE);
    return CUDA_SUCCESS;
}

static bool is_low(uint64_t address) { return low_base && address - (uint64_t)(uintptr_t)low_base < LOW_SPACE; }

bool space_inside(uint64_t address) { return base && (address - (uint64_t)(uintptr_t)base < SPACE || is_low(address)); }

static bool low_begin(void) {
    for (uintptr_t at = GB; !low_base && at < 4 * GB; at += GB / 4) {
        void *found = mmap((void *)at, LOW_SPACE, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (found == (void *)at) low_base = found;
    }
    if (low_base) extents_give(&low_unused, (uint64_t)(uintptr_t)low_base, LOW_SPACE);
    return low_base != NULL;
}

CUresult space_reserve_low(size_t size, CUdeviceptr *out) {
    if (!low_base && !low_begin()) return CUDA_ERROR_OUT_OF_MEMORY;
    return extents_take(&low_unused, size, GRANULE, out) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult space_reserve(size_t size, size_t align, CUdeviceptr hint, CUdeviceptr *out) {
    if (hint && hint % GRANULE == 0 && extents_take_at(&unused, hint, size)) {
        *out = hint;
        return CUDA_SUCCESS;
    }
    return extents_take(&unused, size, align > GRANULE ? align : GRANULE, out) ? CUDA_SUCCESS
                                                                               : CUDA_ERROR_OUT_OF_MEMORY;
}

void space_release(CUdeviceptr at, size_t size) { extents_give(is_low(at) ? &low_unused : &unused, at, size); }

void space_reserved_add(CUdeviceptr at, size_t size) {
    struct extent *extent = malloc(sizeof *extent);
    *extent = (struct extent){reserved, at, size};
    reserved = extent;
}

bool space_is_reserved(CUdeviceptr at, size_t size, bool whole) {
    for (struct extent *e = reserved; e; e = e->next)
        if (whole ? e->start == at && e->size == size : at >= e->start && at + size <= e->start + e->size) return true;
    return false;
}

bool space_reservation(CUdeviceptr at, CUdeviceptr *start, size_t *size) {
    for (struct extent *e = reserved; e; e = e->next)
        if (at >= e->start && at < e->start + e->size) {
            *start = e->start;
            *size = e->size;
            return true;
        }
    return false;
}

void space_reserved_remove(CUdeviceptr at) {
    for (struct extent **link = &reserved; *link; link = &(*link)->next)
        if ((*link)->start == at) {
            struct extent *extent = *link;
            *link = extent->next;
            free(extent);
            return;
        }
}

uint64_t space_reserved_bytes(void) {
    uint64_t sum = 0;
    for (struct extent *e = reserved; e; e = e->next) sum += e->size;
    return sum;
}

/* The index of the first block that ends behind the address. */
static size_t search(CUdeviceptr at) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle]->at + blocks[middle]->size <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct block *space_add(struct block model) {
    struct block *block = malloc(sizeof *block);
    if (count == room) {
        room = room ? 2 * room : 64;
        blocks = realloc(blocks, room * sizeof *blocks);
    }
    if (!block || !blocks) abort();
    *block = model;
    block->id = next_id++;
    size_t i = search(model.at);
    memmove(blocks + i + 1, blocks + i, (count++ - i) * sizeof *blocks);
    blocks[i] = block;
    return block;
}

struct block *space_next(CUdeviceptr at) {
    size_t i = search(at);
    return i < count ? blocks[i] : NULL;
}

struct block *space_find(CUdeviceptr at) {
    struct block *block = space_next(at);
    return block && block->at <= at ? block : NULL;
}

void space_remove(struct block *block) {
    size_t i = search(block->at);
    while (i < count && blocks[i] != block) i++;
    if (i == count) return;
    memmove(blocks + i, blocks + i + 1, (--count - i) * sizeof *blocks);
    free(block);
}

size_t space_count(void) { return count; }

/* Managed memory can be seen by the host; everything else cannot. */
void space_protect(CUdeviceptr at, size_t size, int fd, uint64_t offset, bool visible) {
    void *where = (void *)(uintptr_t)at;
    if (visible)
        mmap(where, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    else
        mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void space_fault(void) { faults++; }
uint64_t space_faults(void) { return faults; }
