/* gate.c — tests the rule that says when runs hold more than a baseline allows. The figures are invented, or were
 * recorded as the noise of a real program. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/diff/gate.h"

#define SITE "at \"leak@prog\" \"main@prog\" of \"model:UNET\""
#define OTHER "at \"cache@libx.so\" \"main@prog\" of \"model:UNET\""
#define OWNER "model \"UNET\" \"wan\""

struct given {
    struct figures before, now;
    struct thresholds thresholds;
    struct suppressions suppressions;
    struct gate gate;
};

static void begin(struct given *given, const char *limits, uint64_t pass_under) {
    *given = (struct given){.thresholds = {.pass_under = pass_under}};
    figures_begin(&given->before);
    figures_begin(&given->now);
    cr_assert(limits_parse(&given->thresholds.limits, limits));
    given->gate = (struct gate){.before = &given->before,
                                .now = &given->now,
                                .thresholds = &given->thresholds,
                                .suppressions = &given->suppressions};
}

static void end(struct given *given) {
    gate_end(&given->gate);
    figures_end(&given->before);
    figures_end(&given->now);
    suppressions_end(&given->suppressions);
}

static void run_of(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes, uint64_t blocks) {
    figures_add(figures, kind, name, bytes, blocks);
    figures_end_run(figures);
}

static const struct finding *find(const struct gate *gate, enum figure_kind kind, const char *name) {
    for (size_t i = 0; i < gate->count; i++)
        if (gate->list[i].figure->kind == kind && strcmp(figure_name(gate->list[i].figure), name) == 0)
            return &gate->list[i];
    return NULL;
}

/* Growth is the gap between the range of values before and the range of values now; if the ranges overlap, growth is 0.
 * In the lists of values, a 0 ends the list. */
static const struct {
    uint64_t before[4], now[4];
    int64_t growth;
} grown[] = {
    {{100}, {100}, 0},
    {{100}, {150}, 50},
    {{100}, {60}, -40},
    {{100, 120}, {110, 130}, 0},
    {{100, 120}, {125, 190}, 5},
    {{120, 100}, {190, 125}, 5},
    {{100, 120}, {90, 80}, -10},
    {{100, 500}, {400, 400, 400}, 0},
    {{1}, {UINT64_MAX}, INT64_MAX},
    {{UINT64_MAX}, {1}, -INT64_MAX},
};

Test(gate, growth_is_the_distance_between_the_ranges) {
    for (size_t i = 0; i < sizeof grown / sizeof *grown; i++) {
        struct given given;
        begin(&given, "1G", 0);
        for (size_t k = 0; k < 4 && grown[i].before[k]; k++)
            run_of(&given.before, FIGURE_TOTAL, "", grown[i].before[k], 1);
        for (size_t k = 0; k < 4 && grown[i].now[k]; k++) run_of(&given.now, FIGURE_TOTAL, "", grown[i].now[k], 1);
        cr_assert_eq(gate_judge(&given.gate), 0);
        const struct finding *total = find(&given.gate, FIGURE_TOTAL, "");
        cr_expect(total && total->growth.bytes == grown[i].growth, "case %zu", i);
        end(&given);
    }
}

Test(gate, what_a_run_lacks_it_has_nothing_of) {
    struct given given;
    begin(&given, "owner:0", 0);
    run_of(&given.before, FIGURE_OWNER, OWNER, 1000, 1);
    run_of(&given.now, FIGURE_OWNER, OWNER, 9000, 1);
    run_of(&given.now, FIGURE_TOTAL, "", 1, 1); /* and no UNET */
    gate_judge(&given.gate);
    cr_expect_eq(given.gate.over, 0);
    cr_expect_eq(find(&given.gate, FIGURE_OWNER, OWNER)->now[0].low, 0);
    end(&given);
}

Test(gate, an_unlisted_call_site_may_have_had_what_is_below_the_floor) {
    struct given given;
    begin(&given, "site:0", 0);
    given.before.floor = 1024;
    run_of(&given.before, FIGURE_TOTAL, "", 1, 1);
    run_of(&given.now, FIGURE_SITE, SITE, 1023, 1023);
    gate_judge(&given.gate);
    cr_expect_eq(given.gate.over, 0);
    run_of(&given.now, FIGURE_SITE, OTHER, 1024, 1);
    given.now.table->bytes.low = given.now.table->bytes.high = 1500;
    gate_judge(&given.gate);
    const struct finding *site = find(&given.gate, FIGURE_SITE, SITE);
    cr_expect(site && site->is_new && site->verdict == VERDICT_FAILED && site->growth.bytes == 1500 - 1023);
    end(&given);
}

Test(gate, owners_without_call_sites) {
    struct given given;
    begin(&given, "5M", 0);
    run_of(&given.before, FIGURE_SITE, SITE, 5000, 1);
    run_of(&given.now, FIGURE_TOTAL, "", 1, 1);
    given.gate.owners_only = true;
    gate_judge(&given.gate);
    cr_expect_null(find(&given.gate, FIGURE_SITE, SITE), "what was not looked at is not gone");
    end(&given);
}

