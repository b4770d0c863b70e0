/* cmd_diff.c — memstow diff: what grew from one file to another. Rows are matched by name, in a stable order. */
#include "commands.h"
#include "groups.h"
#include "json.h"
#include "threshold.h"
#include "subject.h"
#include "text.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_BY = 256, OPTION_FAIL_OVER, OPTION_JSON, ROWS_SHOWN = 30 };

struct side_total {
    char name[32];
    uint32_t pid;
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes;
};

struct diff {
    const char *argument[2];
    struct side_total total[2];
    struct groups groups;
    struct limits limits;
    bool json;
};

static int help(void) {
    puts("usage: memstow diff A B [--by=VIEW] [--fail-over=LIMIT,...] [--json]\n"
         "\n"
         "What grew from A to B; each is a FILE or a PID.\n"
         "\n"
         "  --by=VIEW          model, node, run, site, module or thread (default: module)\n"
         "  --fail-over=LIMIT  exit 1 when the live memory grew by more than LIMIT:\n"
         "                     SIZE (10MiB), PCT% of A (5%), or COUNTx blocks (100x)\n"
         "  --json             one JSON document, sizes in bytes\n"
         "\n"
         "Exit code: 0 fine, 1 over a limit, 2 wrong usage, 3 unreadable or damaged input.");
    return finish_output(EXIT_FINE);
}

static int load_side(struct diff *diff, int side) {
    static struct subject subject;
    int code = subject_open(&subject, diff->argument[side], false);
    if (code != EXIT_FINE) return code;
    const struct image *image = &subject.image;
    struct side_total *total = &diff->total[side];
    memcpy(total->name, image->header.name, sizeof total->name);
    total->pid = image->header.pid;
    total->live_bytes = image->host.live_bytes + image->mapped.live_bytes;
    total->live_blocks = image->host.live_blocks + image->mapped.live_blocks;
    total->allocated_bytes = image->host.alloc_bytes + image->mapped.alloc_bytes;
    total->peak_bytes = image_peak(image);
    int result = groups_add(&diff->groups, image, side);
    subject_close(&subject);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

static int64_t grown_bytes(const struct diff *diff) {
    return (int64_t)(diff->total[1].live_bytes - diff->total[0].live_bytes);
}

static int64_t grown_blocks(const struct diff *diff) {
    return (int64_t)(diff->total[1].live_blocks - diff->total[0].live_blocks);
}

static bool changed(const struct row *row) { return row_growth(row) != 0 || row_growth_blocks(row) != 0; }

/* live: what a thread holds is negative when it freed more than it allocated. */
static void print_row(const char *name, int64_t bytes, int64_t blocks, int64_t live) {
    struct text held = live < 0 ? text_size_change(live) : text_size((uint64_t)live);
    printf("%s %12s %12s %13s\n", text_left(name, 40).s, text_size_change(bytes).s, text_count_change(blocks).s,
           held.s);
}

static void print_rows(const struct diff *diff) {
    const struct groups *groups = &diff->groups;
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < groups->count; i++) {
        const struct row *row = &groups->rows[i];
        char label[2048];
        if (!changed(row)) continue;
        if (shown == ROWS_SHOWN) {
            more++;
            continue;
        }
        shown++;
        groups_label(groups, row, label, sizeof label);
        print_row(label, row_growth(row), row_growth_blocks(row), (int64_t)row->side[1].live_bytes);
    }
    if (more) printf("… and %zu more changed (--json lists all)\n", more);
}

static void print_text(const struct diff *diff) {
    const struct side_total *a = &diff->total[0], *b = &diff->total[1];
    printf("A  %s (%s, pid %u): %s live\n", text_fit(diff->argument[0], 40).s, TEXT_SAFE(a->name), a->pid,
           text_size(a->live_bytes).s);
    printf("B  %s (%s, pid %u): %s live\n\n", text_fit(diff->argument[1], 40).s, TEXT_SAFE(b->name), b->pid,
           text_size(b->live_bytes).s);
    printf("%-40s %12s %12s %13s\n", view_name(diff->groups.view), "grew by", "blocks", "live in B");
    print_rows(diff);
    print_row("total", grown_bytes(diff), grown_blocks(diff), (int64_t)b->live_bytes);
}

