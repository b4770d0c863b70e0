/* misuse.c — see misuse.h. What glibc writes into a free chunk, from its first usable byte (raw) on:
 *
 *   in a thread's cache           a link; in the second word a key, the same in the whole process
 *   in a fast bin                 a link; the second word is unchanged
 *   in another bin                links to two other chunks; in large chunks two more links
 *   joined to the chunk before    nothing: all words are unchanged
 *   a mapping of its own          nothing: the chunk is unmapped
 *
 * Our header is in the first two words; in a block that is aligned to more than 16 bytes, it may lie further on. */
#include "preload/life/misuse.h"

#include <errno.h>

#include "preload/blocks/blocks.h"
#include "preload/blocks/chunk.h"
#include "preload/blocks/gone.h"
#include "preload/blocks/heaps.h"
#include "preload/blocks/host.h"
#include "preload/count/counters.h"
#include "preload/ledger/ledger.h"
#include "preload/base/next.h"
#include "preload/shared/os.h"
#include "preload/life/process.h"
#include "preload/count/site.h"
#include "preload/stow/stow.h"
#include "preload/base/seal.h"
#include "preload/stacks/module.h"

enum { BEFORE = sizeof(struct header), WORD = sizeof(uint64_t), SLACK = 31 };
enum { CHUNK_PREVIOUS_IN_USE = 1, CHUNK_MAPPED = 2, CHUNK_NOT_MAIN = 4, CHUNK_FLAGS = 7, CHUNK_BIT_3 = 8 };
enum { CHUNK_LEAST = 32, CHUNK_CACHED = 1040 /* the largest chunk that a thread's cache takes, by default */ };
#define CHUNK_MOST ((uint64_t)1 << HEADER_SIZE_BITS)
#define HEAP_MOST ((uintptr_t)64 << 20)

static uint64_t cache_key; /* the key that glibc writes into cached chunks; 0: unknown, or glibc has none */

void *misuse_nobody(void) {
    static const uint64_t words[4] __attribute__((aligned(16))) = {~(uint64_t)15, 0, 0, 0};
    return (void *)(words + 1); /* a chunk that is misaligned and has an impossible size */
}

/* --- reading memory that may be unmapped --- */

/* Reads the word at an address. Returns false if it cannot be read. `known` is an address on a page that can certainly
 * be read, or 0 if there is no such page. */
static bool misuse_word_at(uintptr_t address, uintptr_t known, uint64_t *out) {
    if (known && address / OS_PAGE == known / OS_PAGE) {
        *out = *(const uint64_t *)address;
        return true;
    }
    return !seal_is_set() && os_peek(out, (const void *)address, sizeof *out);
}

/* Whether memory can be looked at. If not, it is not known which memory is readable. */
static bool can_look(void) { return !seal_is_set() && os_can_peek(); }

static bool word_is(uintptr_t address, uint64_t value) {
    uint64_t word;
    return misuse_word_at(address, 0, &word) && word == value;
}

/* --- recognising chunks of glibc --- */

static bool is_size(uint64_t word) {
    return word < CHUNK_MOST && !(word & CHUNK_BIT_3) && (word & ~(uint64_t)CHUNK_FLAGS) >= CHUNK_LEAST;
}

bool misuse_may_be_chunk(const void *p) { return is_size(((const uint64_t *)p)[-1]); }

/* glibc takes a chunk with CHUNK_NOT_MAIN for part of another heap. It looks for the start of that heap in front of the
 * chunk, at a multiple of 64 MiB, and follows a pointer there to an arena. If one of these two addresses cannot be
 * read, glibc would crash. */
bool misuse_leads_astray(const void *p) {
    uint64_t word = ((const uint64_t *)p)[-1], arena, there;
    if ((word & (CHUNK_MAPPED | CHUNK_NOT_MAIN)) != CHUNK_NOT_MAIN) return false;
    if (word >= CHUNK_MOST) return true;
    return can_look() &&
           !(misuse_word_at((uintptr_t)p & ~(HEAP_MOST - 1), 0, &arena) && misuse_word_at(arena, 0, &there));
}

/* Returns the usable bytes of the chunk at raw, or 0 if no chunk in use begins at raw. A chunk that is a mapping of its
 * own fills whole pages. For any other chunk, a bit in the header of the next chunk says whether it is in use. */
