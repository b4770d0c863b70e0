/* heaps.c — see heaps.h. One word counts a heap's blocks and holds its two state bits. So exactly one thread destroys a
 * retired heap without blocks: the thread that changes this word to DESTROYED. */
#include "preload/blocks/heaps.h"

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/base/next.h"
#include "preload/shared/os.h"
#include "preload/count/owner.h"
#include "preload/count/tags.h"
#include "preload/base/words.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

#ifdef MEMSTOW_MIMALLOC
#include <mimalloc.h>

enum { ARENA_KIB = 64 * 1024 }; /* the address space that mimalloc reserves first; later it reserves more */

/* `state` is the number of blocks in the heap, times BLOCK, plus the bits RETIRED and DESTROYED. */
enum { RETIRED = 1, DESTROYED = 2, BLOCK = 4 };
struct heap {
    mi_heap_t *heap;
    uint64_t state;
    uint64_t tidied; /* the value of `state` when the heap was last tidied */
    uint32_t maker;  /* the id of the thread that made the heap */
};

/* True in a child that was forked after heaps_begin. A thread of the parent may have been inside mimalloc at the fork.
 * Then mimalloc's lock is held for ever in the child. So the child does not call mimalloc: new blocks come from `base`,
 * and the memory of inherited blocks is not used again when they are freed. */
static bool left_behind;

static struct next_allocator base; /* the allocator that was there before heaps_begin */
static struct words by_owner;      /* from an owner's id + 2 to the number of its heap (heap_at) */
static struct words by_heap;       /* from the address of a mi_heap_t to that number */
enum { SLAB = 64, SLABS = OWNERS_LIMIT / SLAB };
static struct heap *slabs[SLABS];
static uint32_t count;
static struct lock making;

static struct heap *heap_at(uint32_t number) { return &slabs[number / SLAB][number % SLAB]; }

static struct heap *find_heap(const struct words *by, uint64_t word) {
    uint32_t number = words_find(by, word);
    return number == WORDS_NONE ? NULL : heap_at(number);
}

static struct heap *heaps_make(uint32_t owner) {
    struct heap *heap = find_heap(&by_owner, owner + 2);
    if (heap || count == OWNERS_LIMIT) return heap;
    if (!slabs[count / SLAB]) slabs[count / SLAB] = arena_take(SLAB * sizeof *heap);
    mi_heap_t *made = slabs[count / SLAB] ? mi_heap_new() : NULL;
    if (!made) return NULL;
    uint32_t number = count;
    heap = heap_at(number);
    *heap = (struct heap){.heap = made, .maker = os_tid()};
    __atomic_store_n(&count, number + 1, __ATOMIC_RELEASE);
    return words_put(&by_heap, (uintptr_t)made, number) && words_put(&by_owner, owner + 2, number) ? heap : NULL;
}

