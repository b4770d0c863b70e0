/* hook_host.c — the malloc family.
 * In: the program's calls. Out: blocks of the next allocator, counted, nearly all with a header in front. The hooks
 * must behave as the malloc family does without us: results, errno, alignment, usable sizes, the reaction to an invalid
 * pointer.
 *
 * Most blocks are small and 16-aligned. malloc, calloc, realloc and free have a fast path for such blocks, while
 * tracked_page allows it. If the program brought the next allocator (a foreign allocator), the headers have a key, and
 * the fast path consists of other functions, those with `keyed` in their name. Everything else goes through host_alloc
 * and host_free. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/count/account.h"
#include "preload/owners/assign.h"
#include "preload/blocks/blocks.h"
#include "preload/blocks/chunk.h"
#include "preload/blocks/gone.h"
#include "preload/blocks/header.h"
#include "preload/blocks/heaps.h"
#include "preload/blocks/host.h"
#include "preload/ledger/ledger.h"
#include "preload/life/misuse.h"
#include "preload/base/next.h"
#include "preload/count/peak.h"
#include "preload/count/pin.h"
#include "preload/count/probe.h"
#include "preload/life/process.h"
#include "preload/count/site.h"
#include "preload/stow/stow.h"
#include "preload/base/seal.h"
#include "preload/count/account_fast.h"

#define HOOK __attribute__((visibility("default")))

_Static_assert(SITE_LIMIT == 1 << HEADER_SITE_BITS && SNAP_LARGE_BYTES == 1 << 16, "header.h");

enum { BEFORE = HOST_BEFORE };

/* --- blocks: their allocator, and how they are counted out --- */

/* The allocator of a block. Blocks that are not ours came from glibc (__libc_malloc, or before tracking), or from the
 * program's foreign allocator. */
static const struct next_allocator *allocator_of(const struct host_known *block) {
    if (block->ours) return block->mark & HEADER_EARLY ? &next_libc : &next;
    return next_found == NEXT_FOREIGN ? &next : &next_libc;
}

static bool is_counted(const struct host_known *block) {
    return block->ours && !(block->mark & HEADER_EARLY) && process_tracked();
}

static void hook_host_count_out(const void *p, const struct host_known *block) {
    if (!is_counted(block)) return;
    if (host_is_inherited(block)) {
        account_free_inherited(block->size);
    } else {
        if (unlikely(block->mark & HEADER_PARTS)) assign_end_parts((uintptr_t)p, block->site);
        account_free(block->site, block->size);
    }
}

/* --- allocating: malloc, calloc --- */

static void *no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

/* Counts a new block of the caller, and returns its site. It asks again whether the process is tracked: a signal
 * handler may have forked while the allocator worked, and this may be the child, whose counters are still the
 * parent's. */
static uint32_t site_counted(const void *p, uint64_t size, struct caller caller) {
    if (!process_tracked()) return SNAP_SITE_UNKNOWN;
    enum pin pin = pin_begin(caller.slot);
    uint32_t site = account_alloc(site_of(caller, size), size);
    if (probe_hears_alloc()) probe_alloc(p, size, site);
    pin_end(pin);
    return site;
}

/* Enters a block without a header into the table. False: the table is full, so the block is not ours. */
static bool describe_bare(const void *p, uint64_t size, uint32_t site) {
    if (blocks_add((uintptr_t)p, &(struct block){size, site, chunk_mark(p, size)}, thread_slot())) return true;
    account_free(site, size);
    ledger_lost(SNAP_LOST_BLOCKS);
    return false;
}

/* Writes the header of a new block. If the block must be found by its address, it also goes into the table. If the
 * table is full, a large block still counts, because it has a header. */
static void hook_host_describe(void *p, uint64_t size, uint32_t mark, uint32_t site) {
    bool listed = size >= SNAP_LARGE_BYTES || (host_on_page(p) && next_found == NEXT_FOREIGN);
    mark |= listed ? HEADER_LISTED : 0;
    host_write_header(p, size, mark, site);
    if (listed) blocks_add((uintptr_t)p, &(struct block){size, site, mark}, thread_slot());
}

/* Where the block begins in raw memory of size + BEFORE bytes. */
static char *start_in(char *raw, uint64_t size) { return chunk_is_mapped(raw, size) ? raw : raw + BEFORE; }

static char *describe_raw(char *raw, uint64_t size, uint32_t site) {
    char *p = start_in(raw, size);
    if (p == raw)
        describe_bare(p, size, site);
    else
        hook_host_describe(p, size, tracked_mark, site);
    return p;
}

/* Serves blocks before libc is set up, and while tracking begins. They come from glibc, and their header says so. So
 * they can be told from a foreign allocator's blocks. */
