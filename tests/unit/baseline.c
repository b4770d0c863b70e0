/* baseline.c — figures are written as text, which is the same on every machine, and are read back. Faults of a file
 * are reported. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/check/baseline.h"

static void add(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes) {
    cr_assert_not_null(figures_add(figures, kind, name, bytes, bytes / 100));
}

/* Adds a run whose names need escaping, and whose model has its file below `home`. */
static void add_run(struct figures *figures, uint64_t bytes, const char *home) {
    char name[FIGURE_KEY_MOST] = "at", path[200];
    snprintf(path, sizeof path, "%s/models/wan \"2\".safetensors", home);
    add(figures, FIGURE_TOTAL, "", bytes);
    figure_name_frame(name, sizeof name, "make|it\n", "/usr/lib/libx.so");
    figure_name_frame(name, sizeof name, "main", "prog");
    figure_name_of(name, sizeof name, "model", "UN\xc3\x89T\xff", path);
    figure_name_of(name, sizeof name, "node", "KSampler", "");
    add(figures, FIGURE_SITE, name, bytes / 2);
    figure_name_owner(name, sizeof name, "model", "UN\xc3\x89T\xff", path);
    add(figures, FIGURE_OWNER, name, bytes / 4);
    figures_end_run(figures);
}

static char *text_of(struct figures *figures) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    baseline_write(figures, to);
    fclose(to);
    return text;
}

static const char *const whole =
    "memstow-baseline 3\n"
    "# Bytes and blocks, the lowest and the highest of several runs: 'memstow check --update-baseline' writes it.\n"
    "measure live\n"
    "runs 2\n"
    "floor 1\n"
    "total 4000..4400 40..44\n"
    "owner 1000..1100 10..11 model \"UN\xc3\x89T\\xff\" \"wan \\\"2\\\".safetensors\"\n"
    "site 2000..2200 20..22 at \"make|it\\n@libx.so\" \"main@prog\" of \"model:UN\xc3\x89T\\xff\" "
    "from \"wan \\\"2\\\".safetensors\" \"node:KSampler\"\n";

/* How a baseline of one run begins. */
#define BEGIN(version)                                                                                                 \
    "memstow-baseline " version "\n"                                                                                   \
    "# Bytes and blocks, the lowest and the highest of several runs: 'memstow check --update-baseline' writes it.\n"   \
    "measure live\n"                                                                                                   \
    "runs 1\n"                                                                                                         \
    "floor 1\n"                                                                                                        \
    "total 4000 40\n"

/* A baseline as earlier versions of memstow wrote it: a call site names its model, but not the model's file. */
static const char *const earlier = BEGIN("2") "cuda-total 7000 70\n"
                                              "site 2000 20 at \"make@libx.so\" of \"model:UNET\" \"node:KSampler\"\n";

static const char *const with_devices = BEGIN("2") "cuda-total 7000 70\n"
                                                   "owner 100 1 model \"UNET\" \"\"\n"
                                                   "cuda-owner 6000 60 model \"UNET\" \"\"\n"
                                                   "site 100 1 at \"f@m\"\n"
                                                   "cuda-site 6000 60 at \"f@m\"\n";

#define SITE_OF_TWO "at \"f@m\" of \"model:a\" from \"b\" \"custom:c\" from \"d\" \"node:e\""
static const char *const devices_and_origins = BEGIN("3") "cuda-total 7000 70\n"
                                                          "cuda-site 2000 20 " SITE_OF_TWO "\n";

/* Only a person could have written this line: it gives an origin to an owner that is neither a model nor custom. */
static const char *const other_kind = BEGIN("3") "site 2000 20 at \"f@m\" of \"other:a\" from \"b\"\n";

/* Figures of host and devices have the same names. In the text, lines of devices begin with "cuda-". So the figures are
 * still separate when the text is read back. */
