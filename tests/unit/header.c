// The 16 bytes in front of a block: they are read as they were written, no other bytes are mistaken for a header, and
// each changed byte is noticed.
#include <criterion/criterion.h>

#include "preload/blocks/header.h"

Test(header, mark_keeps_generation_and_distance) {
    for (uint32_t generation = 0; generation < 256; generation++)
        for (uint32_t distance = 16; distance <= HEADER_DISTANCE_MAX; distance += 16) {
            uint32_t mark = header_mark(generation, distance);
            cr_assert(header_magic(mark));
            cr_assert_eq(header_generation(mark), generation);
            cr_assert_eq(header_distance(mark), distance);
        }
}

Test(header, flags_change_nothing_else) {
    uint32_t flags[] = {HEADER_EARLY, HEADER_LISTED, 1 << 1};
    for (int i = 0; i < 3; i++) {
        uint32_t mark = header_mark(7, 48) | flags[i];
        cr_assert(header_magic(mark));
        cr_assert_eq(header_generation(mark), 7);
        cr_assert_eq(header_distance(mark), 48);
    }
}

Test(header, zero_is_nobodys) { cr_assert_not(header_magic(0)); }

static struct header sealed(uint32_t mark, uint32_t site, uint64_t size) {
    return (struct header){.site = site, .seal = header_seal(mark, site, size), .size = size};
}

Test(header, the_seal_gives_the_mark_back) {
    const uint32_t sites[] = {0, 2, 4711, (1u << HEADER_SITE_BITS) - 1};
    const uint64_t sizes[] = {0, 1, 65535, 65536, (uint64_t)1 << 33, ((uint64_t)1 << HEADER_SIZE_BITS) - 1};
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            uint32_t mark = header_mark(255, HEADER_DISTANCE_MAX) | HEADER_PARTS | HEADER_MAPPED | 7;
            struct header header = sealed(mark, sites[i], sizes[k]);
            cr_assert_eq(header_mark_in(&header), mark);
            cr_assert_eq(header_site(&header), sites[i]);
        }
}

/* Larger blocks are listed; their mark says so. */
Test(header, only_small_blocks_are_small) {
    const uint32_t mark = header_mark(3, 16);
    for (uint64_t size = 0; size < 1 << 20; size++) {
        bool large = size >= 1 << 16;
        for (uint32_t flag = 0; flag < 8; flag++) {
            struct header header = sealed(mark | flag, 77, size);
            if (large && !(flag & HEADER_LISTED)) continue;
            cr_assert_eq(header_is_small(&header, mark), !large && flag == 0, "%lu %u", size, flag);
        }
    }
}

/* Each change of one byte of a header is noticed, and so is the same change of all bytes from any byte of the header to
 * its end. Programs sometimes write a 0 to the byte just in front of a block. That does no harm, because this byte and
 * the five bytes before it are 0 in the header of a small block. */
Test(header, no_byte_changes_unseen) {
    const uint32_t mark = header_mark(0, 16);
    const struct header whole = sealed(mark, 4711, 24);
    for (int length = 1; length <= 16; length++)
        for (int value = 1; value < 256; value++) {
            struct header last = whole, one = whole;
            for (int i = 16 - length; i < 16; i++) ((uint8_t *)&last)[i] ^= (uint8_t)value;
            ((uint8_t *)&one)[16 - length] ^= (uint8_t)value;
            bool of_site = last.site < 1u << HEADER_SITE_BITS; /* other blocks are looked at again */
            cr_assert_not(header_is_small(&last, mark) && of_site, "%d bytes, %d", length, value);
            cr_assert_not(header_is_small(&one, mark), "byte %d, %d", length, value);
        }
    for (int i = 10; i < 16; i++) cr_assert_eq(((const uint8_t *)&whole)[i], 0);
}