static uint64_t usable_at(uintptr_t raw, uintptr_t known) {
    uint64_t word, before, behind;
    if (!misuse_word_at(raw - WORD, known, &word) || !is_size(word)) return 0;
    uint64_t size = word & ~(uint64_t)CHUNK_FLAGS;
    if (word & CHUNK_MAPPED) {
        bool whole = misuse_word_at(raw - 2 * WORD, known, &before) && !((raw - 2 * WORD - before) % OS_PAGE) &&
                     !((before + size) % OS_PAGE);
        return whole ? size - 2 * WORD : 0;
    }
    bool in_use = misuse_word_at(raw - WORD + size, known, &behind) && behind < CHUNK_MOST && !(behind & CHUNK_BIT_3) &&
                  behind & CHUNK_PREVIOUS_IN_USE;
    return in_use ? size - WORD : 0;
}

/* Whether the chunk at raw is free, in one of glibc's doubly linked lists (bins). */
static bool is_in_bin(uintptr_t raw) {
    uint64_t chunk = raw - 2 * WORD, forward = ((const uint64_t *)raw)[0], back = ((const uint64_t *)raw)[1];
    if (forward % BEFORE || back % BEFORE || !forward || back >= CHUNK_MOST || forward >= CHUNK_MOST) return false;
    return word_is(forward + 3 * WORD, chunk) && word_is(back + 2 * WORD, chunk);
}

/* Finds the key that glibc writes into cached chunks: allocates a block, frees it at once, and reads its second word.
 * The block comes from the thread's cache and goes back there, so nothing changes. Returns 0 if there is no key. */
static uint64_t key_in_freed(uint64_t usable) {
    uint64_t *block = next_libc.malloc(usable);
    if (!block) return 0;
    block[1] = 0;
    next_libc.free(block);
    return *(volatile uint64_t *)&block[1];
}

/* Stores the key only if two attempts find the same key, because a signal handler may use the block after key_in_freed
 * has freed it and before key_in_freed reads it. */
static void find_cache_key(uintptr_t raw, uintptr_t known) {
    uint64_t word, usable = CHUNK_LEAST - WORD;
    if (os_load(&cache_key)) return;
    int error = errno;
    if (misuse_word_at(raw - WORD, known, &word) && is_size(word) && word <= CHUNK_CACHED)
        usable = (word & ~(uint64_t)CHUNK_FLAGS) - WORD;
    uint64_t key = key_in_freed(usable);
    if (key >= CHUNK_MOST && key == key_in_freed(usable)) os_store(&cache_key, key);
    errno = error;
}

static bool is_in_cache(uintptr_t raw, uintptr_t known) {
    uint64_t word;
    if (!misuse_word_at(raw + WORD, known, &word) || word < CHUNK_MOST) return false; /* a key has 64 random bits */
    find_cache_key(raw, known);
    return word == os_load(&cache_key);
}

/* --- pointers to raw memory --- */

/* Tries the addresses at which the block of this raw memory may begin: 16 bytes behind its start, or, for an aligned
 * block, at the next multiple of the alignment. */
bool misuse_is_raw(const void *p) {
    uintptr_t raw = (uintptr_t)p;
    uint64_t word;
    for (uintptr_t alignment = BEFORE; alignment < OS_PAGE; alignment *= 2) {
        uintptr_t block = os_round_up(raw + BEFORE, alignment);
        if (!misuse_word_at(block - BEFORE, raw - BEFORE, &word)) return false;
        const struct header *header = host_header((void *)block);
        if (host_has_header((void *)block) && header_distance(header_mark_in(header)) == block - raw) return true;
    }
    return false;
}

/* --- blocks that were freed before --- */

/* Returns the pointer that the allocator behind ours gets, so that it reports the fault, or NULL if it gets
 * misuse_nobody(). glibc gets only pointers to chunks of its own. mimalloc gets no pointer. Any other allocator gets
 * every pointer. */
static void *misuse_asked(uintptr_t raw, uintptr_t known) {
    uint64_t word;
    bool chunk = next_is_glibc && misuse_word_at(raw - WORD, known, &word) && is_size(word) && !heaps_have((void *)raw);
    return next_found == NEXT_FOREIGN || chunk ? (void *)raw : NULL;
}

