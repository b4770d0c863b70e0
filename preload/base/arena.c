/* arena.c — see arena.h. A chunk is given out from its beginning to its end, and its addresses are never given out
 * again. `position` says both which chunk is in use and what is left of it. It changes by compare-and-swap: if a signal
 * handler or another thread allocates in between, the compare-and-swap fails and is repeated. */
#include "preload/base/arena.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/base/seal.h"

enum { CHUNK = 256 * 1024, LINE = 64, RANGES = 4096, LARGE_PAGE = 2 << 20 };

static uintptr_t position; /* the next free byte; its chunk ends at the next multiple of CHUNK */
static struct snap_range ranges[RANGES];
static uint32_t range_count;

void (*arena_grown)(void);

static void note_range(uintptr_t start, size_t length) {
    uint32_t i = __atomic_fetch_add(&range_count, 1, __ATOMIC_RELAXED);
    if (i >= RANGES) return;
    ranges[i].length = length;
    __atomic_store_n(&ranges[i].start, start, __ATOMIC_RELEASE);
}

static void *from_system(size_t length) {
    void *memory = os_map_apart(length, OS_PAGE);
    if (memory) note_range((uintptr_t)memory, length);
    return memory;
}

/* Makes a mapping that begins at a multiple of `align`. 0: the system refuses. */
static uintptr_t map_aligned(size_t length, size_t align) {
    void *apart = os_map_apart(length, align);
    char *memory = apart ? NULL : os_map(length + align);
    if (!memory) return (uintptr_t)apart;
    char *start = (char *)os_round_up((uintptr_t)memory, align), *end = start + length;
    if (start > memory) os_unmap(memory, (size_t)(start - memory));
    os_unmap(end, (size_t)(memory + length + align - end));
    return (uintptr_t)start;
}

void *arena_take_table(size_t length) {
    if (length < LARGE_PAGE) return arena_take(length);
    length = os_round_up(length, OS_PAGE); /* rounding up to large pages could waste most of the last one */
    uintptr_t start = map_aligned(length, LARGE_PAGE);
    if (!start) return NULL;
    if (!seal_is_set()) os_call(SYS_madvise, start, length, MADV_HUGEPAGE);
    note_range(start, length);
    return (void *)start;
}

void arena_drop(void *memory, size_t length) {
    uintptr_t start = os_round_up((uintptr_t)memory, OS_PAGE), end = ((uintptr_t)memory + length) / OS_PAGE * OS_PAGE;
    if (end > start && !seal_is_set()) os_call(SYS_madvise, start, end - start, MADV_DONTNEED);
}

/* A chunk is aligned to its size, so its end follows from any address in the chunk. */
static uintptr_t new_chunk(void) { return map_aligned(CHUNK, CHUNK); }

static void *take_from_new_chunk(uintptr_t seen, size_t length) {
    uintptr_t chunk = new_chunk();
    if (!chunk) return NULL;
    if (!__atomic_compare_exchange_n(&position, &seen, chunk + length, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        os_unmap((void *)chunk, CHUNK);
        return NULL;
    }
    note_range(chunk, CHUNK);
    return (void *)chunk;
}

void *arena_take(size_t length) {
    if (length >= ARENA_OWN) return from_system(os_round_up(length, OS_PAGE));
    length = os_round_up(length, LINE);
    for (int attempt = 0; attempt < 64; attempt++) {
        uintptr_t seen = __atomic_load_n(&position, __ATOMIC_RELAXED);
        uintptr_t end = os_round_up(seen, CHUNK);
        if (seen && seen != end && seen + length < end) {
            if (__atomic_compare_exchange_n(&position, &seen, seen + length, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return (void *)seen;
            continue;
        }
        void *memory = take_from_new_chunk(seen, length);
        if (memory || seen == __atomic_load_n(&position, __ATOMIC_RELAXED)) return memory;
    }
    return NULL;
}

/* Extends `range` by `next` if the two are adjacent, which they often are, because the system places mappings side by
 * side. False: they are not adjacent. */
static bool arena_joined(struct snap_range *range, const struct snap_range *next) {
    if (next->start != range->start + range->length && next->start + next->length != range->start) return false;
    if (next->start < range->start) range->start = next->start;
    range->length += next->length;
    return true;
}

uint32_t arena_ranges(struct snap_range out[ARENA_RANGES]) {
    uint32_t count = __atomic_load_n(&range_count, __ATOMIC_RELAXED), n = 0;
    for (uint32_t i = 0; i < count && i < RANGES; i++) {
        struct snap_range range = {__atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE), ranges[i].length};
        uint32_t k = 0;
        while (k < n && !arena_joined(&out[k], &range)) k++;
        if (k == n && n < ARENA_RANGES && range.start) out[n++] = range;
    }
    return n;
}
