/* header.h — the 16 bytes in front of each block.
 * In: a block's size, site and where it really starts. Out: the same, from the pointer that the program has, whether it
 * is ours at all, and whether its header is as we wrote it. It must never read more than these bytes.
 *
 * The word in front of the block is its size, where glibc has a chunk's: its upper bytes are 0 there, too. A program
 * that writes a 0 in front of a block (an end of text that it cut off one time too often) harms neither. The seal is
 * the sum of everything else, so that no field changes alone unseen; and it is never a small number, as the words are
 * that are found where there is no header. */
#ifndef MEMSTOW_HEADER_H
#define MEMSTOW_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct header {
    uint32_t site; /* its lower HEADER_SITE_BITS; above them a key, where it has one */
    uint32_t seal; /* mark + site + the lower 16 bits of size */
    union {
        uint64_t size; /* as the program asked; below 2^HEADER_SIZE_BITS */
        struct {
            uint32_t size_low;
            uint32_t freed; /* HEADER_FREED once the block was given back (header_end) */
        };
    };
};
_Static_assert(sizeof(struct header) == 16, "malloc's alignment is kept");

/* mark: magic (6 bits), two bits for special blocks, generation of the process (8), distance to the raw block in
 * 16-byte units (12), bit 3, and three more bits for special blocks. */
enum {
    HEADER_MAGIC = (int)0xF8000008,
    HEADER_MAGIC_MASK = (int)0xFC000008,
    HEADER_PARTS = 1 << 25,  /* other owners have parts of it (parts.h): never on the fast path */
    HEADER_MAPPED = 1 << 24, /* it is a mapping of its own (heaps.h): the same */
    HEADER_GENERATION_SHIFT = 16,
    HEADER_DISTANCE_SHIFT = 4,
    HEADER_EARLY = 1 << 0,  /* from glibc, before tracking began; not counted */
    HEADER_LISTED = 1 << 2, /* known by address (blocks.h): never on the fast path */
    HEADER_SIZE_BITS = 47,
    HEADER_SITE_BITS = 21,
    HEADER_DISTANCE_MAX = 0xFFF * 16,
};
/* Of no size that a block has, and of none that glibc writes there. */
#define HEADER_FREED 0xDEADB10Cu
/* What is added to the seal of a freed block: no mark has magic then. */
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

/* The mark that it was sealed with, if it was. */
static inline uint32_t header_mark_in(const struct header *self) {
    return self->seal - self->site - (uint16_t)self->size;
}

static inline uint32_t header_site(const struct header *self) { return self->site & ((1u << HEADER_SITE_BITS) - 1); }

/* Whether it is that of a block of less than 2^16 bytes with this mark, and no key: as one sum, which no larger block's
 * comes to, because its mark is another in the lower 16 bits. */
static inline bool header_is_small(const struct header *self, uint32_t mark) {
    return (uint64_t)mark + self->site + self->size == self->seal;
}

/* Bits that depend on the address and a secret of the process, above those of a site. */
static inline uint32_t header_key(uintptr_t block, uint64_t secret) {
    return (uint32_t)((block ^ secret) * 0x9E3779B97F4A7C15u >> 32) >> HEADER_SITE_BITS << HEADER_SITE_BITS;
}

/* --- what a block still says once it was freed --- */

/* The header may stay in free memory for long, and glibc may write the size of a chunk over the one in it. The seal is
 * broken, so that it is nobody's header then. */
static inline void header_end(struct header *self) {
    __asm__("addl %1, %0" : "+m"(self->seal) : "i"(HEADER_BROKEN)); /* in C it is four instructions of each free */
    self->freed = HEADER_FREED;
}

/* As it was before header_end, of a block of less than 2^32 bytes or whose size is written anew. */
static inline void header_revive(struct header *self) {
    self->seal -= HEADER_BROKEN;
    self->freed = 0;
}

/* Its header is overwritten: by glibc's list of what is free, which begins where the header does. What follows it is
 * left alone, but for the first 16 bytes of large chunks. */
struct header_note {
    uint32_t caller; /* lower half of the return address of the call that freed it */
    uint32_t site;   /* and above it what tells notes of the process of that generation */
};
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

/* Where the note of a block of this size is; NULL: it has no room for one, unless its allocator left some over, which
 * is looked up as late as it can be. */
static inline struct header_note *header_note(void *block, uint64_t size, const bool *spare) {
    if (__builtin_expect(size - HEADER_NOTE_LEAST < HEADER_NOTE_FAR - HEADER_NOTE_LEAST, 1)) return block;
    if (size >= HEADER_NOTE_FAR) return (struct header_note *)block + 2;
    return __atomic_load_n(spare, __ATOMIC_RELAXED) ? block : NULL;
}

#endif