/* The leak of a suppressed call site is subtracted from the owner and the total; other growth is not. */
static const struct {
    const char *line;
    int64_t total, owner;
    size_t over, suppressed;
} known[] = {
    {"function=nothing", 5000, 5000, 4, 0}, {"function=leak", 1000, 1000, 3, 1},
    {"module=libx*", 4000, 4000, 3, 1},     {"owner=UNET", 0, 0, 0, 2},
    {"owner=VAE", 5000, 5000, 4, 0},        {"function=leak until=2001-01-01", 5000, 5000, 4, 0},
};

Test(gate, suppressed_growth_counts_nowhere) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct given given;
        struct scan scan;
        begin(&given, "500,owner:500,site:500", 0);
        figures_add(&given.before, FIGURE_TOTAL, "", 10000, 10);
        figures_add(&given.before, FIGURE_OWNER, OWNER, 8000, 8);
        figures_add(&given.before, FIGURE_SITE, OTHER, 700, 1);
        figures_end_run(&given.before);
        figures_add(&given.now, FIGURE_TOTAL, "", 15000, 15);
        figures_add(&given.now, FIGURE_OWNER, OWNER, 13000, 13);
        figures_add(&given.now, FIGURE_SITE, OTHER, 1700, 1);
        figures_add(&given.now, FIGURE_SITE, SITE, 4000, 5);
        figures_end_run(&given.now);
        scan_begin(&scan, "known.txt", known[i].line, strlen(known[i].line));
        cr_assert_eq(suppressions_read(&given.suppressions, &scan, 20261122), 0);
        gate_judge(&given.gate);
        const struct finding *total = find(&given.gate, FIGURE_TOTAL, "");
        const struct finding *owner = find(&given.gate, FIGURE_OWNER, OWNER);
        cr_expect_eq(total->growth.bytes, known[i].total, "%s", known[i].line);
        cr_expect_eq(owner->growth.bytes, known[i].owner, "%s", known[i].line);
        cr_expect_eq(given.gate.over, known[i].over, "%s: %zu", known[i].line, given.gate.over);
        cr_expect_eq(given.gate.suppressed, known[i].suppressed, "%s", known[i].line);
        cr_expect_eq(given.suppressions.list[0].used, known[i].suppressed > 0, "%s", known[i].line);
        end(&given);
    }
}

/* Models with the same name are told apart by their files. Suppressed growth of one model is not subtracted from
 * another model. A site without a file may belong to any model of that name. */
#define OF_FILE(file) "at \"load@prog\" of \"model:UNET\" from \"" file "\" \"node:KSampler\""

Test(gate, a_call_site_is_of_the_model_of_its_file) {
    static const struct {
        const char *site, *owner;
        bool is_of;
    } pairs[] = {
        {OF_FILE("a.st"), "model \"UNET\" \"a.st\"", true},
        {OF_FILE("a.st"), "model \"UNET\" \"b.st\"", false},
        {OF_FILE("a.st"), "model \"a.st\" \"\"", false},
        {OF_FILE("a.st"), "node \"KSampler\" \"node 3\"", true},
        {SITE, "model \"UNET\" \"b.st\"", true},
        {"at \"f@m\" of \"model:UNET\" from \"a.st\" \"model:UNET\" from \"b.st\"", "model \"UNET\" \"b.st\"", true},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct figures figures;
        figures_begin(&figures);
        const struct figure *site = figures_add(&figures, FIGURE_SITE, pairs[i].site, 1, 1);
        const struct figure *owner = figures_add(&figures, FIGURE_OWNER, pairs[i].owner, 1, 1);
        cr_expect_eq(gate_is_of(site, owner), pairs[i].is_of, "case %zu", i);
        figures_end(&figures);
    }
}

/* Host and device memory are judged separately. A shrinking host does not hide a leak on a device, and a suppression
 * for one does not hold for the other. */
static void add_both(struct figures *figures, uint64_t host, uint64_t device) {
    figures_add(figures, FIGURE_TOTAL, "", host, 1);
    figures_add(figures, FIGURE_SITE, SITE, host, 1);
    figures_add_cuda(figures, FIGURE_TOTAL, "", device, 1);
    figures_add_cuda(figures, FIGURE_OWNER, OWNER, device, 1);
    figures_add_cuda(figures, FIGURE_SITE, SITE, device, 1);
    figures->with_cuda = true;
    figures_end_run(figures);
}

Test(gate, devices_are_judged_by_themselves) {
    struct given given;
    begin(&given, "500,owner:500,site:500", 0);
    add_both(&given.before, 9000, 1000);
    add_both(&given.now, 5000, 3000);
    gate_judge(&given.gate);
    cr_expect_eq(given.gate.over, 3, "%zu", given.gate.over);
    cr_expect(given.gate.list[0].figure->kind == FIGURE_TOTAL && !given.gate.list[0].figure->cuda);
    cr_expect_eq(given.gate.list[0].growth.bytes, -4000);
    cr_expect(given.gate.list[1].figure->cuda && given.gate.list[1].growth.bytes == 2000);
    cr_expect_not(gate_leaves_out_cuda(&given.gate));
    given.before.with_cuda = false; /* written before devices were counted */
    given.gate.before = &(struct figures){.runs = 1, .floor = 1};
    gate_judge(&given.gate);
    for (size_t i = 0; i < given.gate.count; i++) cr_expect_not(given.gate.list[i].figure->cuda);
    cr_expect(gate_leaves_out_cuda(&given.gate));
    end(&given);
}

