/* header.h — the 16 bytes in front of a block. (Some large and page-aligned blocks have none: blocks.h.)
 * In: a block's size, its site and its real start. Out: the same facts from the program's pointer; whether the block is
 * ours; whether the header is intact. It reads these 16 bytes only, and the note in a freed block.
 *
 * The size is the last word of the header, just in front of the block. The last word of glibc's own header is a size,
 * too. The upper bytes of both sizes are 0. So a program that writes one byte 0 just in front of a block does no harm,
 * with memstow as without it. (Loops that cut off the end of a text do that when they go one byte too far.)
 *
 * The seal is a sum of the mark, the site and the size, so one changed field is noticed. Without a key, the seal is
 * never a small number. So memory without a header, which often has a small number in the seal's place, is not taken
 * for a header. */
#ifndef MEMSTOW_HEADER_H
#define MEMSTOW_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct header {
    uint32_t site; /* the site in the lower HEADER_SITE_BITS; above them a key, or 0 */
    uint32_t seal; /* mark + site + the lower 16 bits of size */
    union {
        uint64_t size; /* as the program asked; below 2^HEADER_SIZE_BITS */
        struct {
            uint32_t size_low;
            uint32_t freed; /* HEADER_FREED after the block was freed (header_end) */
        };
    };
};
_Static_assert(sizeof(struct header) == 16, "malloc's alignment is kept");

/* The mark, from the highest bit on: a magic number (6 bits), two bits for special blocks, the generation of the
 * process (8), the distance to the raw block in units of 16 bytes (12), a bit that is always set, and three more bits
 * for special blocks. */
enum {
    HEADER_MAGIC = (int)0xF8000008,
    HEADER_MAGIC_MASK = (int)0xFC000008,
    HEADER_PARTS = 1 << 25,  /* other owners have parts of the block (parts.h): never on the fast path (hook_host.c) */
    HEADER_MAPPED = 1 << 24, /* the block is a mapping of its own (heaps.h): never on the fast path */
    HEADER_GENERATION_SHIFT = 16,
    HEADER_DISTANCE_SHIFT = 4,
    HEADER_EARLY = 1 << 0,  /* from glibc, before tracking began; not counted */
    HEADER_LISTED = 1 << 2, /* the block is in the table (blocks.h): never on the fast path */
    HEADER_SIZE_BITS = 47,
    HEADER_SITE_BITS = 21,
    HEADER_DISTANCE_MAX = 0xFFF * 16,
};
/* What header_end writes into the upper half of `size`. No block has such a size, and glibc never writes one. */
#define HEADER_FREED 0xDEADB10Cu
/* Added to the seal of a freed block. The mark that follows from the new seal never has the magic number. */
#define HEADER_BROKEN 0x80000000u

static inline uint32_t header_mark(uint32_t generation, uint32_t distance) {
    return (uint32_t)HEADER_MAGIC | (generation & 0xFF) << HEADER_GENERATION_SHIFT |
           distance / 16 << HEADER_DISTANCE_SHIFT;
}

static inline uint32_t header_distance(uint32_t mark) { return (mark >> HEADER_DISTANCE_SHIFT & 0xFFF) * 16; }

static inline uint32_t header_generation(uint32_t mark) { return mark >> HEADER_GENERATION_SHIFT & 0xFF; }

static inline bool header_magic(uint32_t mark) {
    return (mark & (uint32_t)HEADER_MAGIC_MASK) == (uint32_t)HEADER_MAGIC && header_distance(mark) != 0;
}

static inline uint32_t header_seal(uint32_t mark, uint32_t site, uint64_t size) { return mark + site + (uint16_t)size; }

/* The mark that the header was sealed with. It is valid only if the header is intact. */
static inline uint32_t header_mark_in(const struct header *self) {
    return self->seal - self->site - (uint16_t)self->size;
}

static inline uint32_t header_site(const struct header *self) { return self->site & ((1u << HEADER_SITE_BITS) - 1); }

/* Whether the header belongs to a block of less than 2^16 bytes with this mark and without a key. One sum checks all
 * three: the sum of a larger block differs, because its seal has only the lower 16 bits of its size. */