Test(baseline, has_devices_beside_the_host) {
    struct figures figures, read;
    struct scan scan;
    figures_begin(&figures);
    figures_begin(&read);
    add(&figures, FIGURE_SITE, "at \"f@m\"", 100);
    cr_assert_not_null(figures_add_cuda(&figures, FIGURE_SITE, "at \"f@m\"", 6000, 60));
    add(&figures, FIGURE_OWNER, "model \"UNET\" \"\"", 100);
    cr_assert_not_null(figures_add_cuda(&figures, FIGURE_OWNER, "model \"UNET\" \"\"", 6000, 60));
    add(&figures, FIGURE_TOTAL, "", 4000);
    cr_assert_not_null(figures_add_cuda(&figures, FIGURE_TOTAL, "", 7000, 70));
    figures_end_run(&figures);
    char *text = text_of(&figures);
    cr_expect_str_eq(text, with_devices);
    scan_begin(&scan, "base.txt", text, strlen(text));
    cr_assert_eq(baseline_read(&read, &scan), 0, "%s", scan.error);
    cr_expect(read.with_cuda && figures_find_cuda(&read, FIGURE_OWNER, "model \"UNET\" \"\"")->bytes.low == 6000);
    char *again = text_of(&read);
    cr_expect_str_eq(again, with_devices);
    free(text);
    free(again);
    figures_end(&figures);
    figures_end(&read);
}

Test(baseline, is_the_same_text_on_every_machine) {
    struct figures figures;
    figures_begin(&figures);
    add_run(&figures, 4400, "/home/alice");
    add_run(&figures, 4000, "/root");
    char *text = text_of(&figures);
    cr_expect_str_eq(text, whole);
    free(text);
    figures_end(&figures);
}

Test(baseline, is_read_as_it_was_written) {
    struct figures figures;
    struct scan scan;
    figures_begin(&figures);
    scan_begin(&scan, "base.txt", whole, strlen(whole));
    cr_assert_eq(baseline_read(&figures, &scan), 0, "%s", scan.error);
    cr_expect_eq(figures.runs, 2);
    char *text = text_of(&figures);
    cr_expect_str_eq(text, whole);
    free(text);
    cr_expect(!figures.without_origins && !figures.with_cuda);
    const struct figure *total = figures_find(&figures, FIGURE_TOTAL, "");
    cr_expect(total && total->bytes.low == 4000 && total->bytes.high == 4400 && total->blocks.high == 44);
    figures_end(&figures);
}

/* A file of an earlier version has no origins. Only call sites of models and of custom owners have an origin. So if
 * such a file has none of these call sites, its figures are complete. */
Test(baseline, without_origins_is_known_as_such) {
    static const struct {
        const char *text;
        bool without;
    } files[] = {
        {earlier, true},
        {"memstow-baseline 1\ntotal 1 1\nsite 1 1 at \"f@m\" of \"custom:a\"", true},
        {"memstow-baseline 1\ntotal 1 1\nsite 1 1 at \"f@m\" \"model:a@m\" of \"node:KSampler\"", false},
        {"memstow-baseline 1\ntotal 1 1\nowner 1 1 model \"a\" \"b\"\nsite 1 1 at \"f@m\"", false},
        {"memstow-baseline 3\ntotal 1 1\nsite 1 1 at \"f@m\" of \"model:a\"", false},
        {"memstow-baseline 3\ntotal 1 1\nsite 1 1 at \"f@m\" of \"model:a\" from \"b\"", false},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct figures figures;
        struct scan scan;
        figures_begin(&figures);
        scan_begin(&scan, "base.txt", files[i].text, strlen(files[i].text));
        cr_assert_eq(baseline_read(&figures, &scan), 0, "case %zu: %s", i, scan.error);
        cr_expect_eq(figures.without_origins, files[i].without, "case %zu", i);
        figures_again(&figures);
        cr_expect_eq(figures.without_origins, files[i].without, "case %zu: also in the next runs", i);
        figures_end(&figures);
    }
}

/* Reads a text, and expects that the figures are written as the same text. The caller ends the figures. */
static void read_and_write(struct figures *figures, const char *text) {
    struct scan scan;
    figures_begin(figures);
    scan_begin(&scan, "base.txt", text, strlen(text));
    cr_assert_eq(baseline_read(figures, &scan), 0, "%s", scan.error);
    char *written = text_of(figures);
    cr_expect_str_eq(written, text);
    free(written);
}