/* The generation of this process, as headers have it: how many forks led to it. A block of an earlier generation was
 * made by a parent, and its site belongs to the parent's ledger. */
static uint32_t own_generation(void) { return header_generation(tracked_mark); }

/* Returns the pointer that the allocator behind ours gets for a block that is gone, or NULL if it gets misuse_nobody().
 *
 * - If the block's memory is unmapped, an allocator other than mimalloc gets the block's own pointer, and fails as it
 *   does without us.
 * - Otherwise, if the block was a mapping of ours, the result is NULL, because the allocator does not know the mapping.
 * - In all other cases misuse_asked decides. */
static void *asked_gone(uintptr_t p, uintptr_t raw, uint32_t mark) {
    uintptr_t front = mark & HEADER_MAPPED ? p : raw;
    if (gone_is_unmapped((void *)p) && next_found != NEXT_MIMALLOC) return (void *)front;
    return mark & HEADER_MAPPED ? NULL : misuse_asked(raw, 0);
}

/* Examines a pointer to a freed block. `found` is the record of this block from gone.h. If another block is in its
 * place now, or if memory cannot be examined, the result's kind is 0. All facts about the block come from `found`: the
 * block's header may be unmapped, if the block was a mapping. */
static struct misuse of_gone(uintptr_t p, const struct gone *found) {
    uintptr_t raw = p - (found->mark & BLOCK_BARE ? 0 : header_distance(found->mark));
    bool again = !can_look() || usable_at(p, 0) || usable_at(raw, 0);
    if (again && !is_in_cache(raw, 0)) return (struct misuse){0};
    uint32_t site = header_generation(found->mark) == own_generation() ? found->site : SNAP_SITE_UNKNOWN;
    void *asks = asked_gone(p, raw, found->mark);
    return (struct misuse){SNAP_MISUSE_FREED, false, asks, found->size, site, found->caller};
}

/* If a freed block has a note (header.h), copies the note's content to *to. The place of the note depends on the size
 * of the block. If the size is unknown, both possible places are tried. */
static void read_note(uintptr_t p, uint64_t size, struct misuse *to) {
    const bool any = true;
    for (uintptr_t at = p; at <= p + 2 * sizeof(struct header_note); at += 2 * sizeof(struct header_note)) {
        struct header_note note;
        uint64_t word;
        if (size != MISUSE_UNKNOWN && (uintptr_t)header_note((void *)p, size, &any) != at) continue;
        if (!misuse_word_at(at, p, &word)) continue;
        __builtin_memcpy(&note, &word, sizeof note);
        if (!header_note_is(&note, own_generation())) continue;
        to->site = header_note_site(&note);
        to->freed = note.caller;
        return;
    }
}

static struct misuse misuse_freed(uintptr_t p, uintptr_t raw, uint64_t size, uint32_t site) {
    struct misuse found = {SNAP_MISUSE_FREED, false, misuse_asked(raw, p - BEFORE), size, site, 0};
    if (gone_has((void *)p))
        found.freed = gone_at(p)->caller;
    else
        read_note(p, size, &found);
    return found;
}

/* Whether the chunk of the block at p was in a bin, and was later joined to the chunk before it. Such a chunk still has
 * old links and our note, and no chunk in use begins at its place. */
static bool was_in_bin(uintptr_t p) {
    uint64_t forward = ((const uint64_t *)p)[-2], back = ((const uint64_t *)p)[-1];
    bool links = forward % BEFORE == 0 && back % BEFORE == 0 && forward >= OS_PAGE && back >= OS_PAGE;
    struct misuse found = {0};
    if (!links || forward >= CHUNK_MOST || back >= CHUNK_MOST) return false;
    read_note(p, MISUSE_UNKNOWN, &found);
    bool noted = found.freed && found.site < site_count() && module_code((uint32_t)found.freed);
    return noted && can_look() && !usable_at(p, p - BEFORE);
}

/* Examines a block whose header says that the block was freed. The rest of the header may be intact or not. */
static struct misuse of_marked(uintptr_t p, struct header header) {
    header_revive(&header);
    uint32_t mark = header_mark_in(&header);
    bool whole = header_magic(mark) && header_generation(mark) <= own_generation() && host_has_key((void *)p, &header);
    bool known = whole && header_generation(mark) == own_generation();
    return misuse_freed(p, p - (whole ? header_distance(mark) : BEFORE), header.size,
                        known ? header_site(&header) : SNAP_SITE_UNKNOWN);
}

