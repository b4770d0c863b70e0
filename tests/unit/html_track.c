/* html_track.c — the bytes of items at several moments, and which items held or changed most. The number of stored
 * changes has a limit. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/html/html_track.h"

static struct html_track track;

static void add(uint32_t moment, size_t count, const uint64_t *bytes) {
    cr_assert_eq(html_track_add(&track, bytes, count, moment), 0);
}

static struct html_chosen choose(uint32_t moments, size_t most) {
    struct html_chosen chosen;
    cr_assert_eq(html_track_choose(&chosen, &track.moved, track.count, moments, most), 0);
    return chosen;
}

static void is_item(const struct html_chosen *chosen, size_t rank, uint32_t item, const uint64_t *bytes,
                    size_t moments) {
    uint64_t found[64];
    cr_assert_eq(chosen->list[rank].item, item, "%zu: %u", rank, chosen->list[rank].item);
    html_track_bytes(&track.moved, &chosen->list[rank], found, moments);
    for (size_t i = 0; i < moments; i++) cr_assert_eq(found[i], bytes[i], "%zu: %lu", i, (unsigned long)found[i]);
}

Test(html_track, what_held_or_changed_most_comes_first) {
    add(0, 3, (uint64_t[]){100, 0, 70});
    add(1, 3, (uint64_t[]){100, 0, 70});
    add(2, 4, (uint64_t[]){100, 0, 0, 60}); /* a fourth item is new */
    struct html_chosen chosen = choose(3, 2);
    cr_assert_eq(chosen.count, 2);
    cr_assert_eq(chosen.left_out, 1); /* an item that never held anything is not counted */
    is_item(&chosen, 0, 2, (uint64_t[]){70, 70, 0}, 3);
    is_item(&chosen, 1, 3, (uint64_t[]){0, 0, 60}, 3);
    free(chosen.list);
    chosen = choose(3, 9);
    cr_assert_eq(chosen.count, 3);
    cr_assert_eq(chosen.left_out, 0);
    is_item(&chosen, 2, 0, (uint64_t[]){100, 100, 100}, 3);
    free(chosen.list);
    html_track_end(&track);
}

Test(html_track, without_moments_nothing_is_chosen) {
    struct html_chosen chosen = choose(0, 9);
    cr_assert_eq(chosen.count + chosen.left_out, 0);
    free(chosen.list);
}

/* All items change at each moment, which makes more changes than are kept. The changes of small items are dropped;
 * those of large items are exact. */
Test(html_track, small_items_make_room, .timeout = 60) {
    enum { ITEMS = 100000, LARGE = 100, MOMENTS = 30 };
    uint64_t *bytes = calloc(ITEMS, sizeof *bytes), first[MOMENTS];
    for (uint32_t moment = 0; moment < MOMENTS; moment++) {
        for (uint32_t i = 0; i < ITEMS; i++) bytes[i] = (i % (ITEMS / LARGE) ? 100 : (1 << 20) - i) + moment;
        first[moment] = bytes[0];
        add(moment, ITEMS, bytes);
        cr_assert_lt(track.moved.count, LEAK_CHANGES_MOST);
    }
    struct html_chosen chosen = choose(MOMENTS, ITEMS);
    cr_assert_eq(chosen.count, LARGE, "%zu", chosen.count);
    is_item(&chosen, 0, 0, first, MOMENTS);
    free(chosen.list);
    free(bytes);
    html_track_end(&track);
}

/* Adds a moment at which all items have the same bytes. */
static void add_all(uint32_t moment, size_t count, uint64_t *bytes, uint64_t each) {
    for (size_t i = 0; i < count; i++) bytes[i] = each;
    add(moment, count, bytes);
}

/* An item that was dropped because it was small, and then leaks, is followed again: leaks are what the page is for. */
Test(html_track, a_dropped_item_that_grows_comes_back, .timeout = 60) {
    enum { ITEMS = LEAK_CHANGES_MOST / 2 + 2, GROWN = 7, LATER = 9 };
    uint64_t *bytes = calloc(ITEMS, sizeof *bytes);
    add_all(0, ITEMS, bytes, 100);
    add_all(1, ITEMS, bytes, 101);
    cr_assert_eq(html_track_dropped(&track), ITEMS);
    bytes[GROWN] = 1 << 30;
    add(2, ITEMS, bytes);
    bytes[GROWN] += 5, bytes[LATER] = 4096;
    add(3, ITEMS, bytes);
    cr_assert_eq(html_track_dropped(&track), ITEMS - 2);
    struct html_chosen chosen = choose(4, ITEMS);
    cr_assert_eq(chosen.count, 2);
    is_item(&chosen, 0, GROWN, (uint64_t[]){0, 0, 1 << 30, (1 << 30) + 5}, 4);
    is_item(&chosen, 1, LATER, (uint64_t[]){0, 0, 0, 4096}, 4);
    free(chosen.list);
    free(bytes);
    html_track_end(&track);
}

/* Figures of a damaged file. */
Test(html_track, no_size_is_too_large_to_be_dropped, .timeout = 60) {
    enum { ITEMS = LEAK_CHANGES_MOST / 2 + 2 };
    uint64_t *bytes = calloc(ITEMS, sizeof *bytes);
    add_all(0, ITEMS, bytes, UINT64_MAX);
    add_all(1, ITEMS, bytes, UINT64_MAX - 1);
    cr_assert_lt(track.moved.count, LEAK_CHANGES_MOST);
    free(bytes);
    html_track_end(&track);
}