Test(gate, what_is_suppressed_on_devices_is_theirs) {
    struct given given;
    struct scan scan;
    begin(&given, "500,owner:500,site:500", 0);
    add_both(&given.before, 1000, 1000);
    figures_add(&given.now, FIGURE_TOTAL, "", 1000, 1); /* the same amount again, which is not suppressed */
    add_both(&given.now, 1000, 3000);
    scan_begin(&scan, "known.txt", "function=leak", 13);
    cr_assert_eq(suppressions_read(&given.suppressions, &scan, 20261122), 0);
    gate_judge(&given.gate);
    cr_expect_eq(given.gate.over, 1);
    cr_expect(given.gate.list[0].growth.bytes == 1000 && given.gate.list[0].suppressed_bytes == 0);
    cr_expect(given.gate.list[1].growth.bytes == 0 && given.gate.list[1].suppressed_bytes == 2000);
    end(&given);
}

/* --- noise */

/* Live bytes at the end of 24 runs of one program: six threads parse JSON, and a random number decides whether a
 * document is kept. */
static const uint64_t recorded[] = {6378272, 6406777, 6398670, 6416555, 6368715, 6406662, 6370191, 6374214,
                                    6473148, 6435215, 6388390, 6406594, 6344964, 6391939, 6352839, 6395566,
                                    6393817, 6407584, 6414890, 6386427, 6344315, 6390516, 6411033, 6347721};
enum { RECORDED = sizeof recorded / sizeof *recorded, DRAWS = 4000 };

/* The verdict for `runs` recorded runs, with `leak` bytes more, against the same number of other runs. */
static size_t over_of(const char *limits, size_t runs, uint64_t leak, const uint64_t *drawn) {
    struct given given;
    begin(&given, limits, 0);
    for (size_t i = 0; i < runs; i++) run_of(&given.before, FIGURE_TOTAL, "", drawn[i], 1);
    for (size_t i = 0; i < runs; i++) run_of(&given.now, FIGURE_TOTAL, "", drawn[runs + i] + leak, 1);
    gate_judge(&given.gate);
    size_t over = given.gate.over;
    end(&given);
    return over;
}

/* How often the verdict is "over" among DRAWS ways to choose the runs. */
static size_t times_over(const char *limits, size_t runs, uint64_t leak) {
    uint64_t drawn[RECORDED];
    size_t times = 0;
    memcpy(drawn, recorded, sizeof drawn);
    srandom(7);
    for (int draw = 0; draw < DRAWS; draw++) {
        for (size_t i = 0; i < 2 * runs; i++) {
            size_t with = i + (size_t)random() % (RECORDED - i);
            uint64_t value = drawn[i];
            drawn[i] = drawn[with];
            drawn[with] = value;
        }
        times += over_of(limits, runs, leak, drawn);
    }
    return times;
}

Test(gate, recorded_noise_fails_no_build) {
    cr_expect_eq(times_over("1%", 5, 0), 0);
    cr_expect_eq(times_over("64K", 5, 0), 0);
    size_t one = times_over("0", 1, 0), five = times_over("0", 5, 0);
    cr_expect_gt(one, DRAWS / 3, "one run against one is a coin");
    cr_expect_lt(five, 2 * DRAWS / 252, "%zu of %d: about 1 in C(10, 5) with no allowance at all", five, (int)DRAWS);
}

Test(gate, a_leak_larger_than_the_noise_is_always_found) {
    cr_expect_eq(times_over("64K", 5, 200000), DRAWS);
    cr_expect_gt(times_over("64K", 5, 130000), DRAWS / 20, "one as large as the noise is not always found");
}

/* One more run only widens the range, so the check may end as soon as nothing is over a limit. */
Test(gate, one_more_run_can_only_acquit) {
    srandom(11);
    for (int draw = 0; draw < 500; draw++) {
        struct given given;
        int64_t last = INT64_MAX;
        begin(&given, "0", 0);
        for (int i = 0; i < 3; i++) run_of(&given.before, FIGURE_TOTAL, "", recorded[random() % RECORDED], 1);
        for (int i = 0; i < 8; i++) {
            run_of(&given.now, FIGURE_TOTAL, "", recorded[random() % RECORDED] + (uint64_t)(random() % 90000), 1);
            gate_judge(&given.gate);
            int64_t growth = find(&given.gate, FIGURE_TOTAL, "")->growth.bytes;
            cr_expect(growth <= 0 || growth <= last);
            last = growth > 0 ? growth : 0;
        }
        end(&given);
    }
}