/* --- overwritten headers --- */

static bool misuse_fits(uint64_t size, uint64_t usable) {
    return size <= usable - BEFORE && usable - BEFORE - size <= SLACK;
}

static bool is_site(uint32_t site) { return site && site < 1u << HEADER_SITE_BITS; }

/* The header and its seal each give a number of a site, and one of these two numbers is damaged. Returns the number
 * that can be a site. If both numbers can be a site, or neither can, returns SNAP_SITE_UNKNOWN. */
static uint32_t site_of_two(uint32_t one, uint32_t other) {
    bool may_be_one = is_site(one) && one < site_count(), may_be_other = is_site(other) && other < site_count();
    if (may_be_one == may_be_other) return SNAP_SITE_UNKNOWN;
    return may_be_one ? one : other;
}

static uint32_t sealed_site(const struct header *header) {
    return header->seal - tracked_mark - (uint16_t)header->size;
}

static uint32_t sealed_size(const struct header *header) { return header->seal - tracked_mark - header->site; }

/* Describes the misuse if the header is damaged, but its size (the word in front of the block) is intact. This damage
 * is harmless, because without memstow the overwritten memory would belong to the block in front. In a forked child the
 * site is unknown, because a parent may have made the block. */
static struct misuse of_damaged_sum(uintptr_t raw, const struct header *header) {
    uint32_t site = site_of_two(header->site, sealed_site(header));
    if (own_generation()) site = SNAP_SITE_UNKNOWN;
    return (struct misuse){SNAP_MISUSE_DAMAGED, true, (void *)raw, header->size, site, 0};
}

/* Whether the seal yields a size that fits the chunk. If it does, only the word in front of the block is damaged. */
static bool knows_size(const struct header *header, uint64_t usable) {
    uint32_t size = sealed_size(header);
    return is_site(header->site) && size < SNAP_LARGE_BYTES && misuse_fits(size, usable);
}

static struct live misuse_live(uint32_t site) {
    return is_site(site) && site < site_count() ? counters_site_live(site) : (struct live){0};
}

static bool has_blocks_of(uint32_t site, uint64_t size) {
    struct live live = misuse_live(site);
    return live.blocks && live.bytes == live.blocks * size;
}

/* Whether the size in the header counts as damaged. It does if all of this is true:
 *
 * - The seal yields a size that fits the chunk, too.
 * - The header's site has live blocks.
 * - No site confirms the size in the header. A site confirms a size if it has live blocks, and all of them have that
 *   size. Two sites are asked: the site in the header, and the site that the seal yields.
 *
 * The seal or the site may be damaged instead, but the word in front of a block is damaged more often than the words
 * before it. */
static bool is_size_damaged(const struct header *header, uint64_t usable) {
    bool intact = has_blocks_of(header->site, header->size) || has_blocks_of(sealed_site(header), header->size);
    return knows_size(header, usable) && !intact && misuse_live(header->site).blocks;
}

static struct misuse of_damaged_size(const struct header *header, uint64_t usable) {
    bool known = knows_size(header, usable);
    return (struct misuse){SNAP_MISUSE_DAMAGED,
                           false,
                           NULL,
                           known ? sealed_size(header) : MISUSE_UNKNOWN,
                           known ? header->site : SNAP_SITE_UNKNOWN,
                           0};
}

/* Examines a header that may be damaged in part or as a whole. If no block of ours begins at p, the result's kind is 0.
 * If a chunk of glibc may begin at p, only the seal can tell whether the block is ours. */
static struct misuse of_damaged(uintptr_t p, const struct header *header) {
    uint64_t usable = usable_at(p - BEFORE, p - BEFORE);
    if (usable < BEFORE) return (struct misuse){0};
    bool sum = is_site(sealed_site(header));
    bool sealed = sum || knows_size(header, usable), other = is_size(header->size) && !sealed;
    if (other && usable_at(p, p - BEFORE)) return (struct misuse){0};
    bool some = header->size || is_site(header->site) || sum;
    bool fits = misuse_fits(header->size, usable) && !is_size_damaged(header, usable);
    if (some && fits) return of_damaged_sum(p - BEFORE, header);
    return other ? (struct misuse){0} : of_damaged_size(header, usable);
}