static void *early_alloc(size_t alignment, size_t size, bool zero) {
    size_t distance = alignment > BEFORE ? alignment : BEFORE;
    if (distance > HEADER_DISTANCE_MAX) return next_libc.memalign(alignment, size);
    char *raw = alignment > BEFORE ? next_libc.memalign(alignment, size + distance)
                : zero             ? next_libc.calloc(1, size + 2 * BEFORE)
                                   : next_libc.malloc(size + 2 * BEFORE);
    if (!raw) return NULL;
    /* If the next allocator is foreign, no header is read in front of a page-aligned block. So this block must not
     * be page-aligned. */
    if (alignment == BEFORE && host_on_page(raw + BEFORE)) distance = 2 * BEFORE;
    uint32_t mark = header_mark(0, (uint32_t)distance) | HEADER_EARLY;
    char *p = raw + distance;
    ledger_lost(SNAP_LOST_BLOCKS);
    host_write_header(p, size, mark, SNAP_SITE_UNKNOWN);
    if (host_on_page(p)) blocks_add((uintptr_t)p, &(struct block){size, SNAP_SITE_UNKNOWN, mark}, SNAP_THREAD_SHARED);
    return p;
}

/* Serves blocks in a process that is not tracked. These blocks have no header. If mimalloc is the next allocator,
 * they come from glibc, because our free gives blocks without a header to glibc. */
static void *untracked_alloc(size_t alignment, size_t size, bool zero) {
    const struct next_allocator *from = next_found == NEXT_MIMALLOC ? &next_libc : &next;
    if (alignment > BEFORE) return from->memalign(alignment, size);
    return zero ? from->calloc(1, size) : from->malloc(size);
}

/* Allocates a page-aligned block. It has no header, because a header would cost a page. The table knows the block. */
static void *bare_alloc(size_t alignment, size_t size, struct caller caller) {
    char *p = next.memalign(alignment, size);
    if (!p) return NULL;
    uint32_t site = site_counted(p, size, caller);
    if (!describe_bare(p, size, site) && next_found == NEXT_MIMALLOC) {
        next.free(p); /* a block that is not in the table would be taken for glibc's */
        p = next_libc.memalign(alignment, size);
    }
    return p;
}

/* --- large blocks in the scope of a model or custom: each is a mapping of its own --- */

/* The header lies at the end of a page in front of the block. So the block consists of whole pages, which can be
 * moved. */
static uint64_t mapped_length(uint64_t size) { return OS_PAGE + os_round_up(size, OS_PAGE); }

static bool wants_mapping(size_t alignment, size_t size) {
    return unlikely(tags_used) && size >= HEAPS_MAPPED && alignment <= OS_PAGE && tags_present()->model;
}

static void *mapped_alloc(size_t size, struct caller caller) {
    char *raw = os_map(mapped_length(size));
    if (!raw) return no_memory();
    uint32_t site = site_counted(raw + OS_PAGE, size, caller);
    hook_host_describe(raw + OS_PAGE, size, header_mark(header_generation(tracked_mark), OS_PAGE) | HEADER_MAPPED,
                       site);
    return raw + OS_PAGE;
}

/* Resizes a block that is a mapping of its own. NULL: mremap failed. It also fails if a part of the block was stowed
 * and came back: then the block consists of several mappings, which mremap cannot move at once. */
static void *mapped_resize(const struct host_known *block, size_t size) {
    long raw = os_call(SYS_mremap, block->raw, mapped_length(block->size), mapped_length(size), MREMAP_MAYMOVE);
    return raw < 0 && raw > -OS_PAGE ? NULL : (void *)raw;
}

static void exempt_loader(const void *raw, struct caller caller) {
    if (unlikely(next_found == NEXT_FOREIGN)) next_exempt(raw, caller.address);
}

static void *host_alloc(size_t alignment, size_t size, bool zero, struct caller caller) {
    if (unlikely(size > PTRDIFF_MAX - alignment)) return no_memory();
    if (unlikely(!process_tracked()))
        return tracked_page.stage == TRACKED_NO ? untracked_alloc(alignment, size, zero)
                                                : early_alloc(alignment, size, zero);
    if (wants_mapping(alignment, size)) return mapped_alloc(size, caller);
    if (alignment >= OS_PAGE) return bare_alloc(alignment, size, caller);
    bool apart = alignment > BEFORE && size >= SNAP_LARGE_BYTES;
    if (apart && alignment > HOST_ALIGNED_FIRST) return bare_alloc(OS_PAGE, size, caller);
    if (apart) alignment = HOST_ALIGNED_FIRST;
    char *raw = zero ? next.calloc(1, size + BEFORE) : next.malloc(size + alignment);
    if (unlikely(!raw)) return NULL;
    exempt_loader(raw, caller);
    if (alignment == BEFORE) return describe_raw(raw, size, site_counted(start_in(raw, size), size, caller));
    /* Raw blocks are 16-aligned. So the first aligned address after a header is at most `alignment` away. */
    char *p = (char *)os_round_up((uintptr_t)raw + BEFORE, alignment);
    uint32_t mark = header_mark(header_generation(tracked_mark), (uint32_t)(p - raw));
    hook_host_describe(p, size, mark, site_counted(p, size, caller));
    return p;
}

static bool is_plain(size_t size) { return likely(size < tracked_page.small); }

