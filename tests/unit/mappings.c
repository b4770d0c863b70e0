// The table of mappings is compared with a model that has an entry for each page, and used by several threads at once.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/count/account.h"
#include "preload/count/counters.h"
#include "preload/ledger/ledger.h"
#include "preload/blocks/mappings.h"
#include "preload/count/site.h"

enum { PAGE = 4096, PAGES = 300, SITES = 4, OPERATIONS = 20000 };
static const uintptr_t BASE = 0x7f0000000000;

static struct model_page { uint8_t kind, site; /* kind 0: not mapped */ } model[PAGES], found[PAGES];
static uint64_t records[SITES], overlaps;

static void begin(void) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
}

static uintptr_t at(uint32_t page) { return BASE + (uintptr_t)page * PAGE; }

static void draw_record(struct snap_mapping *record, void *context) {
    (void)context;
    uint64_t first = (record->address - BASE) / PAGE;
    cr_assert(first < PAGES && first + record->length / PAGE <= PAGES && record->length % PAGE == 0);
    for (uint64_t i = 0; i < record->length / PAGE; i++) {
        overlaps += found[first + i].kind != 0;
        found[first + i] = (struct model_page){(uint8_t)record->kind, (uint8_t)record->site};
    }
    if (record->kind == SNAP_MAP_ANONYMOUS || record->kind == SNAP_MAP_BRK) records[record->site - SNAP_SITE_FIRST]++;
}

static uint64_t bytes_of(uint8_t kind, uint8_t site) {
    uint64_t bytes = 0;
    for (int i = 0; i < PAGES; i++) bytes += model[i].kind == kind && (!site || model[i].site == site) ? PAGE : 0;
    return bytes;
}

static void check(uint32_t operation) {
    memset(found, 0, sizeof found);
    memset(records, 0, sizeof records);
    overlaps = 0;
    mappings_visit_records(draw_record, NULL);
    cr_assert_eq(overlaps, 0, "operation %u", operation);
    cr_assert_eq(memcmp(found, model, sizeof model), 0, "operation %u", operation);
    cr_assert_eq(ledger_head->file_mapped_live, bytes_of(SNAP_MAP_FILE, 0));
    cr_assert_eq(ledger_head->reserved_live, bytes_of(SNAP_MAP_RESERVED, 0));
    uint64_t live = bytes_of(SNAP_MAP_ANONYMOUS, 0) + bytes_of(SNAP_MAP_BRK, 0);
    cr_assert_eq((uint64_t)ledger_head->mapped_live, live, "operation %u", operation);
    for (uint8_t i = 0; i < SITES; i++) {
        struct live site = counters_site_live(SNAP_SITE_FIRST + i);
        cr_assert_eq(site.bytes,
                     bytes_of(SNAP_MAP_ANONYMOUS, SNAP_SITE_FIRST + i) + bytes_of(SNAP_MAP_BRK, SNAP_SITE_FIRST + i),
                     "operation %u", operation);
        cr_assert_eq(site.blocks, records[i], "operation %u", operation);
    }
}

static void model_set(uint32_t page, uint32_t count, struct model_page value) {
    for (uint32_t i = 0; i < count; i++) model[page + i] = value;
}

static bool all_mapped(uint32_t page, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!model[page + i].kind) return false;
    return true;
}

static void move(uint32_t page, uint32_t count, unsigned *seed) {
    uint32_t grown = 1 + (uint32_t)rand_r(seed) % (2 * count), to = (uint32_t)rand_r(seed) % (PAGES - grown);
    if (!all_mapped(page, count) || (to < page + count && page < to + grown)) return; /* the kernel refuses both */
    struct model_page old[PAGES];
    memcpy(old, model + page, count * sizeof *old);
    model_set(page, count, (struct model_page){0});
    for (uint32_t i = 0; i < grown; i++) model[to + i] = old[i < count ? i : count - 1];
    mappings_put(mappings_take(at(page), count * PAGE), at(to), grown * PAGE);
}

static void protect(uint32_t page, uint32_t count, bool accessible) {
    for (uint32_t i = page; i < page + count; i++)
        if (model[i].kind == (accessible ? SNAP_MAP_RESERVED : SNAP_MAP_ANONYMOUS))
            model[i].kind = accessible ? SNAP_MAP_ANONYMOUS : SNAP_MAP_RESERVED;
    mappings_protect(at(page), count * PAGE, accessible);
}

static void add(uint32_t page, uint32_t count, unsigned *seed) {
    struct model_page value = {(uint8_t)(1 + rand_r(seed) % 4), (uint8_t)(SNAP_SITE_FIRST + rand_r(seed) % SITES)};
    model_set(page, count, value);
    /* lengths are rounded up to whole pages, except those of the break */
    unsigned less = value.kind == SNAP_MAP_BRK ? 0 : (unsigned)rand_r(seed) % PAGE;
    mappings_add(at(page), count * PAGE - less, value.kind, false, value.site);
}

