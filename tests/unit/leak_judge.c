/* leak_judge.c — a table of sites with known changes, and the verdict on each: leaks, and growth that only looks like a
 * leak. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/leaks/leak_judge.h"

enum { POINTS_MOST = 1000 };

/* A row of the table. The functions say what the site gains at a point, and what was allocated. */
struct site {
    const char *name;
    uint32_t points;
    bool left;
    int64_t (*gain)(uint32_t point, uint32_t points);
    uint64_t (*allocated)(uint32_t point, uint32_t points); /* NULL: not known */
    enum leak_verdict verdict;
};

static int64_t always(uint32_t point, uint32_t points) { return (void)point, (void)points, 4096; }
static int64_t never(uint32_t point, uint32_t points) { return (void)point, (void)points, 0; }
static int64_t little(uint32_t point, uint32_t points) { return (void)point, (void)points, 100; }
static int64_t at_first(uint32_t point, uint32_t points) { return (void)points, point < 2 ? 1 << 20 : 0; }
static int64_t once(uint32_t point, uint32_t points) { return point == points / 2 ? 1 << 20 : 0; }
static int64_t twice(uint32_t point, uint32_t points) {
    return point == points / 3 || point == points - 5 ? 1 << 20 : 0;
}
static int64_t last_two(uint32_t point, uint32_t points) { return point + 2 >= points ? 4096 : 0; }
static int64_t last_seven(uint32_t point, uint32_t points) { return point + 7 >= points ? 4096 : 0; }
static int64_t last_fifteen(uint32_t point, uint32_t points) { return point + 15 >= points ? 4096 : 0; }
static int64_t but_for_the_first(uint32_t point, uint32_t points) { return (void)points, point ? 4096 : 0; }
static int64_t last_twenty(uint32_t point, uint32_t points) { return point + 20 >= points ? 4096 : 0; }
static int64_t since_half(uint32_t point, uint32_t points) { return point >= points / 2 ? 4096 : 0; }
static int64_t until_half(uint32_t point, uint32_t points) { return point < points / 2 ? 4096 : 0; }
static int64_t each_fifth(uint32_t point, uint32_t points) { return (void)points, point % 5 ? 0 : 65536; }
static int64_t up_and_down(uint32_t point, uint32_t points) { return (void)points, point % 2 ? -65536 : 65536; }
/* A floor that rises under a sawtooth: three runs up, then back to a little more than before. */
static int64_t over_a_sawtooth(uint32_t point, uint32_t points) {
    return (void)points, point % 4 == 3 ? -3 * 20000 + 4 * 5000 : 20000;
}
/* A sawtooth that returns to its beginning. */
static int64_t sawtooth(uint32_t point, uint32_t points) { return (void)points, point % 4 == 3 ? -6000 : 2000; }
/* A cache: more and more entries are there already. */
static int64_t filling(uint32_t point, uint32_t points) {
    return (int64_t)(100000.0 / (1 + 9.0 * point / points) / (1 + point));
}
static int64_t falling(uint32_t point, uint32_t points) { return (void)points, point ? -100 : 1 << 20; }
static int64_t faster(uint32_t point, uint32_t points) { return (void)points, 4096 + 100 * (int64_t)point; }
/* Nothing for a long time. */
static int64_t with_a_pause(uint32_t point, uint32_t points) {
    return point < points * 2 / 5 || point >= points * 7 / 10 ? 4096 : 0;
}
/* Every ten runs, half of the old memory goes. */
static int64_t fading(uint32_t point, uint32_t points) { return INT64_C(1) << 20 >> (points - point) / 10; }
static uint64_t four_kilobytes(uint32_t point, uint32_t points) { return (void)point, (void)points, 4096; }
static uint64_t a_megabyte(uint32_t point, uint32_t points) { return (void)point, (void)points, 1 << 20; }