/* The slow cases of hook_host_stamp are tail calls, so the usual case has no stack frame. */
__attribute__((noinline)) static void *stamp_slow(struct header *header, size_t size, struct caller caller) {
    uint32_t site = site_counted(header + 1, size, caller);
    host_write_header(header + 1, size, tracked_mark, site);
    return header + 1;
}

/* The slow cases of stamp_pinned: the thread has no wide counter (counters.h) for the site yet, or a signal handler has
 * forked this process meanwhile. Counts the block, unless the process is not tracked. The thread must be pinned; its
 * pin ends here. */
__attribute__((noinline)) static void *stamp_at(struct header *header, size_t size, uint32_t site) {
    site = process_tracked() ? account_alloc(site, size) : SNAP_SITE_UNKNOWN;
    pin_end(PIN_OWN);
    host_write_header(header + 1, size, tracked_mark, site);
    return header + 1;
}

__attribute__((noinline)) static void *flushed(struct thread *self, void *p) {
    account_flush(self);
    return p;
}

/* Writes the header of a block, and counts the block at the site sample_here (sample.h). `base` is
 * tracked_page.mark_here. */
static inline void *stamp_here(struct thread *self, uint32_t base, struct header *header, size_t size) {
    /* An atomic store: otherwise the compiler merges two stores into one, with more instructions than it saves. */
    __atomic_store_n(&header->site, sample_here, __ATOMIC_RELAXED);
    header->seal = base + (uint32_t)size;
    header->size = size;
    if (unlikely(account_alloc_here(self, self->here, size))) return flushed(self, header + 1);
    return header + 1;
}

/* Counts a block while stacks are sampled. Most blocks are no samples: they are counted at sample_here, without a call
 * stack. */
__attribute__((noinline)) static void *stamp_unless_sampled(struct header *header, size_t size, uintptr_t slot,
                                                            uintptr_t address, uintptr_t rbp) {
    struct thread *self = thread_self;
    uint32_t mark = tracked_page.mark_here;
    uint64_t until = os_load(&self->until);
    if (unlikely(size >= until || !mark)) return stamp_slow(header, size, (struct caller){slot, address, rbp});
    os_store(&self->until, until - size);
    return stamp_here(self, mark, header, size);
}

/* Counts the block at a site, and ends the pin that was taken for it. `mark` is 0 in a child that a signal handler
 * forked meanwhile. */
static inline void *stamp_pinned(struct thread *self, struct header *header, size_t size, uint32_t site, uint32_t mark,
                                 uint32_t key) {
    struct counters_place place = account_place(self, site);
    if (unlikely(!place.counter || !mark)) return stamp_at(header, size, site);
    header->site = site + key;
    header->seal = mark + site + key + (uint32_t)size;
    header->size = size;
    bool due = account_alloc_at(self, place, size);
    __atomic_store_n(&self->pinned, 0, __ATOMIC_RELEASE);
    if (unlikely(due)) return flushed(self, header + 1);
    return header + 1;
}

/* Counts a block for its owner, without a call stack. Called while owners are in use, and call stacks are sampled or
 * not recorded. If the block is a sample, stamp_slow counts it and records its stack. */
__attribute__((noinline)) static void *stamp_tagged(struct header *header, size_t size, uintptr_t slot,
                                                    uintptr_t address, uintptr_t rbp) {
    struct thread *self = thread_self;
    uint64_t until = os_load(&self->until);
    if (unlikely(!tracked_page.mark || self->pinned || (sample_bytes && size >= until)))
        return stamp_slow(header, size, (struct caller){slot, address, rbp});
    self->pinned = slot;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (sample_bytes) os_store(&self->until, until - size);
    uint32_t site = tags_site(sample_here);
    return stamp_pinned(self, header, size, site, tracked_page.mark, 0);
}

/* Counts a block while call stacks are recorded or sampled, or owners are in use. */
__attribute__((noinline)) static void *stamp_by_stack(struct header *header, size_t size, uintptr_t slot,
                                                      uintptr_t address, uintptr_t rbp) {
    struct thread *self = thread_self;
    uint32_t mark = tracked_page.mark;
    if (unlikely(sample_here && tags_used)) return stamp_tagged(header, size, slot, address, rbp);
    if (unlikely(sample_here || !mark || self->pinned)) return stamp_unless_sampled(header, size, slot, address, rbp);
    self->pinned = slot;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint32_t site = stack_site(slot, address, rbp);
    if (unlikely(tags_used)) site = tags_site(site);
    return stamp_pinned(self, header, size, site, tracked_page.mark, 0);
}

static inline void *hook_host_stamp(struct header *header, size_t size, struct caller caller) {
    uint32_t mark = tracked_page.mark_here; /* 0 in a child that a signal handler forked meanwhile */
    if (unlikely(!header)) return NULL;
    struct thread *self = thread_self;
    if (unlikely(!mark || !self->always)) return stamp_by_stack(header, size, caller.slot, caller.address, caller.rbp);
    return stamp_here(self, mark, header, size);
}

/* --- the same over a foreign allocator --- */

