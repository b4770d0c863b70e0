// CUPTI's records are compared with the ledger's blocks. The records come in any order, some contexts have ended, and
// the memory for the comparison has a limit. Differences are named.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cupti/compare.h"
#include "cupti/seen.h"

static struct snap_cupti head;
static struct snap_cupti_block differences[SNAP_CUPTI_BLOCKS];
static const struct cupti_sections sections = {&head, differences};
static struct snap_cuda_block ledger[1000];
static size_t ledger_count;

static void blocks(cupti_visit *visit, void *context) {
    for (size_t i = 0; i < ledger_count; i++) visit(CUDA_ADDRESS, &ledger[i], context);
}

static void has(uint64_t address, uint64_t size, uint64_t birth) {
    ledger[ledger_count++] = (struct snap_cuda_block){
        .kind = SNAP_CUDA_DEVICE_MEMORY, .address = address, .size = size, .birth_ns = birth, .device = 2};
}

static struct cupti_memory record(uint32_t operation, uint64_t address, uint64_t bytes, uint64_t time) {
    return (struct cupti_memory){.kind = CUPTI_KIND_MEMORY2,
                                 .operation = operation,
                                 .memory_kind = CUPTI_MEMORY_DEVICE,
                                 .address = address,
                                 .bytes = bytes,
                                 .timestamp = time,
                                 .context = 7};
}

static void says(uint32_t operation, uint64_t address, uint64_t bytes, uint64_t time) {
    struct cupti_memory it = record(operation, address, bytes, time);
    cr_assert(seen_record(&it, "/lib/libsource.so"));
}

Test(cupti_compare, all_the_same) {
    says(CUPTI_ALLOCATION, 0x1000, 100, 1);
    says(CUPTI_ALLOCATION, 0x2000, 200, 2);
    has(0x1000, 100, 0);
    has(0x2000, 200, 0);
    cr_assert_eq(compare(&sections, blocks, 10, false), 0);
    cr_assert(head.same.blocks == 2 && head.same.bytes == 300 && differences[0].state == 0);
}

Test(cupti_compare, each_difference_is_named) {
    says(CUPTI_ALLOCATION, 0x1000, 100, 1);
    says(CUPTI_ALLOCATION, 0x2000, 200, 2);
    has(0x2000, 256, 0);
    has(0x3000, 300, 0);
    cr_assert_eq(compare(&sections, blocks, 10, false), 3);
    cr_assert(head.only_cupti.bytes == 100 && head.only_ledger.bytes == 300 && head.sizes.bytes == 200);
    cr_assert_eq(head.same.blocks, 0);
    for (int i = 0; i < 3; i++) {
        const struct snap_cupti_block *it = &differences[i];
        if (it->state == SNAP_CUPTI_ONLY_LEDGER) cr_assert(it->address == 0x3000 && it->device == 2 && !*it->source);
        if (it->state == SNAP_CUPTI_ONLY_CUPTI)
            cr_assert(it->address == 0x1000 && strcmp(it->source, "/lib/libsource.so") == 0);
        if (it->state == SNAP_CUPTI_SIZES) cr_assert(it->bytes == 200 && it->ledger_bytes == 256);
    }
    has(0x1000, 100, 0); /* the second comparison finds the block that was missing, and counts nothing twice */
    cr_assert_eq(compare(&sections, blocks, 10, false), 2);
    cr_assert(head.only_cupti.blocks == 0 && head.same.blocks == 1);
}

Test(cupti_compare, the_latest_record_counts_in_whatever_order) {
    says(CUPTI_RELEASE, 0x1000, 100, 5); /* a free that arrives before its allocation */
    says(CUPTI_ALLOCATION, 0x1000, 100, 4);
    says(CUPTI_ALLOCATION, 0x2000, 64, 8); /* the second block at an address before the first */
    says(CUPTI_RELEASE, 0x2000, 32, 7);
    says(CUPTI_ALLOCATION, 0x2000, 32, 6);
    has(0x2000, 64, 0);
    cr_assert_eq(compare(&sections, blocks, 10, false), 0);
}

Test(cupti_compare, memory_of_an_ended_context_is_gone) {
    says(CUPTI_ALLOCATION, 0x1000, 100, 1);
    seen_context_ended(7);
    says(CUPTI_ALLOCATION, 0x2000, 100, 2); /* a record that was on its way */
    cr_assert_eq(compare(&sections, blocks, 10, false), 0);
    cr_assert_eq(head.same.blocks, 0);
}