static const struct site sites[] = {
    {"a leak, by what runs left", 30, true, always, NULL, LEAK_FOUND},
    {"a leak, by what it holds", 30, false, always, NULL, LEAK_FOUND},
    {"a leak in as few runs as can be, left", 9, true, always, NULL, LEAK_FOUND},
    {"a leak in as few readings as can be", 7, false, always, NULL, LEAK_FOUND},
    {"one run fewer", 8, true, always, NULL, LEAK_UNDECIDED},
    {"one reading fewer", 6, false, always, NULL, LEAK_UNDECIDED},
    {"no run at all", 0, true, always, NULL, LEAK_NOTHING},
    {"one run", 1, true, always, NULL, LEAK_UNDECIDED},
    {"a leak in a thousand runs", 1000, true, always, NULL, LEAK_FOUND},
    {"nothing", 30, true, never, NULL, LEAK_NOTHING},
    {"less than the floor", 30, true, little, NULL, LEAK_SMALL},
    {"initialisation", 30, true, at_first, NULL, LEAK_ONE_OFF},
    {"the same, by what it holds", 30, false, at_first, NULL, LEAK_ONE_OFF},
    {"once, late", 30, false, once, NULL, LEAK_PLATEAU},
    {"twice", 30, true, twice, NULL, LEAK_ONE_OFF},
    {"in use", 30, true, last_two, NULL, LEAK_YOUNG},
    {"the last twenty, and the earlier ones are gone", 100, true, last_twenty, a_megabyte, LEAK_PLATEAU},
    {"the last twenty are the first that did anything", 100, true, last_twenty, NULL, LEAK_FOUND},
    {"a cache of seven, and the first two are gone", 9, true, last_seven, four_kilobytes, LEAK_PLATEAU},
    {"seven runs that are the first that did anything", 9, true, last_seven, NULL, LEAK_FOUND},
    {"a cache of nine, and the first is gone", 10, true, but_for_the_first, four_kilobytes, LEAK_PLATEAU},
    {"a cache of fifteen, and the first two are gone", 17, true, last_fifteen, four_kilobytes, LEAK_PLATEAU},
    {"of many but for the first, which was another", 17, true, but_for_the_first, four_kilobytes, LEAK_FOUND},
    {"of few, which took more than they leave", 9, true, always, a_megabyte, LEAK_FOUND},
    {"since half of the runs", 60, true, since_half, NULL, LEAK_FOUND},
    {"since half of the readings", 60, false, since_half, NULL, LEAK_FOUND},
    {"a cache that is full", 60, true, until_half, NULL, LEAK_PLATEAU},
    {"a cache that is full, by what it holds", 60, false, until_half, NULL, LEAK_PLATEAU},
    {"a cache that fills ever more slowly", 100, false, filling, NULL, LEAK_PLATEAU},
    {"the same, by what runs left", 100, true, filling, NULL, LEAK_PLATEAU},
    {"with a pause", 100, false, with_a_pause, NULL, LEAK_UNDECIDED},
    {"each fifth run", 100, true, each_fifth, NULL, LEAK_FOUND},
    {"each fifth run, by what it holds", 100, false, each_fifth, NULL, LEAK_FOUND},
    {"up and down", 60, false, up_and_down, NULL, LEAK_FLUCTUATES},
    {"up and down, few", 9, false, up_and_down, NULL, LEAK_FLUCTUATES},
    {"a sawtooth", 60, false, sawtooth, NULL, LEAK_FLUCTUATES},
    {"a sawtooth that rises", 60, false, over_a_sawtooth, NULL, LEAK_FOUND},
    {"ever less", 60, false, falling, NULL, LEAK_FLUCTUATES},
    {"ever faster", 60, true, faster, NULL, LEAK_FOUND},
    {"what is old goes", 100, true, fading, a_megabyte, LEAK_PLATEAU},
    {"all that was allocated stays", 100, true, always, a_megabyte, LEAK_FOUND},
};

static size_t changes_of(const struct site *site, struct leak_change *changes) {
    size_t count = 0;
    for (uint32_t point = 0; point < site->points; point++) {
        int64_t bytes = site->gain(point, site->points);
        uint64_t allocated = site->allocated ? site->allocated(point, site->points) : 0;
        if (bytes || allocated) changes[count++] = (struct leak_change){point, bytes, bytes > 0 ? 1 : -1, allocated};
    }
    return count;
}

Test(leak_judge, verdicts) {
    struct leak_change changes[POINTS_MOST];
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        struct leak_rule rule = {
            .points = sites[i].points, .left = sites[i].left, .young = sites[i].left ? 2 : 0, .floor = 1024};
        struct leak_judgement got = leak_judge(changes, changes_of(&sites[i], changes), &rule);
        cr_expect_eq(got.verdict, sites[i].verdict, "%s: %s, not %s", sites[i].name, leak_verdict_name(got.verdict),
                     leak_verdict_name(sites[i].verdict));
        cr_expect(got.grew <= got.judged && got.judged <= sites[i].points, "%s", sites[i].name);
    }
}

Test(leak_judge, figures) {
    struct leak_change changes[POINTS_MOST];
    struct leak_rule rule = {.points = 30, .left = true, .young = 2, .floor = 1024};
    struct leak_judgement got = leak_judge(changes, changes_of(&sites[0], changes), &rule);
    cr_expect_eq(got.first, 3);
    cr_expect_eq(got.judged, 25);
    cr_expect_eq(got.grew, 25);
    cr_expect(got.monotone && got.confidence == LEAK_HIGH);
    cr_expect_eq(got.bytes_per_run, 4096.0);
    cr_expect_eq(got.blocks_per_run, 1.0);
}