/* Looks up the site of a block that is no sample. The caller has pinned the thread (pin.h). */
static inline uint32_t keyed_site(uintptr_t slot, uintptr_t address, uintptr_t rbp) {
    uint32_t site = sample_here ? sample_here : stack_site(slot, address, rbp);
    return unlikely(tags_used) ? tags_site(site) : site;
}

/* Counts a block. It leaves three kinds of blocks to host_alloc's functions: samples, blocks at the start of a page,
 * and blocks that are allocated while another hook of the thread is at work. */
static inline void *stamp_keyed(struct header *header, size_t size, uintptr_t slot, uintptr_t address, uintptr_t rbp) {
    struct thread *self = thread_self;
    void *p = header + 1;
    uint64_t until = os_load(&self->until);
    if (unlikely(!tracked_page.keyed || self->pinned || host_on_page(p) || (sample_bytes && size >= until)))
        return describe_raw((char *)header, size, site_counted(p, size, (struct caller){slot, address, rbp}));
    self->pinned = slot;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (sample_bytes) os_store(&self->until, until - size);
    uint32_t site = keyed_site(slot, address, rbp);
    uint32_t mark = tracked_page.keyed; /* read again: in a child that a signal handler has just forked, it differs */
    return stamp_pinned(self, header, size, site, mark, host_key_of(p, mark));
}

/* Serves malloc and calloc outside of their fast path. */
__attribute__((noinline)) static void *alloc_apart(size_t size, bool zero, uintptr_t slot, uintptr_t address,
                                                   uintptr_t rbp) {
    if (!tracked_page.keyed || size >= SNAP_LARGE_BYTES)
        return host_alloc(BEFORE, size, zero, (struct caller){slot, address, rbp});
    struct header *header = zero ? next.calloc(1, size + BEFORE) : next.malloc(size + BEFORE);
    return likely(header) ? stamp_keyed(header, size, slot, address, rbp) : NULL;
}

static inline void *host_alloc_apart(size_t size, bool zero, struct caller caller) {
    return alloc_apart(size, zero, caller.slot, caller.address, caller.rbp);
}

HOOK void *malloc(size_t size) {
    if (!is_plain(size)) return host_alloc_apart(size, false, CALLER);
    struct header *header = next.malloc(size + BEFORE);
    return hook_host_stamp(header, size, CALLER);
}

HOOK void *calloc(size_t count, size_t each) {
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size))) return no_memory();
    if (!is_plain(size)) return host_alloc_apart(size, true, CALLER);
    return hook_host_stamp(next.calloc(1, size + BEFORE), size, CALLER);
}

/* --- freeing: free --- */

/* Frees the block. Stowed content is not read back. */
static void give_back(void *p, const struct host_known *block) {
    if (!block->in_table) {
        allocator_of(block)->free(block->raw);
        return;
    }
    bool mapped = block->mark & HEADER_MAPPED;
    uint32_t pass = stow_pass_begin();
    if (stow_pass_watched(pass)) (mapped ? stow_note_unmap : stow_note_free)((uintptr_t)p, block->size);
    if (mapped)
        os_unmap(block->raw, mapped_length(block->size));
    else
        allocator_of(block)->free(block->raw);
    stow_pass_end(pass);
    stack_note_unmapping(); /* an unmapped block may have been next to a stack */
}

/* Notes who freed the block. A second free of the block reads this note (misuse.h). */
static inline void note_free(void *p, uint64_t size, uint32_t site, uintptr_t slot) {
    struct header_note *note = header_note(p, size, &next_spares);
    if (likely(note)) *note = (struct header_note){(uint32_t)stack_address(slot), site + tracked_page.note};
}

/* Marks a block as freed. Nothing is written into a block that the table knows, because it may be stowed. */
static void note_end(void *p, const struct host_known *block, uintptr_t slot) {
    bool bare = block->mark & BLOCK_BARE;
    if (!bare) header_end(host_header(p));
    if (block->in_table)
        gone_note(p, block->size, block->mark, block->site, slot);
    else if (!(block->mark & HEADER_EARLY))
        note_free(p, block->size, block->site, slot);
}

/* Whether the program has written over the header of glibc's in front of the block. The hook reports it before glibc
 * reads that header. */
static bool is_overwritten(const void *p, const struct host_known *block) {
    return block->in_table && chunk_changed(block->mark, (const uint64_t *)p - 2);
}

static void report_overwritten(const void *p, const struct host_known *block, enum snap_misuse_call call,
                               struct caller caller) {
    uint32_t site = host_is_inherited(block) ? SNAP_SITE_UNKNOWN : block->site;
    struct misuse misuse = {SNAP_MISUSE_DAMAGED, false, NULL, block->size, site, 0};
    misuse_report((uintptr_t)p, &misuse, call, caller);
}

