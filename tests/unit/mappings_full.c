// If the table of mappings has no event left, an assignment is refused, and changes nothing. Here a thread stands still
// inside of the table until other threads have used up the events.
// build: -Wl,--wrap=account_map
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include "preload/count/account.h"
#include "preload/ledger/ledger.h"
#include "preload/blocks/mappings.h"
#include "preload/owners/owners.h"
#include "preload/count/site.h"
#include "preload/count/tags.h"
#include "preload/base/seal.h"

enum { PAGE = 4096, EVENTS = 1 << 15 };
static const uintptr_t BASE = 0x7f0000000000, HELD = 0x7f8000000000;

static int held, let_go;
static uint64_t assigned_bytes;

void __real_account_map(uint32_t site, uint64_t bytes, uint64_t blocks);
void __wrap_account_map(uint32_t site, uint64_t bytes, uint64_t blocks);

/* The thread that applies an event of three pages waits here, inside the table, until it is let go. */
void __wrap_account_map(uint32_t site, uint64_t bytes, uint64_t blocks) {
    __real_account_map(site, bytes, blocks);
    if (bytes != 3 * PAGE) return;
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE)) continue;
}

static void begin(void) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
    tags_begin();
}

static void *hold_table(void *unused) {
    mappings_add(HELD, 3 * PAGE, SNAP_MAP_ANONYMOUS, false, SNAP_SITE_FIRST);
    return unused;
}

static void add_assigned(struct snap_mapping *record, void *model) {
    struct snap_tag tag = tags_at(snap_site_tag(site_record(record->site)));
    if (tag.model == *(uint32_t *)model) assigned_bytes += record->length;
}

static uint64_t bytes_of(uint32_t model) {
    assigned_bytes = 0;
    mappings_visit_records(add_assigned, &model);
    return assigned_bytes;
}

Test(mappings_full, assignment_says_so, .init = begin) {
    uint64_t keys[2] = {1, 2};
    uint32_t model = (uint32_t)owners_open(MEMSTOW_MODEL, "model", "", keys);
    mappings_add(BASE, 8 * PAGE, SNAP_MAP_ANONYMOUS, false, SNAP_SITE_FIRST);
    cr_assert_eq(mappings_assign(BASE, PAGE, model), 0);
    cr_assert_eq(bytes_of(model), PAGE);

    pthread_t holder;
    cr_assert_eq(pthread_create(&holder, NULL, hold_table, NULL), 0);
    while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE)) continue;
    seal_leave(true); /* as in a sandbox, where memstow must not wait */
    uint64_t lost = ledger_head->lost[SNAP_LOST_MAPPINGS];
    for (int i = 0; i < EVENTS - 1; i++) mappings_advise(BASE, PAGE, 0);
    cr_assert_eq(ledger_head->lost[SNAP_LOST_MAPPINGS], lost);
    cr_assert_eq(mappings_assign(BASE + 2 * PAGE, PAGE, model), -ENOMEM);
    cr_assert_eq(ledger_head->lost[SNAP_LOST_MAPPINGS], lost + 1);
    cr_assert_eq(mappings_assign(BASE + 20 * PAGE, PAGE, model), -ENXIO);

    __atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
    pthread_join(holder, NULL);
    cr_assert_eq(bytes_of(model), PAGE);
    cr_assert_eq(mappings_assign(BASE + 2 * PAGE, PAGE, model), 0);
    cr_assert_eq(bytes_of(model), 2 * PAGE);
}