/* Few points are little evidence, however regular they are. */
Test(leak_judge, confidence) {
    static const struct {
        uint32_t points, judged;
        int64_t (*gain)(uint32_t point, uint32_t points);
        enum leak_confidence confidence;
    } rows[] = {{9, 5, always, LEAK_LOW},
                {12, 8, always, LEAK_LOW},
                {13, 9, always, LEAK_HIGH},
                {40, 34, each_fifth, LEAK_MEDIUM},
                {60, 52, since_half, LEAK_HIGH}};
    struct leak_change changes[POINTS_MOST];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct site site = {.points = rows[i].points, .gain = rows[i].gain};
        struct leak_rule rule = {.points = site.points, .left = true, .young = 2, .floor = 1024};
        struct leak_judgement got = leak_judge(changes, changes_of(&site, changes), &rule);
        cr_expect_eq(got.verdict, LEAK_FOUND, "%u points: %s", site.points, leak_verdict_name(got.verdict));
        cr_expect_eq(got.confidence, rows[i].confidence, "%u points: %s", site.points,
                     leak_confidence_name(got.confidence));
        cr_expect(leak_judged(&rule) == rows[i].judged, "%u points: %u", site.points, leak_judged(&rule));
    }
}

/* Young memory is left out, however much it is. */
Test(leak_judge, young) {
    struct leak_change changes[POINTS_MOST];
    struct leak_rule rule = {.points = 30, .left = true, .young = 23, .floor = 1024};
    size_t count = changes_of(&sites[0], changes);
    cr_expect_eq(leak_judge(changes, count, &rule).verdict, LEAK_UNDECIDED);
    rule.young = 22;
    cr_expect_eq(leak_judge(changes, count, &rule).verdict, LEAK_FOUND);
    rule.young = 40;
    cr_expect_eq(leak_judge(changes, count, &rule).verdict, LEAK_UNDECIDED);
}

/* A reading may stand for several runs. */
Test(leak_judge, figures_by_run) {
    struct leak_change changes[POINTS_MOST];
    uint32_t runs[30];
    for (int i = 0; i < 30; i++) runs[i] = 4;
    struct leak_rule rule = {.points = 30, .floor = 1024, .runs = runs};
    struct leak_judgement got = leak_judge(changes, changes_of(&sites[1], changes), &rule);
    cr_expect_eq(got.bytes_per_run, 1024.0);
    memset(runs, 0, sizeof runs); /* no numbers of runs: growth by reading */
    got = leak_judge(changes, changes_of(&sites[1], changes), &rule);
    cr_expect_eq(got.bytes_per_run, 4096.0);
}

/* A late leak cannot be told from replaced memory if the same owner had memory at forgotten call stacks before. */
Test(leak_judge, forgotten) {
    struct leak_change changes[POINTS_MOST];
    const struct leak_change early = {10, 0, 0, 5000}, late = {50, 0, 0, 5000};
    struct leak_rule rule = {.points = 60, .left = true, .young = 2, .floor = 1024};
    struct site since = {.points = 60, .gain = since_half}, all = {.points = 60, .gain = always};
    size_t count = changes_of(&since, changes);
    rule.forgotten = &early;
    rule.forgotten_count = 1;
    cr_expect_eq(leak_judge(changes, count, &rule).verdict, LEAK_PLATEAU);
    rule.forgotten = &late;
    cr_expect_eq(leak_judge(changes, count, &rule).verdict, LEAK_FOUND);
    rule.forgotten = &early;
    cr_expect_eq(leak_judge(changes, changes_of(&all, changes), &rule).verdict, LEAK_FOUND);
}

/* Noise around any level is no leak: of ten thousand sites, at most one is found. */
Test(leak_judge, noise_is_no_leak) {
    struct leak_change changes[100];
    uint32_t found = 0;
    srand(1);
    for (int site = 0; site < 10000; site++) {
        uint32_t points = 14 + (uint32_t)rand() % 86;
        int64_t level = 0;
        for (uint32_t i = 0; i < points; i++) {
            int64_t now = rand() % 1000000;
            changes[i] = (struct leak_change){i, now - level, 0, 0};
            level = now;
        }
        struct leak_rule rule = {.points = points, .floor = 1024};
        found += leak_judge(changes, points, &rule).verdict == LEAK_FOUND;
    }
    cr_expect_leq(found, 1, "%u of 10000", found); /* by chance */
}