Test(baseline, of_any_version_is_written_as_it_was) {
    struct figures figures;
    char words[FIGURE_KEY_MOST];
    read_and_write(&figures, earlier);
    cr_expect(figures.with_cuda && figures.without_origins);
    figures_end(&figures);
    read_and_write(&figures, devices_and_origins);
    cr_expect(figures.with_cuda && !figures.without_origins);
    const struct figure *site = figures_find_cuda(&figures, FIGURE_SITE, SITE_OF_TWO);
    cr_assert_not_null(site);
    figure_words(site, words, sizeof words);
    cr_expect_str_eq(words, "f@m, model:a (b), custom:c (d), node:e on CUDA devices");
    figures_end(&figures);
    read_and_write(&figures, other_kind);
    figures_end(&figures);
}

#define HEAD "memstow-baseline 1\n"
#define OF_DEVICES "memstow-baseline 2\n"
#define OF_ORIGINS "memstow-baseline 3\n"
static const struct {
    const char *text, *message;
} bad[] = {
    {"", "base.txt:1:1: not a baseline: the file is empty"},
    {"hello", "base.txt:1:1: not a baseline: the file does not begin with memstow-baseline"},
    {"memstow-baseline", "base.txt:1:17: a version expected"},
    {"memstow-baseline 4", "base.txt:1:18: a later memstow wrote it: version 4"},
    {"memstow-baseline 1 x", "base.txt:1:20: nothing more belongs on this line"},
    {HEAD, "base.txt:2:1: the file has no total"},
    {HEAD "<<<<<<< HEAD", "base.txt:2:1: measure, runs, floor, total, owner or site expected"},
    {HEAD "total", "base.txt:2:6: bytes expected"},
    {HEAD "total 5", "base.txt:2:8: a number of blocks expected"},
    {HEAD "total 5..4 1", "base.txt:2:10: the range ends below its start"},
    {HEAD "total 5.4 1", "base.txt:2:7: bytes expected: N or N..M"},
    {HEAD "total -5 1", "base.txt:2:7: bytes expected"},
    {HEAD "total 99999999999999999999 1", "base.txt:2:7: the number is too large"},
    {HEAD "total 1 1\ntotal 1 1", "base.txt:3:1: the total is given twice"},
    {HEAD "total 1 1 x", "base.txt:2:11: nothing more belongs on this line"},
    {HEAD "measure dead", "base.txt:2:9: live or peak expected"},
    {HEAD "measure live\nmeasure live", "base.txt:3:1: the measure is given twice"},
    {HEAD "runs 0", "base.txt:2:6: runs must be from 1 to 2^62"},
    {HEAD "floor 0", "base.txt:2:7: floor must be from 1 to 2^62"},
    {HEAD "owner 1 1 run \"a\" \"b\"", "base.txt:2:11: model, node, custom or state expected"},
    {HEAD "owner 1 1 model \"a\"", "base.txt:2:20: a name and an origin expected, in quotes"},
    {HEAD "owner 1 1 model \"a\" \"b\" \"c\"", "base.txt:2:25: too many texts in quotes"},
    {HEAD "owner 1 1 model a b", "base.txt:2:17: a name and an origin expected, in quotes"},
    {HEAD "owner 1 1 model \"a\" \"b\"\nowner 2 2 model \"a\" \"b\"", "base.txt:3:1: this owner is listed twice"},
    {HEAD "site 1 1 \"f@m\"", "base.txt:2:10: at expected"},
    {HEAD "site 1 1 at", "base.txt:2:12: function@module expected, in quotes"},
    {HEAD "site 1 1 at \"f@m\" in \"model:a\"", "base.txt:2:19: of expected"},
    {HEAD "site 1 1 at \"f@m\" of", "base.txt:2:21: kind:name expected, in quotes"},
    {HEAD "site 1 1 at \"f@m\" of \"model:a\" from \"b\"", "base.txt:2:32: nothing more belongs on this line"},
    {OF_ORIGINS "site 1 1 at \"f@m\" of \"model:a\" in \"b\"", "base.txt:2:32: from expected"},
    {OF_ORIGINS "site 1 1 at \"f@m\" of \"model:a\" from", "base.txt:2:36: an origin expected, in quotes"},
    {OF_ORIGINS "site 1 1 at \"f@m\" from \"b\"", "base.txt:2:19: of expected"},
    {OF_ORIGINS "cuda-total 1 1", "base.txt:2:1: the file has no total"},
    {HEAD "site 1 1 at \"f@m", "base.txt:2:13: the quotes are not closed"},
    {HEAD "total 1 1\ncuda-total 1 1", "base.txt:3:1: measure, runs, floor, total, owner or site expected"},
    {OF_DEVICES "cuda-total 1 1", "base.txt:2:1: the file has no total"},
    {OF_DEVICES "cuda-total 1 1\ntotal 1 1\ncuda-total 1 1", "base.txt:4:1: the total is given twice"},
    {OF_DEVICES "cuda-owner 1 1 model \"a\" \"b\"\nowner 1 1 model \"a\" \"b\"\ncuda-owner 2 2 model \"a\" \"b\"",
     "base.txt:4:1: this owner is listed twice"},
    {OF_DEVICES "cuda-runs 1", "base.txt:2:1: measure, runs, floor, total, owner or site expected"},
};

