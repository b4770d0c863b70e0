// An assignment succeeds while folding hides the site that the block is counted at, and while another thread grows the
// ledger on a slow disk. If the ledger has no room left, an assignment is refused and changes nothing.
// build: -Wl,--wrap=os_map_file
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "preload/count/account.h"
#include "preload/owners/assign.h"
#include "preload/count/counters.h"
#include "preload/blocks/host.h"
#include "preload/base/ids.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/blocks/mappings.h"
#include "preload/shared/os.h"
#include "preload/owners/owners.h"
#include "preload/count/site.h"
#include "preload/count/tags.h"
#include "preload/count/thread.h"

enum { SIZE = 100000, PART = 1000, MODELS = 300, MUCH = 1 << 20 };
static const uintptr_t BLOCK = 0x7f0000000000, MAPPING = 0x7e0000000000;

/* --- one block: the test's stand-in for the hooks' table --- */

static struct host_block block;
static bool hide_when_changed;

bool host_find(uintptr_t address, struct host_block *out) {
    *out = block;
    return address >= BLOCK && address < BLOCK + SIZE;
}

/* Hides a site as fold.c does after it saw no live block there. */
static void hide(uint32_t site) {
    struct index_walk walk = {0};
    static struct ids *hidden;
    cr_assert(ids_made(&hidden));
    ids_mark(hidden, site);
    while (!site_hide_tagged(NULL, hidden, &walk)) continue;
}

void host_change(const struct host_block *changed) {
    block = *changed;
    if (hide_when_changed) hide(block.site);
}

/* --- a slow disk: the thread that grows the ledger waits for it --- */

static bool slow, waits;
static uint32_t given_up_before;

long __real_os_map_file(void *address, size_t length, int fd, uint64_t offset);
long __wrap_os_map_file(void *address, size_t length, int fd, uint64_t offset);

long __wrap_os_map_file(void *address, size_t length, int fd, uint64_t offset) {
    __atomic_store_n(&waits, slow, __ATOMIC_RELEASE);
    while (slow && lock_given_up() == given_up_before) usleep(1000);
    return __real_os_map_file(address, length, fd, offset);
}

/* --- */

static char path[64];
static uint32_t models[MODELS];

static void begin_ledger(const char *file) {
    struct ledger_identity who = {.path = file, .name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
    tags_use();
    for (uint32_t i = 0; i < MODELS; i++) {
        uint64_t keys[2] = {1, i + 1};
        models[i] = (uint32_t)owners_open(MEMSTOW_MODEL, "model", "", keys);
    }
    block = (struct host_block){.start = BLOCK, .size = SIZE};
    block.site = account_alloc(sample_here, SIZE);
}

static void begin_in_memory(void) { begin_ledger(NULL); }

static void begin_in_file(void) {
    snprintf(path, sizeof path, "/var/tmp/unit-assign-%d.mst", (int)getpid());
    begin_ledger(path);
    cr_assert_str_eq(ledger_path(), path);
}

static void end_file(void) { ledger_unlink(); }

static uint32_t model_of(uint32_t site) { return tags_at(snap_site_tag(site_record(site))).model; }

static uint64_t live_of(uint32_t model) {
    uint64_t sum = 0;
    for (uint32_t site = 0; site < site_count(); site++)
        if (model_of(site) == model) sum += counters_site_live(site).bytes;
    return sum;
}

Test(assign, to_whose_it_is, .init = begin_in_memory) {
    cr_assert_eq(assign_range(BLOCK, SIZE, models[0]), 0);
    uint32_t site = block.site;
    cr_assert_eq(model_of(site), models[0]);
    hide_when_changed = true;
    cr_expect_eq(assign_range(BLOCK, SIZE, models[0]), 0, "its site is hidden meanwhile");
    cr_expect_eq(block.site, site);
    hide_when_changed = false;
    cr_expect_eq(assign_range(BLOCK, SIZE, models[1]), 0);
    cr_expect_eq(live_of(models[0]), 0);
    cr_expect_eq(live_of(models[1]), SIZE);
}

static void *grow(void *unused) {
    ledger_section(0, 1, MUCH, 0);
    return unused;
}

/* Assigns the block to one model after the other. Each assignment needs new sites and counters, so at last the
 * ledger must grow for one of them. */
Test(assign, while_the_ledger_grows, .init = begin_in_file, .fini = end_file) {
    pthread_t grower;
    given_up_before = lock_given_up();
    slow = true;
    cr_assert_eq(pthread_create(&grower, NULL, grow, NULL), 0);
    while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE)) usleep(1000);
    for (uint32_t i = 0; i < MODELS; i++) {
        int result = assign_range(BLOCK, SIZE, models[i]);
        cr_assert_eq(result, 0, "%d for model %u", result, i);
        cr_assert_eq(model_of(block.site), models[i]);
    }
    pthread_join(grower, NULL);
    cr_expect_neq(lock_given_up(), given_up_before, "somebody had to wait");
    cr_expect_eq(live_of(models[MODELS - 1]), SIZE);
}