/* The ledger is read after CUPTI's records. A block that was freed in between, or whose address was used again with
 * another size, is no difference. */
Test(cupti_compare, what_was_on_its_way_is_no_difference) {
    says(CUPTI_ALLOCATION, 0x1000, 100, 1);
    says(CUPTI_ALLOCATION, 0x2000, 200, 2);
    says(CUPTI_ALLOCATION, 0x3000, 300, 3);
    has(0x2000, 250, 0);
    cr_assert_eq(compare(&sections, blocks, 10, false), 3);
    says(CUPTI_RELEASE, 0x1000, 100, 4);
    says(CUPTI_ALLOCATION, 0x2000, 250, 5);
    says(CUPTI_ALLOCATION, 0x4000, 400, 6); /* freed in the ledger already */
    cr_assert_eq(compare(&sections, blocks, 10, true), 1);
    cr_assert(head.only_cupti.bytes == 300 && head.same.bytes == 250);
}

Test(cupti_compare, younger_blocks_and_other_kinds_are_left_out) {
    struct cupti_memory array = record(CUPTI_ALLOCATION, 0x5000, 500, 3);
    array.memory_kind = CUPTI_MEMORY_ARRAY;
    seen_record(&array, NULL);
    has(0x4000, 400, 11);
    cr_assert_eq(compare(&sections, blocks, 10, false), 0);
    cr_assert(head.others.blocks == 1 && head.others.bytes == 500);
}

Test(cupti_compare, an_old_record_is_read_as_far_as_it_goes) {
    struct cupti_memory pinned = record(CUPTI_ALLOCATION, 0x6000, 6, 1), pool = record(CUPTI_ALLOCATION, 0x7000, 7, 1);
    pinned.memory_kind = CUPTI_MEMORY_PINNED;
    pool.is_async = 1;
    seen_record(&pinned, NULL);
    seen_record(&pool, NULL);
    cr_assert_eq(compare(&sections, blocks, 10, false), 2);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(differences[i].kind, differences[i].address == 0x6000 ? SNAP_CUDA_PINNED : SNAP_CUDA_POOL_MEMORY);
        cr_assert_str_eq(differences[i].source, "");
    }
}

Test(cupti_compare, more_differences_than_can_be_named) {
    for (uint64_t i = 0; i < 1000; i++) says(CUPTI_ALLOCATION, 0x100000 + i * 512, 512, i);
    cr_assert_eq(compare(&sections, blocks, 10, false), 1000);
    cr_assert_eq(head.only_cupti.bytes, 512000);
    cr_assert_eq(differences[SNAP_CUPTI_BLOCKS - 1].state, SNAP_CUPTI_ONLY_CUPTI);
}

/* Addresses that were freed long ago make room. When the table is full of live addresses, further ones are refused. */
Test(cupti_compare, the_table_is_bounded) {
    for (uint64_t i = 1; i <= 300000; i++) {
        says(CUPTI_ALLOCATION, i * 512, 512, i * 1000000);
        says(CUPTI_RELEASE, i * 512, 512, i * 1000000 + 1);
    }
    cr_assert_eq(compare(&sections, blocks, 10, false), 0);
    uint64_t refused = 0;
    for (uint64_t i = 1; i <= 100000; i++) {
        struct cupti_memory it = record(CUPTI_ALLOCATION, (i + 1000000) * 512, 512, 400000000000 + i);
        refused += !seen_record(&it, NULL);
    }
    uint64_t there = compare(&sections, blocks, 10, false);
    cr_assert_eq(there + refused, 100000);
    cr_assert(refused > 0 && there > 40000);
}

Test(cupti_compare, many_libraries) {
    char path[300];
    for (unsigned i = 0; i < 500; i++) {
        struct cupti_memory it = record(CUPTI_ALLOCATION, 0x1000 + i * 512, 512, i);
        snprintf(path, sizeof path, "/%0200u/lib%u.so", 0, i);
        cr_assert(seen_record(&it, path));
    }
    cr_assert_eq(compare(&sections, blocks, 10, false), 500);
    cr_assert_lt(strlen(differences[0].source), sizeof differences[0].source);
}