static void free_known(void *p, const struct host_known *block, uintptr_t slot) {
    struct block entry;
    if (unlikely(is_overwritten(p, block))) report_overwritten(p, block, SNAP_MISUSE_FREE, stack_caller(slot));
    if (block->in_table && !blocks_take((uintptr_t)p, &entry) && block->mark & BLOCK_BARE)
        return; /* another thread has freed the block at the same time, and gives it back */
    if (block->size >= PEAK_FALL_LEAST && is_counted(block) && !host_is_inherited(block))
        peak_note_free(block->site, block->size);
    if (probe_hears_free() && is_counted(block)) probe_free(p, block->site);
    hook_host_count_out(p, block);
    note_end(p, block, slot);
    give_back(p, block);
}

/* Returns the pointer that the allocator gets if p is not a block of ours, so that the allocator reports its own error.
 * It is p, except in two cases: glibc would crash on p before it reports anything; or glibc would accept p, because p
 * is a block that glibc gave to us, and not to the program. */
static void *as_it_is(void *p) {
    if (next_found == NEXT_FOREIGN || tracked_page.stage != TRACKED_YES) return p;
    return misuse_leads_astray(p) || misuse_is_raw(p) ? misuse_nobody() : p;
}

/* Writes a damaged header anew, from the facts in `misuse` and the block's entry in the table. */
static struct host_known hook_host_mend(void *p, const struct misuse *misuse) {
    struct block entry;
    uint32_t mark = blocks_find((uintptr_t)p, &entry) ? entry.mark : tracked_mark;
    host_write_header(p, misuse->size, mark, misuse->site);
    return host_look_at(p);
}

/* Examines a pointer without a valid header of ours (misuse_of). In a process without a ledger, most blocks are not
 * ours, so a pointer to what may be a chunk of glibc's counts as valid at once. */
static struct misuse misuse_at(void *p) {
    return process_tracked() || !misuse_may_be_chunk(p) ? misuse_of(p) : (struct misuse){0};
}

/* Frees a pointer without a valid header of ours. If the damage is harmless, mends the header and frees the block.
 * Otherwise the allocator gets the pointer, so that it reports the fault as it does without us. */
__attribute__((noinline)) static void free_no_block(void *p, uintptr_t slot) {
    struct misuse misuse = misuse_at(p);
    const struct host_known none = {0};
    if (misuse.kind) misuse_report((uintptr_t)p, &misuse, SNAP_MISUSE_FREE, stack_caller(slot));
    if (misuse.kind && misuse.harmless) {
        struct host_known block = hook_host_mend(p, &misuse);
        free_known(p, &block, slot);
    } else if (!misuse.kind) {
        allocator_of(&none)->free(as_it_is(p));
    } else {
        allocator_of(&none)->free(misuse.raw ? misuse.raw : misuse_nobody());
    }
}

__attribute__((noinline)) static void host_free(void *p, uintptr_t slot) {
    if (!p) return;
    struct host_known block = host_look_at(p);
    if (likely(block.ours))
        free_known(p, &block, slot);
    else
        free_no_block(p, slot);
}

__attribute__((noinline)) static void free_flushed(struct thread *self, struct header *header) {
    account_flush(self);
    next.free(header);
}

/* Marks a plain block as freed. Later it may lie within another block, where host_find must not take its header for
 * that of a live block. */
static inline void end_plain(struct header *header, uint64_t size, uint32_t site, uintptr_t slot) {
    header_end(header);
    note_free(header + 1, size, site, slot);
}

/* Frees a plain block if the thread has no wide counter (counters.h) for its site. The fast path has checked only the
 * seal, so the site may be impossible. In this case the pointer leads to no plain block, and host_free examines it. */
__attribute__((noinline)) static void free_counted(struct header *header, uintptr_t slot) {
    uint64_t size = header->size;
    uint32_t site = header->site;
    if (unlikely(site >= SITE_LIMIT)) {
        host_free(header + 1, slot);
        return;
    }
    end_plain(header, size, site, slot);
    account_free(site, size);
    next.free(header);
}

/* Whether p is a small block of ours that a foreign allocator serves. The header in front of a page-aligned block,
 * or of a block that is gone, must not be read. */
static inline bool is_keyed(const void *p) {
    uint32_t mark = tracked_page.keyed;
    if (!mark || host_on_page(p) || gone_has(p)) return false;
    const struct header *header = host_header(p);
    uint32_t key = host_key_of(p, mark), site = header->site - key;
    return site < SITE_LIMIT && (uint64_t)mark + site + header->size == header->seal - key;
}

/* Frees a block while tracked_page.mark is 0. */
__attribute__((noinline)) static void free_keyed(void *p, uintptr_t slot) {
    struct header *header = host_header(p);
    struct thread *self = thread_self;
    struct counters_place place = {0};
    if (is_keyed(p)) place = account_place(self, header_site(header));
    if (unlikely(!place.counter || probe_hears_free())) {
        host_free(p, slot);
        return;
    }
    uint64_t size = header->size;
    end_plain(header, size, header_site(header), slot);
    if (unlikely(account_free_at(self, place, size)))
        free_flushed(self, header);
    else
        next.free(header);
}