/* The owner's heap, which is made on the first call. NULL: there is none, for example because the owner is retired. */
static struct heap *heaps_of(uint32_t owner) {
    if (!owner || left_behind || owner_is_retired(owner)) return NULL;
    struct heap *heap = find_heap(&by_owner, owner + 2);
    if (heap || !base.malloc || seal_is_set() || !lock_wait(&making)) return heap;
    heap = heaps_make(owner);
    lock_let_go(&making);
    heaps_tidy();
    /* This pairs with the fence in heaps_retire. Either this thread sees that the owner is retired, or the thread that
     * retires it sees this heap. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (heap && owner_is_retired(owner)) heaps_retire(owner);
    return heap;
}

/* --- blocks of a heap, and the end of the heap with its last block --- */

/* Destroys the heap and gives its pages back to the system. The entry in by_heap is removed before that, because a new
 * heap may get the same address at once. */
static void heaps_destroy(struct heap *self) {
    words_take_out(&by_heap, (uintptr_t)self->heap);
    mi_heap_destroy(self->heap);
    mi_collect(true);
}

static void destroy_if_over(struct heap *self) {
    uint64_t over = RETIRED;
    if (left_behind) return;
    if (__atomic_compare_exchange_n(&self->state, &over, DESTROYED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        heaps_destroy(self);
}

/* Counts a block before it is allocated, so that nobody destroys the heap meanwhile. False: the heap is retired. */
static bool take_heap(struct heap *self) {
    uint64_t before = __atomic_fetch_add(&self->state, BLOCK, __ATOMIC_ACQ_REL);
    if (likely(!(before & (RETIRED | DESTROYED)))) return true;
    __atomic_fetch_sub(&self->state, BLOCK, __ATOMIC_ACQ_REL);
    destroy_if_over(self);
    return false;
}

static void heaps_let_go(struct heap *self) {
    if (unlikely(__atomic_sub_fetch(&self->state, BLOCK, __ATOMIC_ACQ_REL) == RETIRED)) destroy_if_over(self);
}

/* Gives back the free pages of a retired owner's heap. mimalloc keeps one free page for each size, up to 64 KiB each,
 * and a retired heap never uses them again: it gets no new blocks. A page can be given back only by the thread that
 * allocated in it, which is usually the heap's maker. Pages of other threads stay until those threads end. */
static void heaps_tidy_one(struct heap *self, uint32_t thread) {
    if (self->maker != thread) return;
    /* Counts one block more, so that nobody destroys the heap meanwhile. */
    uint64_t before = __atomic_fetch_add(&self->state, BLOCK, __ATOMIC_ACQ_REL);
    if ((before & (RETIRED | DESTROYED)) == RETIRED && before >= BLOCK && before != self->tidied) {
        self->tidied = before;
        mi_heap_collect(self->heap, true);
    }
    heaps_let_go(self);
}

/* Returns the id of the calling thread, or 0 if it must not tidy heaps: `left_behind` is true, or the process is sealed
 * (seal.h). */
static uint32_t tidying_thread(void) { return left_behind || seal_is_set() ? 0 : os_tid(); }

void heaps_tidy(void) {
    uint32_t thread = tidying_thread();
    for (uint32_t i = 0, end = __atomic_load_n(&count, __ATOMIC_ACQUIRE); i < end; i++) {
        struct heap *heap = heap_at(i);
        if (__atomic_load_n(&heap->state, __ATOMIC_RELAXED) & RETIRED) heaps_tidy_one(heap, thread);
    }
}

/* The heap of the owner whose scope the thread is in; NULL: there is none. A process without a ledger uses no heap: its
 * blocks have no header, so they would be taken for glibc's. */
static struct heap *heaps_present(void) {
    return likely(ledger_head->pid && ledger_is_ours() && !left_behind) ? tags_present()->heap : NULL;
}

/* Returns a block from the heap of the present scope. If there is no heap, or the heap has no memory, the code after
 * the macro asks `base`. */
#define FROM_HEAP(call)                                                                                                \
    struct heap *self = heaps_present();                                                                               \
    if (self && take_heap(self)) {                                                                                     \
        void *p = call;                                                                                                \
        if (likely(p)) return p;                                                                                       \
        heaps_let_go(self);                                                                                            \
    }

static void *heap_malloc(size_t size) {
    FROM_HEAP(mi_heap_malloc(self->heap, size))
    return base.malloc(size);
}

static void *heap_calloc(size_t n, size_t each) {
    FROM_HEAP(mi_heap_calloc(self->heap, n, each))
    return base.calloc(n, each);
}

static void *heap_memalign(size_t alignment, size_t size) {
    FROM_HEAP(mi_heap_malloc_aligned(self->heap, size, alignment))
    return base.memalign(alignment, size);
}

/* The owner's heap that a block belongs to. NULL: it belongs to none. */
static struct heap *heap_of(const void *p) {
    mi_heap_t *heap = mi_heap_of(p);
    return likely(!heap) ? NULL : find_heap(&by_heap, (uintptr_t)heap);
}

bool heaps_have(const void *raw) { return base.malloc && heap_of(raw); }

static void heap_free(void *p) {
    struct heap *self = heap_of(p);
    if (likely(!self)) {
        base.free(p);
        return;
    }
    if (!left_behind) mi_free(p);
    heaps_let_go(self);
}

static size_t heap_usable(void *p) { return heap_of(p) ? mi_usable_size(p) : base.usable(p); }

/* Resizes a block that is already in the heap of the present scope, or in `base` if the scope has no heap. Moves any
 * other block to that heap, or to `base`. */
static void *heap_realloc(void *p, size_t size) {
    struct heap *from = heap_of(p), *to = heaps_present();
    if (!from && !to) return base.realloc(p, size);
    if (from == to) return mi_heap_realloc(from->heap, p, size);
    void *moved = heap_malloc(size);
    size_t had = heap_usable(p);
    if (!moved) return NULL;
    __builtin_memcpy(moved, p, had < size ? had : size);
    heap_free(p);
    return moved;
}

/* In a sandbox there are no heaps: mimalloc would make system calls that may kill the process. Reasons for the options:
 *
 * - The purge delay is 0, so freed pages go back to the system at once. With a delay, mimalloc does not give back all
 *   of them even when it is asked to: a heap of 200 MB that two threads had freed kept 80 MB.
 * - Huge pages are off. They would make each heap several MB larger.
 * - Arenas are small. A heap has about 75 bitmaps for each arena, and a bitmap has one bit for each 64 KiB. For
 *   mimalloc's usual arena of 1 GiB, that is 150 KB.
 *
 * `malloc` is set last: a thread that gets a block from a heap must find the `free` for it. */
void heaps_begin(void) {
    if (base.malloc || seal_is_set()) return;
    next_begin_mimalloc();
    mi_option_set(mi_option_purge_delay, 0);
    mi_option_set(mi_option_allow_thp, 0);
    mi_option_set(mi_option_arena_reserve, ARENA_KIB);
    base = next;
    tags_heap_of = heaps_of;
    next_spares = false;
    __atomic_store_n(&next.free, heap_free, __ATOMIC_RELEASE);
    __atomic_store_n(&next.usable, heap_usable, __ATOMIC_RELEASE);
    __atomic_store_n(&next.realloc, heap_realloc, __ATOMIC_RELEASE);
    __atomic_store_n(&next.memalign, heap_memalign, __ATOMIC_RELEASE);
    __atomic_store_n(&next.calloc, heap_calloc, __ATOMIC_RELEASE);
    __atomic_store_n(&next.malloc, heap_malloc, __ATOMIC_RELEASE);
}

void heaps_retire(uint32_t owner) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* as in heaps_of */
    struct heap *heap = find_heap(&by_owner, owner + 2);
    if (!heap) return;
    words_take_out(&by_owner, owner + 2);
    __atomic_fetch_or(&heap->state, RETIRED, __ATOMIC_ACQ_REL);
    destroy_if_over(heap);
    heaps_tidy_one(heap, tidying_thread());
}

void heaps_collect(uint32_t owner) {
    struct heap *heap = left_behind ? NULL : find_heap(&by_owner, owner + 2);
    if (!heap || !take_heap(heap)) return;
    mi_heap_collect(heap->heap, true);
    heaps_let_go(heap);
}

static void heaps_abandon(void) {
    making = (struct lock){0};
    left_behind = base.malloc != NULL;
}
FORKED(heaps_abandon);
#else
bool heaps_have(const void *raw) {
    (void)raw;
    return false;
}
void heaps_begin(void) {}
void heaps_retire(uint32_t owner) { (void)owner; }
void heaps_collect(uint32_t owner) { (void)owner; }
void heaps_tidy(void) {}
#endif