static uint64_t chunk_of(uintptr_t raw, uintptr_t known) {
    uint64_t word;
    return misuse_word_at(raw - WORD, known, &word) ? word : 0;
}

/* Examines a damaged header of a block that is in the table, which has the block's size and site. The damage is
 * harmless if, without us, the allocator would not have read the damaged words. The allocators read these words:
 *
 * - mimalloc reads nothing in front of a block.
 * - glibc reads the word where our size is.
 * - For a mapping, glibc also reads the word where our site is: without us, it holds the distance from the mapping's
 *   start.
 *
 * There is one exception: if only the upper bits of a mapping's size are damaged, glibc reads them, but the damage is
 * harmless. The kernel refuses to unmap so much, so the block stays. */
static struct misuse of_listed(uintptr_t p, const struct block *block, const struct header *header) {
    uintptr_t raw = p - header_distance(block->mark);
    uint64_t size = header->size ^ block->size, site = header_site(header) ^ block->site;
    bool mapping = block->mark & HEADER_MAPPED || chunk_of(raw, p - BEFORE) & CHUNK_MAPPED;
    bool harmless = !next_is_glibc || !(mapping ? size % CHUNK_MOST | site : size);
    return (struct misuse){SNAP_MISUSE_DAMAGED, harmless, NULL, block->size, block->site, 0};
}

/* Examines a pointer if the allocator behind ours is glibc or the built-in mimalloc. */
static struct misuse of_ours(uintptr_t p, const struct header *header) {
    struct block block;
    if (blocks_find(p, &block)) return of_listed(p, &block, header);
    if (header->freed == HEADER_FREED) return of_marked(p, *header);
    if (!next_is_glibc) return (struct misuse){0};
    if (is_in_cache(p - BEFORE, p - BEFORE) || is_in_bin(p - BEFORE) || was_in_bin(p))
        return misuse_freed(p, p - BEFORE, MISUSE_UNKNOWN, SNAP_SITE_UNKNOWN);
    return of_damaged(p, header);
}

struct misuse misuse_of(void *pointer) {
    uintptr_t p = (uintptr_t)pointer;
    const struct header *header = (const struct header *)p - 1;
    bool aligned = p % BEFORE == 0, foreign = next_found == NEXT_FOREIGN;
    bool was = foreign ? gone_is_unmapped(pointer) : gone_has(pointer);
    const struct gone *found = was ? gone_at(p) : NULL;
    struct misuse known = found ? of_gone(p, found) : (struct misuse){0};
    if (known.kind || !aligned || (found && p % OS_PAGE == 0)) return known;
    if (!foreign) return of_ours(p, header);
    return p % OS_PAGE && header->freed == HEADER_FREED ? of_marked(p, *header) : known;
}

/* --- at the end of the process --- */

/* Whether nothing was written over the 16 bytes in front of the block. `header` and `chunk` are two views of these
 * bytes. */
static bool is_as_written(const struct block *block, const struct header *header, const uint64_t chunk[2]) {
    if (block->mark & BLOCK_BARE) return !chunk_changed(block->mark, chunk);
    return header->freed == HEADER_FREED || (header->size == block->size && header_magic(header_mark_in(header)));
}

/* Another thread may free the block while this function looks at it. So the record's address is read again before the
 * report. */
static void look_at_live(struct snap_large *record, void *nothing) {
    struct block block;
    union {
        struct header header;
        uint64_t chunk[2];
    } front;
    uintptr_t p = os_load(&record->address);
    struct misuse found = {SNAP_MISUSE_DAMAGED, true, NULL, record->size, record->site, 0};
    (void)nothing;
    if (!blocks_find(p, &block) || !os_peek(&front, (void *)(p - BEFORE), sizeof front)) return;
    if (is_as_written(&block, &front.header, front.chunk)) return;
    if (os_load(&record->address) == p) misuse_report(p, &found, SNAP_MISUSE_END, (struct caller){0});
}

/* Examines no block if memory has been stowed, because looking at a stowed block would read its content back. */
void misuse_find_live(void) {
    if (!__atomic_load_n(&stow_watch, __ATOMIC_RELAXED)) blocks_visit_records(look_at_live, NULL);
}