static inline bool header_is_small(const struct header *self, uint32_t mark) {
    return (uint64_t)mark + self->site + self->size == self->seal;
}

/* A key from the address, the mark and a secret of the process, in the bits above the site. It is never 0, because a
 * block without a key has 0 there. */
static inline uint32_t header_key(uintptr_t block, uint32_t mark, uint64_t secret) {
    uint64_t all = block ^ secret ^ (uint64_t)mark << 32;
    uint32_t key = (uint32_t)(all * 0x9E3779B97F4A7C15u >> 32) >> HEADER_SITE_BITS;
    return (key ? key : 1) << HEADER_SITE_BITS;
}

/* Whether a block may take the fast path: its header lies at the beginning of the raw block, and the block has no
 * special property. */
static inline bool header_is_plain(uint32_t mark) {
    return mark == header_mark(header_generation(mark), sizeof(struct header));
}

/* Whether a block with this mark can have this size. A size of 2^16 or more needs the flag HEADER_LISTED or
 * HEADER_EARLY; a size of 2^HEADER_SIZE_BITS or more is always wrong. The seal does not show damage to the upper bits
 * of a size, because only the lower 16 bits go into the seal. */
static inline bool header_size_fits(uint32_t mark, uint64_t size) {
    return size >> 16 == 0 || (mark & (HEADER_LISTED | HEADER_EARLY) && size >> HEADER_SIZE_BITS == 0);
}

/* --- headers and notes of freed blocks --- */

/* Breaks the seal of a block that is freed, so that nobody takes its header for a valid one: the header may stay in
 * free memory for a long time. HEADER_FREED alone is not enough, because glibc may write the size of a chunk over
 * it. */
static inline void header_end(struct header *self) {
    /* This is one instruction. The compiler would make four, in each free. */
    __asm__("addl %1, %0" : "+m"(self->seal) : "i"(HEADER_BROKEN));
    self->freed = HEADER_FREED;
}

/* Undoes header_end, except that the upper half of the size becomes 0. So call it only for a block of less than 2^32
 * bytes, or write the size anew afterwards. */
static inline void header_revive(struct header *self) {
    self->seal -= HEADER_BROKEN;
    self->freed = 0;
}

/* The note in a freed block says which call freed it. It does not lie in the header, because glibc's free list
 * overwrites the header. glibc leaves the bytes behind the header alone, except for the first 16 bytes in a large
 * chunk. */
struct header_note {
    uint32_t caller; /* lower half of the return address of the call that freed the block */
    uint32_t site;   /* the site; above it a sign for the generation of the process */
};
/* Sizes in bytes: a block below HEADER_NOTE_LEAST has no room for a note. From HEADER_NOTE_FAR on, the note lies behind
 * the first 16 bytes of the block. */
enum { HEADER_NOTE_LEAST = sizeof(struct header_note), HEADER_NOTE_FAR = 960 };

static inline uint32_t header_note_sign(uint32_t generation) {
    return (0x500 | (generation & 0xFF)) << HEADER_SITE_BITS;
}

static inline uint32_t header_note_site(const struct header_note *note) {
    return note->site & ((1u << HEADER_SITE_BITS) - 1);
}

static inline bool header_note_is(const struct header_note *note, uint32_t generation) {
    return note->site - header_note_site(note) == header_note_sign(generation);
}

/* Returns where the note of a block of this size lies, or NULL if the block is too small and its allocator left no
 * spare bytes behind it. *spare says whether the allocator left spare bytes. It is read only if the block is too
 * small. */
static inline struct header_note *header_note(void *block, uint64_t size, const bool *spare) {
    if (__builtin_expect(size - HEADER_NOTE_LEAST < HEADER_NOTE_FAR - HEADER_NOTE_LEAST, 1)) return block;
    if (size >= HEADER_NOTE_FAR) return (struct header_note *)block + 2;
    return __atomic_load_n(spare, __ATOMIC_RELAXED) ? block : NULL;
}

#endif
