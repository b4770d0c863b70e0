/* suppressions.c — what a line of the file suppresses, until when, and the faults of a file. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/diff/suppressions.h"

enum { TODAY = 20261122 };

static int read_text(struct suppressions *suppressions, struct scan *scan, const char *text) {
    scan_begin(scan, "known.txt", text, strlen(text));
    return suppressions_read(suppressions, scan, TODAY);
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"functoin=x", "known.txt:1:1: function=, module=, owner= or until= expected"},
    {"\n\n  function x", "known.txt:3:3: '=' expected behind function"},
    {"function= module=y", "known.txt:1:10: a pattern expected"},
    {"# caf\xc3\xa9\nowner=\"\xc3\xa9\xc3\xa9\" bad", "known.txt:2:12: function=, module=, owner= or until= expected"},
    {"function=\"open", "known.txt:1:10: the quotes are not closed"},
    {"function=\"a\\q\"", "known.txt:1:12: no such escape: \\\" \\\\ \\n \\t \\r and \\xNN (not \\x00) are known"},
    {"function=\"\\x00\"", "known.txt:1:11: no such escape: \\\" \\\\ \\n \\t \\r and \\xNN (not \\x00) are known"},
    {"function=a function=b", "known.txt:1:21: function is given twice on this line"},
    {"function=\"\"", "known.txt:1:10: an empty pattern matches nothing"},
    {"until=2027-01-01", "known.txt:1:1: function=, module= or owner= is needed: this would suppress everything"},
    {"owner=* until=2027-02-29", "known.txt:1:15: until=2027-02-29: not a day like 2027-03-31"},
    {"owner=* until=2027-13-01", "known.txt:1:15: until=2027-13-01: not a day like 2027-03-31"},
    {"owner=* until=tomorrow", "known.txt:1:15: until=tomorrow: not a day like 2027-03-31"},
    {"owner=* until=2027-01-01 until=2027-01-02", "known.txt:1:32: until is given twice on this line"},
    {"<<<<<<< HEAD", "known.txt:1:1: function=, module=, owner= or until= expected"},
    {"owner=a\"b\"", "known.txt:1:8: function=, module=, owner= or until= expected"},
};

Test(suppressions, a_fault_has_line_and_column) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct suppressions suppressions;
        struct scan scan;
        cr_expect_eq(read_text(&suppressions, &scan, bad[i].text), -1, "%s", bad[i].text);
        cr_expect_str_eq(scan.error, bad[i].message, "case %zu", i);
        suppressions_end(&suppressions);
    }
    char nul[] = "owner=a\0b";
    struct suppressions suppressions;
    struct scan scan;
    scan_begin(&scan, "known.txt", nul, sizeof nul - 1);
    cr_expect_eq(suppressions_read(&suppressions, &scan, TODAY), -1);
    cr_expect_str_eq(scan.error, "known.txt:1:7: a NUL in the text");
    suppressions_end(&suppressions);
}

static struct figure *owner(struct figures *figures, const char *kind, const char *name) {
    char text[FIGURE_KEY_MOST];
    cr_assert(figure_name_owner(text, sizeof text, kind, name, "origin.bin"));
    return figures_add(figures, FIGURE_OWNER, text, 1, 1);
}

static struct figure *site(struct figures *figures) {
    char text[FIGURE_KEY_MOST] = "at";
    figure_name_frame(text, sizeof text, "json_cache_fill", "/usr/lib/libjson-1.2.so");
    figure_name_frame(text, sizeof text, "main", "prog");
    figure_name_of(text, sizeof text, "model", "UNET 1", "origin.bin");
    figure_name_of(text, sizeof text, "node", "KSampler", "");
    return figures_add(figures, FIGURE_SITE, text, 1, 1);
}

static const struct {
    const char *line;
    bool site, unet, vae;
} matches[] = {
    {"function=json_*", true, false, false},
    {"function=main", true, false, false},
    {"function=mai", false, false, false},
    {"module=libjson*.so", true, false, false},
    {"module=/usr/lib/*", false, false, false},
    {"function=json_* module=libjson*", true, false, false},
    {"function=main module=libjson*", false, false, false}, /* both globs must match the same frame */
    {"owner=model:UNET*", true, true, false},
    {"owner=\"UNET 1\"", true, true, false},
    {"owner=\"UNET 1 (origin.bin)\"", true, true, false},
    {"owner=\"model:UNET 1 (*.bin)\"", true, true, false},
    {"owner=\"UNET 1 (b.bin)\"", false, false, false},
    {"owner=KSampler", true, false, false},
    {"owner=*", true, true, true},
    {"owner=model:*", true, true, true},
    {"owner=VAE", false, false, true},
    {"owner=UNET* function=main", true, false, false},
    {"owner=VAE function=main", false, false, false},
    {"owner=* until=2026-11-22", true, true, true},
    {"owner=* until=2026-11-21", false, false, false},
    {"owner=*   # comment", true, true, true},
};

Test(suppressions, match_by_frame_and_owner_until_their_day) {
    struct figures figures;
    figures_begin(&figures);
    const struct figure *at = site(&figures), *unet = owner(&figures, "model", "UNET 1");
    const struct figure *vae = owner(&figures, "model", "VAE");
    const struct figure *total = figures_add(&figures, FIGURE_TOTAL, "", 1, 1);
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++) {
        struct suppressions suppressions;
        struct scan scan;
        cr_assert_eq(read_text(&suppressions, &scan, matches[i].line), 0, "%s", scan.error);
        cr_assert_eq(suppressions.count, 1);
        cr_expect_eq(suppressions_match(&suppressions, at) != NULL, matches[i].site, "site: %s", matches[i].line);
        cr_expect_eq(suppressions.list[0].used, matches[i].site, "used: %s", matches[i].line);
        cr_expect_eq(suppressions_match(&suppressions, unet) != NULL, matches[i].unet, "UNET: %s", matches[i].line);
        cr_expect_eq(suppressions_match(&suppressions, vae) != NULL, matches[i].vae, "VAE: %s", matches[i].line);
        cr_expect_null(suppressions_match(&suppressions, total), "the total is not suppressed");
        suppressions_end(&suppressions);
    }
    figures_end(&figures);
}

Test(suppressions, lines_are_counted_and_the_first_that_matches_is_used) {
    struct suppressions suppressions;
    struct scan scan;
    struct figures figures;
    figures_begin(&figures);
    cr_assert_eq(read_text(&suppressions, &scan, "# known\n\nowner=nobody\r\n\tfunction=main\nfunction=*"), 0);
    cr_assert_eq(suppressions.count, 3);
    const struct suppression *found = suppressions_match(&suppressions, site(&figures));
    cr_assert_not_null(found);
    cr_expect_eq(found->line, 4);
    cr_expect_not(suppressions.list[0].used || suppressions.list[2].used);
    suppressions_end(&suppressions);
    figures_end(&figures);
}
