// The live memory that CUPTI's records add up to does not depend on the order of the records, nor on which of two calls
// for one address began first. Each block that comes or goes is reported once.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "preload/shared/snapshot.h"
#include "cupti/seen.h"

enum { MOST = 7 };
#define AT 0x7000

static struct {
    int allocated, freed; /* blocks that were added to the sum, and blocks that were subtracted */
    uint64_t live;        /* bytes */
} ledger;

static void came(const struct seen *seen, const struct cupti_memory *record) {
    (void)record;
    ledger.allocated++;
    ledger.live += seen->bytes;
}
static void went(const struct seen *seen) {
    ledger.freed++;
    ledger.live -= seen->bytes;
}
static void passed(const struct seen *seen, const struct cupti_memory *record) {
    (void)seen, (void)record;
    ledger.allocated++;
    ledger.freed++;
}

static void begin(void) {
    static const struct seen_told told = {came, went, passed};
    seen_clear();
    seen_tell(&told);
    memset(&ledger, 0, sizeof ledger);
}

/* Gives the record of the n-th call, made at time `when`. The calls allocate and free one address in turn. Each
 * allocation has a size of its own. */
static void say(int n, uint64_t when) {
    struct cupti_memory record = {.kind = CUPTI_KIND_MEMORY2,
                                  .operation = n % 2 ? CUPTI_RELEASE : CUPTI_ALLOCATION,
                                  .memory_kind = CUPTI_MEMORY_DEVICE,
                                  .address = AT,
                                  .bytes = 1000 + (uint64_t)n,
                                  .timestamp = when,
                                  .context = 1};
    cr_assert(seen_record(&record, NULL));
}

static void check(const int *order, int count) {
    char text[64] = "";
    for (int i = 0; i < count; i++) snprintf(text + strlen(text), 8, " %d", order[i]);
    const struct seen *seen = seen_at(AT);
    bool lives = count % 2;
    cr_assert_eq(seen != NULL, lives, "%d records in the order%s", count, text);
    if (lives) cr_assert_eq(seen->bytes, 1000 + (uint64_t)count - 1, "the wrong block lives: %s", text);
    cr_assert_eq(ledger.live, lives ? 1000 + (uint64_t)count - 1 : 0, "%s", text);
    cr_assert_eq(ledger.allocated, (count + 1) / 2, "%s", text);
    cr_assert_eq(ledger.freed, count / 2, "%s", text);
}

static void in_each_order(int *order, int from, int count) {
    if (from == count) {
        begin();
        for (int i = 0; i < count; i++) say(order[i], 10 + 10 * (uint64_t)order[i]);
        check(order, count);
    }
    for (int i = from; i < count; i++) {
        int first = order[i];
        order[i] = order[from], order[from] = first;
        in_each_order(order, from + 1, count);
        order[from] = order[i], order[i] = first;
    }
}

Test(cupti_seen, the_order_of_records_is_no_matter) {
    for (int count = 1; count <= MOST; count++) {
        int order[MOST];
        for (int i = 0; i < count; i++) order[i] = i;
        in_each_order(order, 0, count);
    }
}

/* One thread frees the block. Another thread had begun to allocate before the free, and gets the same address after
 * it. */
Test(cupti_seen, the_next_block_may_have_been_asked_for_before_the_free) {
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        static const uint64_t when[] = {10, 30, 20};
        begin();
        for (int k = 0; k < 3; k++) say(orders[i][k], when[orders[i][k]]);
        check(orders[i], 3);
    }
}

#define SECOND 1000000000ull

/* A missing record, of a free or of an allocation, is expected for a limited time only. A later record is not taken for
 * the missing one. */
Test(cupti_seen, a_lost_record_is_forgotten_in_time) {
    begin();
    say(0, 10);
    say(2, 20);
    cr_assert(seen_at(AT) && seen_at(AT)->bytes == 1002);
    say(3, 10 * SECOND);
    cr_assert_null(seen_at(AT));
    say(1, 20 * SECOND); /* a free whose allocation has no record */
    say(4, 30 * SECOND);
    cr_assert(seen_at(AT) && seen_at(AT)->bytes == 1004);
    cr_assert_eq(ledger.live, 1004);
}

Test(cupti_seen, a_context_takes_its_memory_with_it_but_not_its_pools) {
    struct cupti_memory record = {.kind = CUPTI_KIND_MEMORY2,
                                  .operation = CUPTI_ALLOCATION,
                                  .memory_kind = CUPTI_MEMORY_DEVICE,
                                  .address = AT,
                                  .bytes = 5,
                                  .timestamp = 1,
                                  .context = 9};
    begin();
    seen_record(&record, NULL);
    record.address++, record.is_async = 1, record.bytes = 7;
    seen_record(&record, NULL);
    seen_context_ended(9);
    cr_assert_eq(ledger.live, 7);
    record.address++, record.is_async = 0, record.bytes = 11, record.timestamp = 2;
    seen_record(&record, NULL); /* this record came late */
    cr_assert_eq(ledger.live, 7);
    cr_assert(ledger.allocated == 3 && ledger.freed == 2);
}

/* A program may make and end contexts for days. Only the contexts that ended most recently are remembered. That is
 * enough, because a late record belongs to a context that ended a short time ago. */
Test(cupti_seen, records_of_any_context_may_come_after_its_end) {
    begin();
    for (uint32_t context = 1; context <= 1000; context++) {
        struct cupti_memory record = {.kind = CUPTI_KIND_MEMORY2,
                                      .operation = CUPTI_ALLOCATION,
                                      .memory_kind = CUPTI_MEMORY_DEVICE,
                                      .address = AT + context,
                                      .bytes = 5,
                                      .timestamp = context,
                                      .context = context};
        seen_context_ended(context);
        seen_record(&record, NULL);
        cr_assert_eq(ledger.live, 0, "context %u", context);
    }
}