/* The seal contains only 16 bits of the size. */
Test(header, a_size_beyond_the_seal_needs_a_flag) {
    const uint32_t plain = header_mark(3, 16);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t size = (uint64_t)1 << bit | 24;
        cr_assert_eq(header_size_fits(plain, size), bit < 16);
        cr_assert_eq(header_size_fits(plain | HEADER_LISTED, size), bit < HEADER_SIZE_BITS);
        cr_assert_eq(header_size_fits(plain | HEADER_EARLY, size), bit < HEADER_SIZE_BITS);
    }
}

/* A plain block has no key. When one byte of its header's site or seal has changed, the mark is either invalid, or it
 * is the mark of a block with a key or of a later generation. */
Test(header, one_changed_byte_leaves_no_plain_mark) {
    const struct header whole = sealed(header_mark(0, 16), 4711, 24);
    cr_assert(header_is_plain(header_mark_in(&whole)));
    for (int byte = 0; byte < 8; byte++)
        for (int value = 1; value < 256; value++) {
            struct header one = whole;
            ((uint8_t *)&one)[byte] ^= (uint8_t)value;
            uint32_t mark = header_mark_in(&one);
            bool plain = header_magic(mark) && header_is_plain(mark);
            cr_assert(!plain || header_generation(mark) > 0, "byte %d, %d", byte, value);
        }
}

Test(header, a_freed_one_is_no_block) {
    struct header header = sealed(header_mark(0, 16), 4711, 24);
    header_end(&header);
    cr_assert_not(header_is_small(&header, header_mark(0, 16)));
    cr_assert_eq(header.size_low, 24);
    cr_assert_neq(header.size >> HEADER_SIZE_BITS, 0);
    header_revive(&header);
    cr_assert(header_is_small(&header, header_mark(0, 16)));
}

/* glibc may begin a chunk at any place in free memory. */
Test(header, a_freed_one_with_the_size_of_a_chunk_is_no_block) {
    for (uint64_t chunk = 32; chunk < 1 << 17; chunk += 16)
        for (uint64_t flags = 0; flags < 8; flags++) {
            struct header header = sealed(header_mark(0, 16), 4711, 2993);
            header_end(&header);
            header.size = chunk | flags;
            cr_assert_not(header_magic(header_mark_in(&header)), "%lu", chunk | flags);
        }
}

Test(header, key_leaves_the_site_alone_and_depends_on_address_mark_and_secret) {
    const uint32_t mark = header_mark(0, 64);
    int same_address = 0, same_secret = 0, same_mark = 0;
    for (uintptr_t block = 16; block < 160000; block += 16) {
        uint32_t key = header_key(block, mark, 12345);
        cr_assert_eq(key & ((1u << HEADER_SITE_BITS) - 1), 0);
        cr_assert_neq(key, 0, "a plain block has 0 there");
        same_secret += key == header_key(block + 16, mark, 12345);
        same_address += key == header_key(block, mark, 54321);
        for (uint32_t bit = 0; bit < 26; bit++) same_mark += key == header_key(block, mark ^ 1u << bit, 12345);
    }
    cr_assert_lt(same_secret, 200);
    cr_assert_lt(same_address, 200);
    cr_assert_lt(same_mark, 200);
}

/* A note lies where glibc writes nothing: directly behind the header or, in blocks of 960 bytes and more, 16 bytes
 * further behind. */
Test(header, a_note_has_room_in_its_block) {
    static char block[2048];
    const bool none = false, spare = true;
    for (uint64_t size = 0; size < 2000; size++) {
        const struct header_note *note = header_note(block, size, &none);
        cr_assert_eq(note == NULL, size < sizeof *note);
        if (note) cr_assert_leq((const char *)(note + 1), block + size);
        if (size >= 984) cr_assert_geq((const char *)note, block + 16); /* a chunk of 1,024 bytes */
    }
    cr_assert_eq((void *)header_note(block, 0, &spare), block);
    struct header_note note = {1, header_note_sign(3) + 4711}, other = {1, 4711};
    cr_assert(header_note_is(&note, 3));
    cr_assert_not(header_note_is(&note, 4)); /* a parent process wrote this note, and its sites differ */
    cr_assert_not(header_note_is(&other, 3));
    cr_assert_eq(header_note_site(&note), 4711);
}