__attribute__((noinline)) static void free_at_site(void *p, uintptr_t slot) {
    struct header *header = host_header(p);
    struct thread *self = thread_self;
    /* If the next allocator is foreign, the mark is 0. A comparison with the mark would prove nothing then, because
     * the words in front of that allocator's blocks may be 0, too. */
    uint32_t mark = tracked_page.mark;
    if (unlikely(!mark)) {
        free_keyed(p, slot);
        return;
    }
    if (unlikely(!header_is_small(header, mark))) {
        host_free(p, slot);
        return;
    }
    uint64_t size = header->size;
    struct counters_place place = account_place(self, header->site);
    if (unlikely(!place.counter)) {
        free_counted(header, slot);
        return;
    }
    end_plain(header, size, header->site, slot);
    if (unlikely(account_free_at(self, place, size)))
        free_flushed(self, header);
    else
        next.free(header);
}

/* Frees a block while somebody listens to the probes. This function tells the probe about a small block; for all other
 * blocks, host_free does so. This function is reached by a jump, so CALLER_SLOT is still the slot of free's caller. If
 * free passed the slot, free would need an instruction more where nobody listens. */
__attribute__((noinline)) static void free_told(void *p) {
    uint32_t mark = tracked_page.mark;
    if (mark && header_is_small(host_header(p), mark)) probe_free(p, host_header(p)->site);
    free_at_site(p, CALLER_SLOT);
}

static inline void free_here(struct thread *self, struct header *header) {
    uint64_t size = header->size;
    header_end(header);
    if (unlikely(account_free_here(self, self->here, size)))
        free_flushed(self, header);
    else
        next.free(header);
}

/* Frees a small block. Blocks at the site sample_here need no look-up of a counter. */
static inline void free_small(void *p, uintptr_t slot) {
    uint32_t base = tracked_page.mark_here;
    if (base) {
        struct header *header = host_header(p);
        struct thread *self = thread_self;
        if (likely(base + self->nowhere + header->size == header->seal)) {
            free_here(self, header);
            return;
        }
        if (probe_hears_free()) {
            free_told(p);
            return;
        }
    }
    free_at_site(p, slot);
}

/* Frees a block that may be the first in a mapping (host_may_be_first): it may have no header. p may be NULL. */
__attribute__((noinline)) static void free_first(void *p, uintptr_t slot) {
    if (host_on_page(p) || gone_has(p))
        host_free(p, slot);
    else
        free_small(p, slot);
}

HOOK void free(void *p) {
    if (unlikely(host_may_be_first(p)))
        free_first(p, CALLER_SLOT);
    else
        free_small(p, CALLER_SLOT);
}

/* --- resizing: realloc, reallocarray --- */

/* Resizes a large block. The allocator copies the block's bytes or moves its pages, so stowed content must come back
 * first. */
static void *resize_large(void *p, const struct host_known *block, size_t size, int *error) {
    void *raw = NULL;
    uint32_t pass = stow_pass_begin();
    *error = stow_pass_watched(pass) ? stow_note_whole((uintptr_t)p, block->size, true) : 0;
    if (!*error)
        raw = block->mark & HEADER_MAPPED ? mapped_resize(block, size) : next.realloc(block->raw, size + BEFORE);
    stow_pass_end(pass);
    return raw;
}

/* How many bytes of the block the program may have written: every usable byte, not only those that it asked for. */
static size_t usable_in(const void *p, const struct host_known *block) {
    if (block->ours && block->mark & HEADER_MAPPED) return os_round_up(block->size, OS_PAGE);
    if (is_overwritten(p, block)) return block->size;
    return allocator_of(block)->usable(block->raw) - (size_t)((const char *)p - (const char *)block->raw);
}

static void *resize_by_copy(void *p, const struct host_known *block, size_t size, struct caller caller) {
    void *copy = host_alloc(BEFORE, size, false, caller);
    size_t usable = usable_in(p, block);
    if (!copy) return NULL;
    memcpy(copy, p, usable < size ? usable : size);
    host_free(p, caller.slot);
    return copy;
}

/* Moves the content from raw + distance, where the allocator has left it, to the start of the resized block (start_in).
 * These addresses differ if glibc has a mapping for the block now but had none before, or the other way round. */
static char *hook_host_settle(char *raw, size_t distance, size_t usable, size_t size) {
    char *start = start_in(raw, size);
    if (start != raw + distance) memmove(start, raw + distance, usable < size ? usable : size);
    return start;
}

/* Call it for a block that the allocator could not resize. It puts the block's header and table entry back. If a new
 * block of the size may still be found, it copies the content to a new block. `entry` is the block's entry in the
 * table, or NULL if it had none. */
static void *stays_as_it_is(void *p, const struct host_known *block, const struct block *entry, size_t size, int error,
                            struct caller caller) {
    bool readable = error != -EIO; /* otherwise a read would cause a SIGBUS */
    if (!(block->mark & BLOCK_BARE)) host_write_header(p, block->size, block->mark, block->site);
    if (entry) blocks_add((uintptr_t)p, entry, thread_slot());
    return readable && (block->mark & HEADER_MAPPED || error) ? resize_by_copy(p, block, size, caller) : no_memory();
}

