// The 16 bytes in front of a block: what is written is read again, and no word of glibc's is taken for ours.
#include <criterion/criterion.h>

#include "header.h"

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

/* glibc keeps size | flags in that word: bit 3 is clear whatever the size. */
Test(header, no_chunk_of_glibc_looks_like_ours) {
    for (uint64_t size = 0; size < (uint64_t)1 << 33; size += (1 << 16) + 16)
        for (uint32_t flags = 0; flags < 8; flags++)
            cr_assert_not(header_magic((uint32_t)(size & ~(uint64_t)15) | flags));
}

Test(header, zero_is_nobodys) { cr_assert_not(header_magic(0)); }

Test(header, mark_is_the_low_half_of_the_word) {
    struct header header = {.size = 1, .mark = 0x11223344, .site = 0x55667788};
    cr_assert_eq(header.word, 0x5566778811223344u);
}

Test(header, key_leaves_the_size_alone_and_depends_on_address_and_secret) {
    uint64_t mask = ((uint64_t)1 << HEADER_SIZE_BITS) - 1;
    int same_address = 0, same_secret = 0;
    for (uintptr_t block = 16; block < 16000; block += 16) {
        cr_assert_eq(header_key(block, 12345) & mask, 0);
        same_secret += header_key(block, 12345) == header_key(block + 16, 12345);
        same_address += header_key(block, 12345) == header_key(block, 54321);
    }
    cr_assert_lt(same_secret, 20);
    cr_assert_lt(same_address, 20);
}
