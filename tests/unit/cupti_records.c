// Records of every version of CUPTI in one shape: fields that a version lacks are 0, fields of a later version are
// skipped, and unknown records are reported.
#include <criterion/criterion.h>
#include <string.h>

#include "cupti/records.h"

static struct cupti_memory records[8];
static uint32_t unknown[8];
static size_t record_count, unknown_count, step[8], steps;

static void memory(const struct cupti_memory *record) { records[record_count++] = *record; }
static struct cupti_pool pools[8];
static size_t pool_count, with_use;
static void pool(const struct cupti_pool *record) { pools[pool_count++] = *record; }
static void in_use(void) { with_use++; }
static void other(uint32_t kind) { unknown[unknown_count++] = kind; }

/* A double of CUPTI's function that finds the next record. Like that function, it knows the length of each record. */
static int next(uint8_t *buffer, size_t valid, void **record) {
    static size_t at, turn;
    if (!*record) at = turn = 0;
    if (*record) at += step[turn++];
    if (turn == steps || at >= valid) return 12;
    *record = buffer + at;
    return CUPTI_OK;
}

static uint8_t buffer[1024];
static size_t used;

static void put(uint32_t kind, size_t bytes) {
    struct cupti_memory record = {.kind = kind, .operation = CUPTI_ALLOCATION, .address = 0x1000 + steps, .bytes = 5};
    memset(buffer + used, 0xA5, bytes);
    record.pool.size = 6, record.pool.used = 7, record.source = "source";
    memcpy(buffer + used, &record, bytes < sizeof record ? bytes : sizeof record);
    step[steps++] = bytes;
    used += bytes;
}

static void read_all(void) {
    static const struct records_readers readers = {memory, pool, in_use, other};
    records_read(buffer, used, next, &readers);
}

Test(cupti_records, each_version_as_far_as_it_goes) {
    put(CUPTI_KIND_MEMORY2, 112), put(CUPTI_KIND_MEMORY2, 120), put(CUPTI_KIND_MEMORY2, 128);
    put(CUPTI_KIND_MEMORY2, 160), put(CUPTI_KIND_MEMORY2, 112);
    read_all();
    cr_assert(record_count == 5 && unknown_count == 0);
    for (uint64_t i = 0; i < 5; i++) {
        cr_assert(records[i].address == 0x1000 + i && records[i].bytes == 5 && records[i].pool.size == 6);
        cr_assert_eq(records[i].pool.used, i == 0 || i == 4 ? 0 : 7, "%lu", (unsigned long)i);
        cr_assert_eq(records[i].source != NULL, i == 2 || i == 3, "%lu", (unsigned long)i);
    }
}

static void put_pool(size_t bytes) {
    struct cupti_pool record = {.kind = CUPTI_KIND_MEMORY_POOL, .address = 0x2000, .size = 8, .used = 3};
    memset(buffer + used, 0xA5, bytes);
    memcpy(buffer + used, &record, bytes < sizeof record ? bytes : sizeof record);
    step[steps++] = bytes;
    used += bytes;
}

Test(cupti_records, pools_of_each_version) {
    put_pool(64), put_pool(72), put_pool(80), put_pool(56), put(CUPTI_KIND_MEMORY2, 112);
    read_all();
    cr_assert(pool_count == 3 && with_use == 2 && unknown_count == 1 && record_count == 1);
    for (int i = 0; i < 3; i++) cr_assert(pools[i].size == 8 && pools[i].used == (i ? 3 : 0));
}

Test(cupti_records, what_is_not_known_is_told_of) {
    put(777, 40), put(CUPTI_KIND_MEMORY2, 128), put(CUPTI_KIND_MEMORY2, 80), put(778, 4), put(9, 2);
    read_all();
    cr_assert(record_count == 1 && records[0].address == 0x1001);
    cr_assert(unknown_count == 4 && unknown[0] == 777 && unknown[1] == CUPTI_KIND_MEMORY2 && unknown[2] == 778);
    cr_assert_eq(unknown[3], 0, "too short even for its kind");
}

Test(cupti_records, an_empty_buffer) {
    read_all();
    cr_assert(!record_count && !unknown_count);
}

static uint8_t *answers[8];
static size_t answered, answer_count;

/* A double of CUPTI's function that finds the next record. It returns the places in `answers`, whatever they are. */
static int say(uint8_t *at, size_t valid, void **record) {
    (void)at, (void)valid;
    cr_assert_lt(answered, answer_count, "asked without end");
    *record = answers[answered++];
    return CUPTI_OK;
}

static void read_said(size_t count) {
    static const struct records_readers readers = {memory, pool, in_use, other};
    record_count = unknown_count = answered = 0;
    answer_count = count;
    records_read(buffer, used, say, &readers);
}

Test(cupti_records, a_place_that_is_no_next_one_ends_it) {
    put(CUPTI_KIND_MEMORY2, 160), put(CUPTI_KIND_MEMORY2, 160);
    answers[0] = answers[1] = buffer;
    read_said(2);
    cr_expect_eq(record_count, 1, "the same again: %zu", record_count);
    answers[0] = buffer + 160, answers[1] = buffer;
    read_said(2);
    cr_expect_eq(record_count, 1, "one before: %zu", record_count);
    answers[0] = buffer, answers[1] = buffer + used;
    read_said(2);
    cr_expect_eq(record_count, 1, "behind the buffer: %zu", record_count);
    answers[0] = buffer - 1;
    read_said(1);
    cr_expect_eq(record_count, 0, "in front of it: %zu", record_count);
}