/* Lets the next allocator resize the block together with its header, in place or elsewhere. The table entry is taken
 * out before that, and put back on failure. The counters change only after success. */
static void *resize_whole(void *p, const struct host_known *block, size_t size, struct caller caller) {
    struct block entry;
    size_t distance = (size_t)((char *)p - (char *)block->raw);
    size_t usable = next_is_glibc ? usable_in(p, block) : 0; /* the content may have to move only over glibc */
    bool mapped = block->mark & HEADER_MAPPED, bare = block->mark & BLOCK_BARE;
    if (unlikely(is_overwritten(p, block))) report_overwritten(p, block, SNAP_MISUSE_REALLOC, caller);
    bool entered = block->in_table && blocks_take((uintptr_t)p, &entry);
    if (!bare) header_end(host_header(p)); /* as in end_plain */
    int error = 0;
    char *raw = entered ? resize_large(p, block, size, &error) : next.realloc(block->raw, size + BEFORE);
    if (!raw) return stays_as_it_is(p, block, entered ? &entry : NULL, size, error, caller);
    exempt_loader(raw, caller);
    if (block->size >= PEAK_FALL_LEAST && is_counted(block) && !host_is_inherited(block))
        peak_note_resized(block->site, block->size);
    if (probe_hears_free()) probe_free(p, block->site);
    hook_host_count_out(p, block);
    char *moved = mapped ? raw + distance : hook_host_settle(raw, distance, usable, size);
    if (entered && moved != p) gone_note(p, block->size, block->mark, block->site, caller.slot);
    uint32_t site = site_counted(moved, size, caller);
    if (mapped)
        hook_host_describe(moved, size, header_mark(header_generation(tracked_mark), OS_PAGE) | HEADER_MAPPED, site);
    else
        describe_raw(raw, size, site);
    return moved;
}

/* Whether the program's allocator frees a block that is resized to 0 bytes, as glibc does. Allocators differ in this.
 * Our header makes every block larger, so the allocator never sees a size of 0 in the program's own calls. So this
 * function finds out once, by resizing a block of its own. */
static bool frees_at_zero(void) {
    enum answer { NOT_ASKED, STAYS, FREES };
    static enum answer answer;
    if (next_found != NEXT_FOREIGN) return true;
    if (__atomic_load_n(&answer, __ATOMIC_RELAXED) == NOT_ASKED) {
        int error = errno;
        void *block = next.malloc(1), *left = block ? next.realloc(block, 0) : NULL;
        if (block) __atomic_store_n(&answer, left ? STAYS : FREES, __ATOMIC_RELAXED);
        next.free(left);
        errno = error;
    }
    return __atomic_load_n(&answer, __ATOMIC_RELAXED) == FREES;
}

static void *resize_known(void *p, const struct host_known *block, size_t size, struct caller caller) {
    if (size == 0 && frees_at_zero()) {
        host_free(p, caller.slot);
        return NULL;
    }
    if (size > PTRDIFF_MAX - BEFORE) return no_memory();
    bool mapped = block->mark & HEADER_MAPPED && size >= HEAPS_MAPPED && !host_is_inherited(block);
    bool chunk = block->mark & BLOCK_BARE ? host_on_chunk(p) : (char *)p - (char *)block->raw == BEFORE;
    bool whole = (mapped || chunk) && !(block->mark & HEADER_PARTS);
    if (is_counted(block) && whole) return resize_whole(p, block, size, caller);
    return resize_by_copy(p, block, size, caller);
}

/* Lets the allocator behind ours resize a block that was freed before. If the allocator accepts the pointer, the
 * result is a live block. `raw`: the pointer that the allocator gets; NULL: it gets misuse_nobody().
 *
 * glibc's realloc hardly examines a freed chunk. The chunk of an aligned block would begin elsewhere without us, so
 * glibc gets misuse_nobody() in place of such a chunk. If the memory of a block is unmapped, glibc gets `raw` all the
 * same, and the program ends by SIGSEGV, as without us. */
static void *resize_freed(void *p, void *raw, size_t size, struct caller caller) {
    const struct host_known none = {0};
    const struct next_allocator *from = allocator_of(&none);
    if (size > PTRDIFF_MAX - BEFORE) return no_memory();
    if (next_is_glibc && raw != p && raw != host_header(p) && !gone_is_unmapped(p)) raw = NULL;
    if (!raw || !size) return from->realloc(raw ? raw : misuse_nobody(), size);
    struct header *again = from->realloc(raw, size + BEFORE);
    if (!again) return NULL;
    hook_host_describe(again + 1, size, header_mark(header_generation(tracked_mark), BEFORE),
                       site_counted(again + 1, size, caller));
    return again + 1;
}

/* As free_no_block, for realloc. */
__attribute__((noinline)) static void *resize_no_block(void *p, size_t size, struct caller caller) {
    struct misuse misuse = misuse_at(p);
    const struct host_known none = {0};
    if (!misuse.kind) return allocator_of(&none)->realloc(as_it_is(p), size);
    misuse_report((uintptr_t)p, &misuse, SNAP_MISUSE_REALLOC, caller);
    if (!misuse.harmless) return resize_freed(p, misuse.raw, size, caller);
    struct host_known block = hook_host_mend(p, &misuse);
    return resize_known(p, &block, size, caller);
}