static void json_side(struct json *json, const char *key, const char *argument, const struct side_total *total) {
    json_object(json, key);
    json_string(json, "argument", argument);
    json_string(json, "name", total->name);
    json_number(json, "pid", total->pid);
    json_number(json, "live_bytes", total->live_bytes);
    json_number(json, "live_blocks", total->live_blocks);
    json_number(json, "peak_bytes", total->peak_bytes);
    json_number(json, "allocated_bytes", total->allocated_bytes);
    json_end_object(json);
}

static void json_owner(struct json *json, const char *key, const char *name) {
    char text[2048];
    if (!name) {
        json_null(json, key);
        return;
    }
    snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "\x1f"), name);
    json_string(json, key, text);
}

static void json_row(struct json *json, const struct groups *groups, const struct row *row) {
    char label[2048];
    groups_label(groups, row, label, sizeof label);
    json_object(json, NULL);
    json_string(json, "name", label);
    if (groups->view == BY_SITE) {
        json_owner(json, "model", groups_owner(groups, row->model));
        json_owner(json, "node", groups_owner(groups, row->node));
        json_owner(json, "run", groups_owner(groups, row->run));
        json_string(json, "module", groups_place(groups, row));
    }
    json_signed(json, "growth_bytes", row_growth(row));
    json_signed(json, "growth_blocks", row_growth_blocks(row));
    json_signed(json, "a_live_bytes", (int64_t)row->side[0].live_bytes);
    json_signed(json, "a_live_blocks", (int64_t)row->side[0].live_blocks);
    json_signed(json, "b_live_bytes", (int64_t)row->side[1].live_bytes);
    json_signed(json, "b_live_blocks", (int64_t)row->side[1].live_blocks);
    json_end_object(json);
}

static void print_json(const struct diff *diff, const struct limit *over) {
    struct json json;
    json_begin(&json, stdout, "memstow-diff");
    json_side(&json, "a", diff->argument[0], &diff->total[0]);
    json_side(&json, "b", diff->argument[1], &diff->total[1]);
    json_signed(&json, "growth_bytes", grown_bytes(diff));
    json_signed(&json, "growth_blocks", grown_blocks(diff));
    json_string(&json, "over", over ? over->text : NULL);
    json_string(&json, "by", view_name(diff->groups.view));
    json_array(&json, "rows");
    for (size_t i = 0; i < diff->groups.count; i++)
        if (changed(&diff->groups.rows[i])) json_row(&json, &diff->groups, &diff->groups.rows[i]);
    json_end_array(&json);
    json_finish(&json);
}

static int compare(struct diff *diff) {
    for (int side = 0; side < 2; side++) {
        int code = load_side(diff, side);
        if (code != EXIT_FINE) return code;
    }
    groups_sort_by_growth(&diff->groups);
    const struct limit *over =
        limits_passed(&diff->limits, grown_bytes(diff), grown_blocks(diff), diff->total[0].live_bytes);
    if (diff->json)
        print_json(diff, over);
    else
        print_text(diff);
    int code = finish_output(over ? EXIT_OVER : EXIT_FINE);
    if (over)
        complain("live memory grew by %s in %s block%s: over the limit of %s",
                 text_size(grown_bytes(diff) > 0 ? (uint64_t)grown_bytes(diff) : 0).s,
                 text_count_change(grown_blocks(diff)).s, grown_blocks(diff) == 1 ? "" : "s", over->text);
    return code;
}

int cmd_diff(int argc, char **argv) {
    static const struct option options[] = {{"by", required_argument, NULL, OPTION_BY},
                                            {"fail-over", required_argument, NULL, OPTION_FAIL_OVER},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct diff diff;
    enum view view = BY_MODULE;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return help();
        if (option == OPTION_JSON)
            diff.json = true;
        else if (option == OPTION_BY && !view_parse(optarg, &view))
            return usage_error("diff", "--by=%s: not model, node, run, site, module or thread", TEXT_SAFE(optarg));
        else if (option == OPTION_FAIL_OVER && !limits_parse(&diff.limits, optarg))
            return usage_error("diff", "--fail-over=%s: not SIZE, PCT%% or COUNTx, separated by commas",
                               TEXT_SAFE(optarg));
        else if (option != OPTION_BY && option != OPTION_FAIL_OVER)
            return option_error("diff", option, argv);
    }
    if (argc - optind != 2) return usage_error("diff", "two files or PIDs are needed");
    diff.argument[0] = argv[optind];
    diff.argument[1] = argv[optind + 1];
    groups_begin(&diff.groups, view);
    int code = compare(&diff);
    groups_end(&diff.groups);
    return code;
}
