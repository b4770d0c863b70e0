/* thresholds.c — limits: their texts, their meaning, and growth that exceeds them. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/diff/thresholds.h"

#define MIB (1 << 20)

static const struct {
    const char *given;
    enum limit_scope scope;
    enum limit_kind kind;
    double value;
} right[] = {
    {"0", LIMIT_TOTAL, LIMIT_BYTES, 0},
    {"1048576", LIMIT_TOTAL, LIMIT_BYTES, MIB},
    {"1.5KiB", LIMIT_TOTAL, LIMIT_BYTES, 1536},
    {"2m", LIMIT_TOTAL, LIMIT_BYTES, 2 * MIB},
    {"5MB", LIMIT_TOTAL, LIMIT_BYTES, 5 * MIB},
    {"10%", LIMIT_TOTAL, LIMIT_PERCENT, 10},
    {"100x", LIMIT_TOTAL, LIMIT_BLOCKS, 100},
    {"total:3K", LIMIT_TOTAL, LIMIT_BYTES, 3072},
    {"owner:1MiB", LIMIT_OWNER, LIMIT_BYTES, MIB},
    {"owner:10%", LIMIT_OWNER, LIMIT_PERCENT, 10},
    {"site:64K", LIMIT_SITE, LIMIT_BYTES, 65536},
    {"site:0x", LIMIT_SITE, LIMIT_BLOCKS, 0},
};

Test(thresholds, are_read) {
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        struct limits limits = {.count = 0};
        cr_assert(limits_parse(&limits, right[i].given), "%s", right[i].given);
        cr_expect_eq(limits.count, 1);
        cr_expect_eq(limits.list[0].scope, right[i].scope, "%s", right[i].given);
        cr_expect_eq(limits.list[0].kind, right[i].kind, "%s", right[i].given);
        cr_expect_eq(limits.list[0].value, right[i].value, "%s", right[i].given);
        cr_expect_str_eq(limits.list[0].text, right[i].given);
    }
}

Test(thresholds, are_refused) {
    static const char *const wrong[] = {"",        ",",      "1,",     "-1",      "owner:", "owner",      "site:x",
                                        "node:1K", "site:%", "1e3",    "0x10",    "inf",    "owner:-1",   "1,000",
                                        "01",      "1 K",    "site 1", "site:1,", "5MiBs",  "site:site:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct limits limits = {.count = 0};
        cr_expect_not(limits_parse(&limits, wrong[i]), "%s", wrong[i]);
    }
    struct limits limits = {.count = 0};
    cr_expect(limits_parse(&limits, "1,2,3,4,5,6,7,8"));
    cr_expect_not(limits_parse(&limits, "9"));
}

Test(thresholds, a_size_alone) {
    double bytes;
    cr_expect(size_parse("64K", &bytes) && bytes == 65536);
    cr_expect_not(size_parse("5%", &bytes) || size_parse("5x", &bytes) || size_parse("owner:5", &bytes) ||
                  size_parse("", &bytes));
}

static const struct {
    const char *limits;
    enum limit_scope scope;
    struct growth growth;
    const char *passed;
} grown[] = {
    {"1000", LIMIT_TOTAL, {1000, 1, 0}, NULL},
    {"1000", LIMIT_TOTAL, {1001, 1, 0}, "1000"},
    {"1000", LIMIT_TOTAL, {-5000, 1, 9000}, NULL},
    {"10%", LIMIT_TOTAL, {100, 0, 1000}, NULL},
    {"10%", LIMIT_TOTAL, {101, 0, 1000}, "10%"},
    {"10%", LIMIT_TOTAL, {1, 0, 0}, "10%"},
    {"10%", LIMIT_TOTAL, {0, 0, 0}, NULL},
    {"5x", LIMIT_TOTAL, {0, 5, 0}, NULL},
    {"5x", LIMIT_TOTAL, {-1, 6, 0}, "5x"},
    {"1G,5x,10%", LIMIT_TOTAL, {101, 6, 1000}, "5x"},
    {"owner:1K", LIMIT_TOTAL, {5000, 0, 0}, NULL},
    {"owner:1K", LIMIT_SITE, {5000, 0, 0}, NULL},
    {"owner:1K", LIMIT_OWNER, {5000, 0, 0}, "owner:1K"},
    {"1K,site:2K", LIMIT_SITE, {2049, 0, 0}, "site:2K"},
    {"1K,site:2K", LIMIT_SITE, {2048, 0, 0}, NULL},
    {"0", LIMIT_TOTAL, {INT64_MAX, INT64_MAX, UINT64_MAX}, "0"},
    {"0", LIMIT_TOTAL, {INT64_MIN, INT64_MIN, 0}, NULL},
};

Test(thresholds, are_passed_by_more_than_they_say) {
    for (size_t i = 0; i < sizeof grown / sizeof *grown; i++) {
        struct limits limits = {.count = 0};
        cr_assert(limits_parse(&limits, grown[i].limits));
        const struct limit *passed = limits_passed(&limits, grown[i].scope, grown[i].growth);
        if (grown[i].passed)
            cr_expect(passed && strcmp(passed->text, grown[i].passed) == 0, "case %zu", i);
        else
            cr_expect_null(passed, "case %zu", i);
    }
}

/* Growth below 1 MiB passes; growth above 5 MiB or 10 % fails; in between it is a warning. */
static const struct {
    int64_t bytes;
    uint64_t before;
    enum verdict verdict;
} judged[] = {
    {-MIB, 100 * MIB, VERDICT_FINE},          {0, 0, VERDICT_FINE},
    {MIB - 1, 100 * MIB, VERDICT_FINE},       {MIB - 1, MIB, VERDICT_FINE},
    {MIB, 100 * MIB, VERDICT_WARNING},        {5 * MIB, 100 * MIB, VERDICT_WARNING},
    {5 * MIB + 1, 100 * MIB, VERDICT_FAILED}, {2 * MIB, 20 * MIB, VERDICT_WARNING},
    {2 * MIB + 1, 20 * MIB, VERDICT_FAILED},  {MIB, 0, VERDICT_FAILED},
};

Test(thresholds, small_growth_passes_and_what_lies_between_is_a_warning) {
    struct thresholds thresholds = {.pass_under = MIB};
    const struct limit *passed;
    cr_assert(limits_parse(&thresholds.limits, "5MiB,10%"));
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) {
        struct growth growth = {judged[i].bytes, 0, judged[i].before};
        cr_expect_eq(thresholds_judge(&thresholds, LIMIT_TOTAL, growth, &passed), judged[i].verdict, "case %zu", i);
        cr_expect_eq(passed != NULL, judged[i].verdict == VERDICT_FAILED, "case %zu", i);
    }
    struct growth much = {99 * MIB, 0, 0};
    cr_expect_eq(thresholds_judge(&thresholds, LIMIT_SITE, much, &passed), VERDICT_FINE, "no limit is asked of sites");
    thresholds.pass_under = 0;
    cr_expect_eq(thresholds_judge(&thresholds, LIMIT_TOTAL, (struct growth){1, 0, 0}, &passed), VERDICT_FAILED);
    cr_expect_eq(thresholds_judge(&thresholds, LIMIT_TOTAL, (struct growth){1, 0, 10}, &passed), VERDICT_FINE);
}