__attribute__((noinline)) static void *host_realloc(void *p, size_t size, struct caller caller) {
    struct host_known block = host_look_at(p);
    return likely(block.ours) ? resize_known(p, &block, size, caller) : resize_no_block(p, size, caller);
}

static inline void *any_realloc(void *p, size_t size, struct caller caller) {
    struct header *header = host_header(p);
    if (unlikely(!p)) return host_alloc(BEFORE, size, false, caller);
    if (unlikely(!is_plain(size) || size == 0 || !header_is_small(header, tracked_page.mark) || probe_hears_free()))
        return host_realloc(p, size, caller);
    uint64_t before = header->size;
    uint32_t site = header->site;
    if (unlikely(site >= SITE_LIMIT)) return host_realloc(p, size, caller); /* as in free_counted */
    header_end(header);                                                     /* as in end_plain */
    header = next.realloc(header, size + BEFORE);
    if (unlikely(!header)) {
        header_revive(host_header(p));
        return NULL;
    }
    if (likely(tracked_page.mark))
        account_free(site, before);
    else if (process_tracked()) /* a forked child: see site_counted */
        account_free_inherited(before);
    return hook_host_stamp(header, size, caller);
}

__attribute__((noinline)) static void *realloc_first(void *p, size_t size, struct caller caller) {
    bool apart = p && (host_on_page(p) || gone_has(p));
    return apart ? host_realloc(p, size, caller) : any_realloc(p, size, caller);
}

HOOK void *realloc(void *p, size_t size) {
    if (unlikely(host_may_be_first(p))) return realloc_first(p, size, CALLER);
    return any_realloc(p, size, CALLER);
}

/* The realloc and free that the program calls: ours, its own, or Valgrind's. A program with its own realloc and free
 * may have no reallocarray of its own, and then calls ours. So our reallocarray and the like call the program's realloc
 * and free, as libc's do. */
extern __typeof__(realloc) program_realloc __asm__("realloc");
extern __typeof__(free) program_free __asm__("free");

HOOK void *reallocarray(void *p, size_t count, size_t each) {
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size))) return no_memory();
    return program_realloc(p, size); /* a tail call: the caller is still the program */
}

/* --- allocating with an alignment: memalign and its like --- */

static bool is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

static void *hook_host_aligned(size_t alignment, size_t size, struct caller caller) {
    return host_alloc(alignment > BEFORE ? alignment : BEFORE, size, false, caller);
}

/* Allocators round up an alignment that is no power of two, or refuse it. So the next allocator decides, and such a
 * block has no header of ours. */
HOOK void *memalign(size_t alignment, size_t size) {
    if (is_power_of_two(alignment)) return hook_host_aligned(alignment, size, CALLER);
    return (next_found == NEXT_FOREIGN ? &next : &next_libc)->memalign(alignment, size);
}

HOOK void *aligned_alloc(size_t alignment, size_t size) {
    return is_power_of_two(alignment) ? hook_host_aligned(alignment, size, CALLER)
                                      : next_aligned_alloc(alignment, size);
}

HOOK int posix_memalign(void **out, size_t alignment, size_t size) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void *)) return EINVAL;
    void *p = hook_host_aligned(alignment, size, CALLER);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

HOOK void *valloc(size_t size) { return hook_host_aligned(OS_PAGE, size, CALLER); }

HOOK void *pvalloc(size_t size) {
    size_t whole = os_round_up(size, OS_PAGE);
    return whole < size ? no_memory() : hook_host_aligned(OS_PAGE, whole, CALLER);
}

/* --- the rest of the family: other names of free, and malloc_usable_size --- */

/* No header declares these: glibc removed the first, and C23 has the others. */
void cfree(void *p);
void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t alignment, size_t size);

HOOK void cfree(void *p) { program_free(p); }

HOOK void free_sized(void *p, size_t size) {
    (void)size;
    program_free(p);
}

HOOK void free_aligned_sized(void *p, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    program_free(p);
}

__attribute__((noinline)) static size_t host_usable(void *p) {
    struct block entry;
    if (!p) return 0;
    struct host_known block = host_look_at(p);
    if (!block.ours && blocks_find((uintptr_t)p, &entry)) return entry.size;
    struct misuse misuse = block.ours ? (struct misuse){0} : misuse_at(p);
    if (misuse.raw) block = (struct host_known){.raw = misuse.raw, .ours = true};
    return usable_in(p, &block);
}

/* Returns how many bytes the allocator gave, not only how many the program asked for, because some programs (redis) use
 * all of them. But if the header is damaged, and the table knows the block, returns the size that the program asked
 * for. */
HOOK size_t malloc_usable_size(void *p) {
    return likely(is_keyed(p)) ? next.usable(host_header(p)) - BEFORE : host_usable(p);
}
