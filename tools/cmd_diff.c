/* cmd_diff.c — memstow diff: what grew from one file to another. Rows are matched by name, in a stable order. */
#include "commands.h"
#include "estimate.h"
#include "groups.h"
#include "innermost.h"
#include "json_stack.h"
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
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, sample_bytes;
};

struct diff {
    const char *argument[2];
    struct subject subject[2]; /* loaded: what call stacks are read from; gone: it was, and cannot be read again */
    struct symbols *symbols[2];
    struct json_stacks *stacks[2];
    bool loaded[2], gone[2];
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

static void close_side(struct diff *diff, int side) {
    json_stacks_end(diff->stacks[side]);
    symbols_end(diff->symbols[side]);
    diff->stacks[side] = NULL;
    diff->symbols[side] = NULL;
    if (diff->loaded[side]) subject_close(&diff->subject[side]);
    diff->loaded[side] = false;
}

/* A side as far as its call stacks go; NULL when it cannot be read (again). Ids of stacks stay what they were. */
static const struct image *stacks_of(struct diff *diff, int side) {
    struct subject *subject = &diff->subject[side];
    if (diff->gone[side]) return NULL;
    diff->gone[side] = !diff->loaded[side] && subject_open(subject, diff->argument[side], false) != EXIT_FINE;
    if (diff->gone[side]) return NULL;
    diff->loaded[side] = true;
    image_drop_totals(&subject->image);
    if (!diff->symbols[side]) diff->symbols[side] = symbols_begin(&subject->image, subject->pid);
    return diff->symbols[side] ? &subject->image : NULL;
}

/* One image at a time: A is let go before B comes, and read again if a stack of it is to be shown. */
static int load_side(struct diff *diff, int side) {
    int code = subject_open(&diff->subject[side], diff->argument[side], false);
    if (code != EXIT_FINE) return code;
    struct image *image = &diff->subject[side].image;
    diff->loaded[side] = true;
    struct side_total *total = &diff->total[side];
    memcpy(total->name, image->header.name, sizeof total->name);
    total->pid = image->header.pid;
    total->live_bytes = image->host.live_bytes + image->mapped.live_bytes;
    total->live_blocks = image->host.live_blocks + image->mapped.live_blocks;
    total->allocated_bytes = image->host.alloc_bytes + image->mapped.alloc_bytes;
    total->peak_bytes = image_peak(image);
    total->sample_bytes = image->header.sample_bytes;
    int result = estimate_stacks(image);
    if (result == 0) result = groups_add(&diff->groups, image, side);
    if (side == 0 || diff->groups.view != BY_SITE)
        close_side(diff, side);
    else
        image_drop_totals(&diff->subject[side].image);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

static int64_t grown_bytes(const struct diff *diff) {
    return (int64_t)(diff->total[1].live_bytes - diff->total[0].live_bytes);
}

static int64_t grown_blocks(const struct diff *diff) {
    return (int64_t)(diff->total[1].live_blocks - diff->total[0].live_blocks);
}

static int name_width(const struct diff *diff) { return diff->groups.estimated ? 28 : 40; }

/* variance: of the growth. live: what a thread holds is negative when it freed more than it allocated. */
static void print_row(const struct diff *diff, const char *name, int64_t bytes, double variance, int64_t blocks,
                      int64_t live) {
    struct text held = live < 0 ? text_size_change(live) : text_size((uint64_t)live);
    printf("%s %12s", text_left(name, name_width(diff)).s, text_size_change(bytes).s);
    if (diff->groups.estimated) printf(" %11s", variance ? text_size(estimate_error(variance)).s : "");
    printf(" %12s %13s\n", text_count_change(blocks).s, held.s);
}

/* The stack of a row, if the row has one. */
static bool row_stack(struct diff *diff, const struct row *row, struct innermost *stack) {
    int side = (int)row->stack_side;
    stack->count = 0;
    const struct image *image = row->stack ? stacks_of(diff, side) : NULL;
    if (image) innermost_of(stack, image, diff->symbols[side], row->stack_node);
    return stack->count != 0;
}

/* A site by its innermost frame, and below it those further out and who owns it. */
static void print_site(struct diff *diff, const struct row *row, const char *label) {
    struct innermost stack;
    bool known = row_stack(diff, row, &stack), owned = row->model || row->node || row->run;
    print_row(diff,
              known        ? innermost_text(&stack.lines[0], name_width(diff)).s
              : row->stack ? "(call stack unknown)"
                           : label,
              row_growth(row), row->variance, row_growth_blocks(row), (int64_t)row->side[1].live_bytes);
    for (size_t i = 1; i < stack.count; i++) printf("    %s\n", innermost_text(&stack.lines[i], 76).s);
    if (owned && row->stack) printf("       of %s\n", text_fit(label, 70).s);
}

static void print_rows(struct diff *diff) {
    const struct groups *groups = &diff->groups;
    for (size_t i = 0; i < groups->ordered && i < ROWS_SHOWN; i++) {
        const struct row *row = groups_row(groups, i);
        char label[2048];
        groups_label(groups, row, label, sizeof label);
        print_site(diff, row, label);
    }
    if (groups->ordered > ROWS_SHOWN)
        printf("… and %zu more changed (--json lists all)\n", groups->ordered - ROWS_SHOWN);
}

static void print_text(struct diff *diff) {
    const struct side_total *a = &diff->total[0], *b = &diff->total[1];
    printf("A  %s (%s, pid %u): %s live\n", text_fit(diff->argument[0], 40).s, TEXT_SAFE(a->name), a->pid,
           text_size(a->live_bytes).s);
    printf("B  %s (%s, pid %u): %s live\n\n", text_fit(diff->argument[1], 40).s, TEXT_SAFE(b->name), b->pid,
           text_size(b->live_bytes).s);
    printf("%-*s %12s%s %12s %13s\n", name_width(diff), view_name(diff->groups.view), "grew by",
           diff->groups.estimated ? "           ±" : "", "blocks", "live in B");
    print_rows(diff);
    print_row(diff, "total", grown_bytes(diff), 0, grown_blocks(diff), (int64_t)b->live_bytes);
    if (diff->groups.estimated)
        puts("\nRows with ± are estimates from samples, and that is the standard error of their\ngrowth. The total is "
             "exact, and the remainder what the estimates lack.");
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
    if (total->sample_bytes)
        json_number(json, "sample_bytes", total->sample_bytes);
    else
        json_null(json, "sample_bytes");
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

static void json_row_stack(struct json *json, struct diff *diff, const struct row *row) {
    int side = (int)row->stack_side;
    const struct image *image = row->stack ? stacks_of(diff, side) : NULL;
    if (image && !diff->stacks[side]) diff->stacks[side] = json_stacks_begin(image, diff->symbols[side]);
    if (image && diff->stacks[side]) {
        json_stack(json, diff->stacks[side], row->stack_node, 0);
        return;
    }
    json_array(json, "stack");
    json_end_array(json);
}

static void json_row(struct json *json, struct diff *diff, const struct row *row) {
    const struct groups *groups = &diff->groups;
    char label[2048];
    groups_label(groups, row, label, sizeof label);
    json_object(json, NULL);
    json_string(json, "name", label);
    if (groups->view == BY_SITE) {
        json_owner(json, "model", groups_owner(groups, row->model));
        json_owner(json, "node", groups_owner(groups, row->node));
        json_owner(json, "run", groups_owner(groups, row->run));
        json_string(json, "module", *groups_place(groups, row) ? groups_place(groups, row) : NULL);
        json_row_stack(json, diff, row);
    }
    json_signed(json, "growth_bytes", row_growth(row));
    json_signed(json, "growth_blocks", row_growth_blocks(row));
    if (groups->estimated) {
        json_bool(json, "estimated", row->variance > 0);
        json_number(json, "error_bytes", estimate_error(row->variance));
    }
    json_signed(json, "a_live_bytes", (int64_t)row->side[0].live_bytes);
    json_signed(json, "a_live_blocks", (int64_t)row->side[0].live_blocks);
    json_signed(json, "b_live_bytes", (int64_t)row->side[1].live_bytes);
    json_signed(json, "b_live_blocks", (int64_t)row->side[1].live_blocks);
    json_end_object(json);
}

static void print_json(struct diff *diff, const struct limit *over) {
    static struct json json;
    json_begin(&json, stdout, "memstow-diff");
    json_side(&json, "a", diff->argument[0], &diff->total[0]);
    json_side(&json, "b", diff->argument[1], &diff->total[1]);
    json_signed(&json, "growth_bytes", grown_bytes(diff));
    json_signed(&json, "growth_blocks", grown_blocks(diff));
    json_string(&json, "over", over ? over->text : NULL);
    json_string(&json, "by", view_name(diff->groups.view));
    json_array(&json, "rows");
    for (size_t i = 0; i < diff->groups.ordered; i++) json_row(&json, diff, groups_row(&diff->groups, i));
    json_end_array(&json);
    json_finish(&json);
}

static int compare(struct diff *diff) {
    for (int side = 0; side < 2; side++) {
        int code = load_side(diff, side);
        if (code != EXIT_FINE) return code;
    }
    if (groups_sort_by_growth(&diff->groups, diff->json ? SIZE_MAX : ROWS_SHOWN) < 0) {
        complain("not enough memory");
        return EXIT_UNREADABLE;
    }
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
    groups_begin(&diff.groups, view, 2);
    int code = compare(&diff);
    close_side(&diff, 0);
    close_side(&diff, 1);
    groups_end(&diff.groups);
    return code;
}
