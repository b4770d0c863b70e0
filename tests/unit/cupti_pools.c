// CUPTI's records of pools come in any order, and tell which pools exist and their latest figures. Pools beyond the
// limit are refused. Differences between CUPTI and the ledger are named.
#include <criterion/criterion.h>

#include "cupti/compare_pools.h"
#include "cupti/pools.h"

static int there, known, in_all;
static uint64_t used;

static void came(const struct pool *pool) {
    (void)pool;
    there++, in_all++;
}
static void went(const struct pool *pool) {
    (void)pool;
    there--;
}

/* The bytes in use of a pool that the program has not made. In the ledger such a pool belongs to the device. */
static uint64_t of_device;

static void figures(const struct pool *pool) { of_device = pool->used; }

static void begin(void) {
    static const struct pools_told told = {came, went, figures};
    pools_clear();
    pools_tell(&told);
    there = known = in_all = 0;
}

static bool say(uint32_t operation, uint64_t address, uint64_t when, uint64_t bytes) {
    return pools_record(&(struct cupti_pool){.kind = CUPTI_KIND_MEMORY_POOL,
                                             .operation = operation,
                                             .type = CUPTI_POOL_LOCAL,
                                             .device = 1,
                                             .address = address,
                                             .timestamp = when,
                                             .size = 2 * bytes,
                                             .used = bytes});
}

static void look(const struct pool *pool, void *context) {
    (void)context;
    known++;
    if (pool->address == 0x10) used = pool->used;
}

static uint64_t used_now(void) {
    known = 0;
    pools_all(look, NULL);
    return used;
}

Test(cupti_pools, the_latest_record_counts_in_each_order) {
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const uint32_t operations[] = {CUPTI_POOL_CREATED, CUPTI_POOL_TRIMMED, CUPTI_POOL_DESTROYED};
    for (int i = 0; i < 6; i++) {
        begin();
        for (int k = 0; k < 3; k++) {
            int n = orders[i][k];
            say(operations[n], 0x10, 10 + (uint64_t)n, 100 + (uint64_t)n);
        }
        cr_assert_eq(there, 0, "order %d: it is destroyed", i);
        cr_assert_eq(used_now(), 102, "order %d", i);
    }
}

Test(cupti_pools, memory_out_of_a_pool_says_how_it_is) {
    struct cupti_memory memory = {.timestamp = 5, .is_async = 1, .pool = {CUPTI_POOL_LOCAL, 0, 0x10, 0, 64, 7}};
    begin();
    cr_assert(pools_memory(&memory));
    cr_assert(used_now() == 7 && known == 1 && there == 0);
    memory.pool.type = 2, memory.pool.address = 0x20; /* another process's */
    cr_assert(pools_memory(&memory));
    used_now();
    cr_assert_eq(known, 1);
}

Test(cupti_pools, what_the_program_makes_is_never_taken_for_the_one_of_its_device) {
    struct cupti_memory memory = {.timestamp = 5, .is_async = 1, .pool = {CUPTI_POOL_LOCAL, 0, 0x10, 0, 64, 7}};
    begin();
    cr_assert(pools_memory(&memory) && of_device == 7);
    say(CUPTI_POOL_CREATED, 0x20, 6, 0);
    cr_assert_eq(of_device, 7, "%llu", (unsigned long long)of_device);
    say(CUPTI_POOL_DESTROYED, 0x30, 7, 1); /* the record of its beginning comes later */
    cr_assert_eq(of_device, 7, "%llu", (unsigned long long)of_device);
}

Test(cupti_pools, those_that_are_gone_and_empty_make_room) {
    begin();
    for (uint64_t i = 1; i <= 1000; i++) {
        cr_assert(say(CUPTI_POOL_CREATED, i * 16, 2 * i, 0));
        cr_assert(say(CUPTI_POOL_DESTROYED, i * 16, 2 * i + 1, 0));
    }
    cr_assert(there == 0 && in_all == 1000);
    int room = 0;
    for (uint64_t i = 1; i <= 1000; i++) room += say(CUPTI_POOL_CREATED, 1000000 + i, 9000 + i, 1);
    cr_assert(room == there && room >= 200 && room < 1000, "%d", room);
}

/* --- compared with the ledger's pools --- */

static struct snap_cupti head;
static struct snap_cupti_block differences[SNAP_CUPTI_BLOCKS];
static const struct cupti_sections sections = {&head, differences};
static uint64_t has_pool, has_bytes;

static void blocks(cupti_visit *visit, void *context) {
    struct snap_cuda_block pool = {.kind = SNAP_CUDA_POOL, .device = 1, .address = has_pool};
    struct snap_cuda_block memory = {.kind = SNAP_CUDA_POOL_MEMORY, .device = 1, .address = 1, .size = has_bytes};
    if (has_pool) visit(CUDA_POOL, &pool, context);
    if (has_bytes) visit(CUDA_ADDRESS, &memory, context);
}

Test(cupti_pools, each_difference_is_named) {
    begin();
    say(CUPTI_POOL_CREATED, 0x10, 1, 1024);
    head.pool_records = 1;
    has_pool = 0x10, has_bytes = 1000; /* in units of 512 */
    cr_assert(compare_pools(&sections, blocks, 0, false) == 0 && head.pools_same == 1 && head.pools_other == 0);
    cr_assert(head.pool_used == 1024 && head.pool_reserved == 2048);
    has_bytes = 500;
    cr_assert(compare_pools(&sections, blocks, 0, false) == 1 && differences[0].state == SNAP_CUPTI_SIZES);
    cr_assert(differences[0].bytes == 1024 && differences[0].ledger_bytes == 500 && differences[0].device == 1);
    has_bytes = 400; /* still on its way */
    cr_assert_eq(compare_pools(&sections, blocks, 0, true), 0);
    cr_assert_eq(compare_pools(&sections, blocks, 0, true), 1);
    has_pool = 0x20, has_bytes = 1024;
    cr_assert(compare_pools(&sections, blocks, 0, true) == 2 && head.pools_other == 2 && head.pools_same == 0);
    cr_assert(differences[0].state == SNAP_CUPTI_ONLY_CUPTI && differences[0].address == 0x10);
    cr_assert(differences[1].state == SNAP_CUPTI_ONLY_LEDGER && differences[1].address == 0x20);
    head.pool_records = 0, has_pool = 0x10, has_bytes = 5; /* older versions of CUPTI have no records of pools */
    cr_assert_eq(compare_pools(&sections, blocks, 0, false), 0);
}