static void random_operations(unsigned seed, uint32_t longest) {
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        uint32_t page = (uint32_t)rand_r(&seed) % (PAGES - longest), count = 1 + (uint32_t)rand_r(&seed) % longest;
        switch (rand_r(&seed) % 8) {
        case 0:
        case 1:
            add(page, count, &seed);
            break;
        case 2:
            model_set(page, count, (struct model_page){0});
            mappings_drop(mappings_take(at(page), count * PAGE));
            break;
        case 3:
            mappings_restore(mappings_take(at(page), count * PAGE));
            break;
        case 4:
            move(page, count, &seed);
            break;
        case 5:
            protect(page, count, false);
            break;
        case 6:
            protect(page, count, true);
            break;
        default:
            mappings_advise(at(page), count * PAGE, rand_r(&seed) % 20);
        }
        if (i % 16 == 0) check(i);
    }
    mappings_drop(mappings_take(at(0), PAGES * PAGE));
    memset(model, 0, sizeof model);
    check(OPERATIONS);
    cr_assert_eq(ledger_head->lost[SNAP_LOST_MAPPINGS], 0);
}

Test(mappings, random_short_ranges, .init = begin) { random_operations(1, 7); }
Test(mappings, random_long_ranges, .init = begin) { random_operations(2, 100); }

/* While a range is being unmapped, another thread's new mapping may come to lie there. */
Test(mappings, taken_is_not_mixed_up_with_new, .init = begin) {
    mappings_add(at(0), 10 * PAGE, SNAP_MAP_ANONYMOUS, false, SNAP_SITE_FIRST);
    uint32_t ticket = mappings_take(at(2), 3 * PAGE);
    mappings_add(at(2), 3 * PAGE, SNAP_MAP_ANONYMOUS, false, SNAP_SITE_FIRST + 1);
    mappings_drop(ticket);
    model_set(0, 10, (struct model_page){SNAP_MAP_ANONYMOUS, SNAP_SITE_FIRST});
    model_set(2, 3, (struct model_page){SNAP_MAP_ANONYMOUS, SNAP_SITE_FIRST + 1});
    check(0);
}

/* If the kernel refuses a call, the table is restored: no mapping is longer than before, although the call asked for a
 * longer range. */
Test(mappings, restored_is_as_it_was, .init = begin) {
    mappings_add(at(4), 2 * PAGE, SNAP_MAP_ANONYMOUS, false, SNAP_SITE_FIRST);
    mappings_add(at(9), PAGE, SNAP_MAP_FILE, false, SNAP_SITE_FIRST);
    model_set(4, 2, (struct model_page){SNAP_MAP_ANONYMOUS, SNAP_SITE_FIRST});
    model_set(9, 1, (struct model_page){SNAP_MAP_FILE, SNAP_SITE_FIRST});
    mappings_restore(mappings_take(at(0), 50 * PAGE));
    check(0);
}

Test(mappings, the_break_moves_by_bytes, .init = begin) {
    for (int i = 0; i < 10; i++) mappings_add(BASE + 100 * (uintptr_t)i, 100, SNAP_MAP_BRK, false, SNAP_SITE_FIRST);
    cr_assert_eq(ledger_head->mapped_live, 1000);
    mappings_drop(mappings_take(BASE + 750, 250));
    cr_assert_eq(ledger_head->mapped_live, 750);
}

/* MREMAP_FIXED moves unknown memory over a tracked mapping. */
Test(mappings, put_of_nothing_clears_its_target, .init = begin) {
    mappings_add(at(20), 4 * PAGE, SNAP_MAP_ANONYMOUS, false, SNAP_SITE_FIRST);
    mappings_put(mappings_take(at(100), PAGE), at(21), PAGE);
    model_set(20, 4, (struct model_page){SNAP_MAP_ANONYMOUS, SNAP_SITE_FIRST});
    model[21] = (struct model_page){0};
    check(0);
}

enum { THREADS = 4, ROUNDS = 4000 };

/* Each thread has pages of its own, and ends with one mapping of two pages. */
static void *work(void *argument) {
    uint32_t first = (uint32_t)(uintptr_t)argument * 50, site = SNAP_SITE_FIRST + first / 50 % SITES;
    for (int i = 0; i < ROUNDS; i++) {
        mappings_add(at(first), 20 * PAGE, SNAP_MAP_ANONYMOUS, false, site);
        mappings_drop(mappings_take(at(first + 3), PAGE));
        mappings_protect(at(first + 8), 2 * PAGE, false);
        mappings_advise(at(first), 4 * PAGE, 4);
        mappings_put(mappings_take(at(first + 10), 10 * PAGE), at(first + 30), 15 * PAGE);
        mappings_drop(mappings_take(at(first), 50 * PAGE));
    }
    mappings_add(at(first), 2 * PAGE, SNAP_MAP_ANONYMOUS, false, site);
    return NULL;
}

Test(mappings, threads, .init = begin) {
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (uint32_t t = 0; t < THREADS; t++)
        model_set(t * 50, 2, (struct model_page){SNAP_MAP_ANONYMOUS, (uint8_t)(SNAP_SITE_FIRST + t % SITES)});
    cr_assert_eq(ledger_head->lost[SNAP_LOST_MAPPINGS], 0);
    check(0);
}