/* A refused assignment adds nothing, and changes nothing of what was there before. */
static void refused(uint32_t model, uint64_t start, uint64_t length) {
    struct host_block before = block;
    uint64_t nobodys = live_of(0), firsts = live_of(models[0]), lost = ledger_head->lost[SNAP_LOST_FILE];
    cr_assert_eq(assign_range(BLOCK + start, length, model), -ENOMEM);
    cr_expect_gt(ledger_head->lost[SNAP_LOST_FILE], lost);
    cr_expect_eq(block.site, before.site);
    cr_expect_eq(live_of(model), 0);
    cr_expect_eq(live_of(0), nobodys);
    cr_expect_eq(live_of(models[0]), firsts);
}

/* Makes the sites of all models, and then uses up all room for counters, in this slot and in the shared slot, which
 * serves a thread whose own slot has no room. So an assignment is refused although its site exists. Returns the index
 * of the first model without a counter. */
static uint32_t use_up(uint32_t site, uint32_t slot) {
    uint32_t sites[MODELS], i = 1, shared = MODELS - 1;
    for (uint32_t k = 1; k < MODELS; k++) cr_assert(tags_number((struct snap_tag){.model = models[k]}));
    for (uint32_t k = 1; k < MODELS; k++) cr_assert(site_of_model(site, models[k], &sites[k]));
    for (size_t length = 64 << 20; length >= 64; length /= 2)
        while (ledger_section(0, 1, length, 0)) continue;
    while (i < MODELS && counters_wide(thread_at(slot), sites[i]).counter) i++;
    while (shared > i && counters_wide(thread_at(SNAP_THREAD_SHARED), sites[shared]).counter) shared--;
    cr_assert_lt(i, shared, "there is room for all of them");
    return i;
}

Test(assign, without_room, .init = begin_in_memory) {
    cr_assert_eq(assign_range(BLOCK, PART, models[0]), 0);
    uint32_t i = use_up(block.site, thread_slot());
    refused(models[i], 0, SIZE);
    refused(models[i], PART / 2, PART);
    cr_expect_eq(live_of(models[0]), PART);
    cr_expect_eq(live_of(0), SIZE - PART);
    cr_expect_eq(assign_range(BLOCK, SIZE, models[1]), 0, "for that there was room");
    cr_expect_eq(live_of(models[0]) + live_of(0), 0);
    cr_expect_eq(live_of(models[1]), SIZE);
}

/* An assignment of a mapping is queued as an event. Any thread may apply the event, and that thread cannot tell
 * mappings_assign that it failed. So mappings_assign checks whether there is room before it queues the event. */
Test(assign, of_a_mapping_without_room, .init = begin_in_memory) {
    mappings_add(MAPPING, SIZE, SNAP_MAP_ANONYMOUS, false, block.site);
    cr_assert_eq(assign_range(MAPPING, SIZE, models[0]), 0);
    uint64_t whole = live_of(models[0]);
    cr_assert_geq(whole, SIZE);
    uint32_t i = use_up(block.site, SNAP_THREAD_MAPPINGS);
    cr_assert_eq(assign_range(MAPPING, SIZE, models[i]), -ENOMEM);
    cr_expect_eq(live_of(models[i]), 0);
    cr_expect_eq(live_of(models[0]), whole);
    cr_expect_eq(assign_range(MAPPING, SIZE, 0), 0, "for that there was room");
    cr_expect_eq(live_of(models[0]), 0);
}
