// parts_each visits each byte of a block once, in order, with the site of its part, whatever the number of parts. Parts
// may be added and taken meanwhile, because no lock is held during a visit: a visit reads the page map, which takes
// time, and a free must not wait for it.
#include <criterion/criterion.h>

#include "preload/blocks/parts.h"

enum { REST = 1, SITE = 2, OTHER = 3, PAGE = 4096, MOST = 100 };
static const uintptr_t BLOCK = 0x7f0000000000, BEHIND = 0x7f0010000000;

static bool reserve(uint32_t site) { return site != 0; }
static bool shift(uint32_t from, uint32_t to, uint64_t bytes) { return (void)bytes, from != to; }
static const struct parts_counts COUNTS = {reserve, shift};

static void assign(uintptr_t block, uint64_t start, uint64_t length, uint32_t site) {
    struct part part = {.block = block, .start = start, .length = length, .site = site};
    cr_assert(parts_add(&part, REST, &COUNTS));
}

static struct snap_large block_of(uint64_t size) {
    return (struct snap_large){.address = BLOCK, .size = size, .site = REST};
}

struct seen {
    uint64_t bytes[4]; /* by site */
    uintptr_t next;
    uint32_t visits;
    void (*meanwhile)(uint32_t visits);
};

static void see(uint32_t site, uintptr_t start, uint64_t length, void *context) {
    struct seen *self = context;
    cr_expect(start == self->next && length);
    self->next = start + length;
    self->bytes[site] += length;
    if (self->meanwhile) self->meanwhile(self->visits);
    self->visits++;
}

static struct seen see_all(uint64_t size, void (*meanwhile)(uint32_t visits)) {
    struct snap_large block = block_of(size);
    struct seen seen = {.next = BLOCK, .meanwhile = meanwhile};
    parts_each(&block, see, &seen);
    cr_expect(seen.next == BLOCK + size);
    return seen;
}

static void ignore(const struct part *part, void *context) { (void)part, (void)context; }

static void take_all(void) {
    parts_take(BLOCK, ignore, NULL);
    parts_take(BEHIND, ignore, NULL);
}

/* Every second page of BLOCK is a part. The later block BEHIND has a part, too. */
static void assign_every_second_page(uint32_t n) {
    for (uint32_t i = 0; i < n; i++) assign(BLOCK, (2 * i + 1) * PAGE, PAGE, SITE);
    assign(BEHIND, 0, PAGE, OTHER);
}

Test(parts, any_number_is_visited, .fini = take_all) {
    for (uint32_t n = 0; n <= MOST; n++) {
        assign_every_second_page(n);
        struct seen seen = see_all((2 * n + 1) * PAGE, NULL);
        cr_expect(seen.visits == 2 * n + 1 && seen.bytes[SITE] == n * PAGE && seen.bytes[REST] == (n + 1) * PAGE);
        cr_expect(seen.bytes[OTHER] == 0);
        take_all();
    }
}

static void assign_meanwhile(uint32_t visits) {
    if (visits == 0) assign(BLOCK, 2 * MOST * PAGE, PAGE, OTHER);
}

Test(parts, a_part_is_added_during_a_visit, .fini = take_all) {
    assign_every_second_page(MOST);
    struct seen seen = see_all((2 * MOST + 1) * PAGE, assign_meanwhile);
    cr_expect(seen.bytes[SITE] == MOST * PAGE && seen.bytes[OTHER] == PAGE && seen.bytes[REST] == MOST * PAGE);
}

/* During the first visit, the first half of the block becomes one part. parts_each copied the first 16 parts before
 * this visit, so it still visits them. */
static void cover_meanwhile(uint32_t visits) {
    if (visits == 0) assign(BLOCK, 0, (MOST + 1) * PAGE + PAGE / 2, OTHER);
}

Test(parts, a_part_that_is_visited_grows, .fini = take_all) {
    assign_every_second_page(MOST);
    struct seen seen = see_all((2 * MOST + 1) * PAGE, cover_meanwhile);
    cr_expect(seen.bytes[OTHER] > 0 &&
              seen.bytes[SITE] + seen.bytes[OTHER] + seen.bytes[REST] == (2 * MOST + 1) * PAGE);
}

static void take_meanwhile(uint32_t visits) {
    if (visits == 0) parts_take(BLOCK, ignore, NULL);
}

Test(parts, the_block_is_freed_during_a_visit, .fini = take_all) {
    assign_every_second_page(MOST);
    struct seen seen = see_all((2 * MOST + 1) * PAGE, take_meanwhile);
    cr_expect(seen.bytes[SITE] < MOST * PAGE && seen.bytes[SITE] > 0);
}

/* The block with these parts was freed, and a smaller block got its address. The visit is given the size of the
 * smaller block. */
Test(parts, beyond_the_block_are_not_visited, .fini = take_all) {
    assign_every_second_page(MOST);
    for (uint32_t pages = 1; pages < 2 * MOST; pages++) {
        struct seen seen = see_all(pages * PAGE, NULL);
        cr_expect(seen.bytes[SITE] == pages / 2 * PAGE && seen.bytes[REST] == (pages + 1) / 2 * PAGE);
    }
}