Test(baseline, a_fault_has_line_and_column) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct figures figures;
        struct scan scan;
        figures_begin(&figures);
        scan_begin(&scan, "base.txt", bad[i].text, strlen(bad[i].text));
        cr_expect_eq(baseline_read(&figures, &scan), -1, "%s", bad[i].text);
        cr_expect_str_eq(scan.error, bad[i].message, "case %zu: %s", i, scan.error);
        figures_end(&figures);
    }
}

/* When a baseline is written again, a figure keeps its old range if its new range lies within the old one. */
Test(baseline, stays_as_it_was_where_nothing_changed) {
    struct figures before, now;
    figures_begin(&before);
    figures_begin(&now);
    add_run(&before, 4000, "/");
    add_run(&before, 4400, "/");
    add_run(&now, 4100, "/");
    add(&now, FIGURE_SITE, "at \"new@prog\"", 7);
    figures_end_run(&now);
    add_run(&now, 4300, "/");
    figures_settle(&now, &before);
    const struct figure *total = figures_find(&now, FIGURE_TOTAL, "");
    cr_expect(total->bytes.low == 0, "a run without a total had nothing");
    figures_end(&now);
    add_run(&now, 4100, "/");
    add_run(&now, 4300, "/");
    figures_settle(&now, &before);
    char *text = text_of(&now);
    cr_expect_str_eq(text, whole);
    free(text);
    figures_end(&now);
    add_run(&now, 4100, "/");
    add_run(&now, 4500, "/"); /* beyond the earlier range */
    figures_settle(&now, &before);
    total = figures_find(&now, FIGURE_TOTAL, "");
    cr_expect(total->bytes.low == 4100 && total->bytes.high == 4500 && total->blocks.high == 45);
    figures_end(&before);
    figures_end(&now);
}

static void add_sites(struct figures *figures, size_t count, uint64_t shift) {
    char name[64];
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "at \"f%03zu@prog\"", i);
        add(figures, FIGURE_SITE, name, i + shift);
    }
    figures_end_run(figures);
}

static size_t listed(const struct figures *figures, size_t i) {
    char name[64];
    snprintf(name, sizeof name, "at \"f%03zu@prog\"", i);
    return figures_find(figures, FIGURE_SITE, name) != NULL;
}

Test(baseline, is_small_and_what_is_listed_stays_listed) {
    struct figures before, now;
    figures_begin(&before);
    figures_begin(&now);
    add_sites(&before, 300, 0);
    figures_cut(&before, NULL, 100);
    cr_expect_eq(before.floor, 256);
    cr_expect(listed(&before, 256) && !listed(&before, 255));
    char name[] = "at \"f256@prog\"", other[] = "at \"f250@prog\"";
    add(&now, FIGURE_SITE, name, 200);
    add(&now, FIGURE_SITE, other, 250);
    figures_end_run(&now);
    figures_cut(&now, &before, 100);
    cr_expect_eq(now.floor, 256);
    cr_expect(listed(&now, 256), "it was listed, and has more than half the floor");
    cr_expect_not(listed(&now, 250));
    figures_end(&before);
    figures_end(&now);
}
