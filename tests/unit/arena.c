// The arena: a table takes only the pages that it needs, and not a whole large page for its last bytes. Dropped memory
// reads as zeros, except for pages that it shares with its neighbours.
#include <criterion/criterion.h>
#include <string.h>

#include "preload/base/arena.h"
#include "preload/shared/os.h"

enum { LARGE_PAGE = 2 << 20, ENTRY = 16 };

static size_t arena_bytes(void) {
    struct snap_range ranges[ARENA_RANGES];
    size_t bytes = 0;
    for (uint32_t n = arena_ranges(ranges); n-- > 0;) bytes += ranges[n].length;
    return bytes;
}

Test(arena, a_table_takes_no_large_page_for_its_last_bytes) {
    size_t before = arena_bytes();
    char *table = arena_take_table(LARGE_PAGE + ENTRY);
    cr_assert_not_null(table);
    cr_assert_eq((uintptr_t)table % LARGE_PAGE, 0);
    table[LARGE_PAGE + ENTRY - 1] = 1;
    cr_assert_eq(arena_bytes() - before, LARGE_PAGE + OS_PAGE);
}

Test(arena, what_was_dropped_is_zero_in_whole_pages) {
    enum { LENGTH = 4 * OS_PAGE };
    char *table = arena_take(LENGTH + 2 * OS_PAGE);
    cr_assert_not_null(table);
    char *page = (char *)os_round_up((uintptr_t)table, OS_PAGE), *start = page + ENTRY;
    memset(page, 7, LENGTH + OS_PAGE);
    arena_drop(start, LENGTH);
    for (char *p = page; p < page + LENGTH + OS_PAGE; p++)
        cr_assert_eq(*p, p < page + OS_PAGE || p >= page + LENGTH ? 7 : 0, "at %td", p - page);
    arena_drop(start, OS_PAGE); // no whole page
    cr_assert_eq(page[ENTRY], 7);
}
