/* cmd_diff.c — memstow diff: shows which memory grew from one file to another. The rows of both files are matched by
 * name. Their order is stable. */
#include "tools/views/at_peak.h"
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/cmd/commands.h"
#include "tools/cmd/frame_options.h"
#include "tools/reader/cuda_image.h"
#include "tools/diff/diff.h"
#include "tools/views/estimate.h"
#include "tools/html/html_page.h"
#include "tools/symbols/innermost.h"
#include "tools/diff/known.h"
#include "tools/reader/nvml_image.h"
#include "tools/symbols/tally.h"
#include "tools/base/text.h"
#include "tools/base/top.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_BY = 256, OPTION_TOP, OPTION_PEAK, OPTION_FAIL_OVER, OPTION_SUPPRESSIONS, OPTION_PYTHON, OPTION_FORM };
enum { ROWS_JSON = 1000 };

static int cmd_diff_help(void) {
    puts("usage: memstow diff A B [--by=VIEW] [--top=N] [--peak] [--fail-over=LIMIT,...]\n"
         "                    [--suppressions=FILE] [--all-frames] [--absolute]\n"
         "                    [--json | --html [-o PAGE]]\n"
         "       memstow diff A B --folded|--pprof [--by=model|node|run] [--python]\n"
         "                    [--top=N] [--peak] [--fail-over=LIMIT,...]\n"
         "                    [--suppressions=FILE]\n"
         "\n"
         "What grew from A to B; each is a FILE or a PID.\n"
         "\n"
         "  --by=VIEW          model, node, run, site, module or thread (default: site if\n"
         "                     both have call stacks, else module)\n"
         "  --top=N            show N rows (default 10; --json shows all rows with --by,\n"
         "                     else 1,000)\n"
         "  --peak             compare the peaks instead of live memory\n"
         "  --fail-over=LIMIT,...\n"
         "                     exit 1 if memory of the host or of CUDA devices grew by\n"
         "                     more than a LIMIT: SIZE (10MiB), PCT% of A (5%), or COUNTx\n"
         "                     blocks (100x). owner:LIMIT is for each owner but runs,\n"
         "                     site:LIMIT for each call site\n"
         "  --suppressions=FILE\n"
         "                     known growth, which limits do not count: memstow-check(1)\n"
         "  --all-frames       whole call stacks, with the allocator's own frames\n"
         "  --absolute         whole paths of source files, for an editor to jump to\n"
         "  --json             one JSON document, sizes in bytes\n"
         "  --html             one page for a browser, by site: growth is red, shrinkage\n"
         "                     is blue\n"
         "  --folded           one line a stack, with its bytes in A and in B, for flame\n"
         "                     graphs of differences; --by makes the owner the outermost\n"
         "                     frame\n"
         "  --pprof            a compressed profile for pprof with A as its base; not to a\n"
         "                     terminal\n"
         "  --python           Python frames only, with --folded and --pprof\n"
         "  -o PAGE            write the page to PAGE (default: standard output)\n"
         "\n"
         "Exit code: 0 fine, 1 over a limit, 2 wrong usage, 3 unreadable or damaged input.");
    return complain_finish(EXIT_FINE);
}

static void close_side(struct diff *diff, int side) {
    json_stacks_end(diff->stacks[side]);
    symbols_end(diff->symbols[side]);
    diff->stacks[side] = NULL;
    diff->symbols[side] = NULL;
    if (diff->loaded[side]) subject_close(&diff->subject[side]);
    diff->loaded[side] = false;
}

static void take_total(struct diff *diff, int side, const struct image *image) {
    struct side_total *total = &diff->total[side];
    *total = (struct side_total){.pid = image->header.pid,
                                 .live_bytes = image->host.live_bytes + image->mapped.live_bytes,
                                 .live_blocks = image->host.live_blocks + image->mapped.live_blocks,
                                 .allocated_bytes = image->host.alloc_bytes + image->mapped.alloc_bytes,
                                 .peak_bytes = image_peak(image),
                                 .cuda = image->cuda.used,
                                 .cuda_bytes = image->cuda.device.live_bytes,
                                 .cuda_blocks = image->cuda.device.live_blocks,
                                 .cuda_peak = cuda_peak(image),
                                 .sample_bytes = image->header.sample_bytes};
    memcpy(total->name, image->header.name, sizeof total->name);
    for (size_t i = 0; i < image->cuda.device_count && i < SNAP_CUDA_DEVICES; i++)
        if (cuda_line_of(image, i, &total->devices[total->device_count])) total->device_count++;
    total->bytes = diff->peak ? total->peak_bytes : total->live_bytes;
    total->blocks = total->live_blocks;
    if (!diff->peak) return;
    total->blocks = 0;
    for (size_t i = 0; i < image->total_count; i++) total->blocks += image->totals[i].peak_blocks;
    at_peak_words(image, total->peak_words, sizeof total->peak_words);
}

typedef int add_blocks(struct diff_blocks *self, const struct image *image, const uint32_t *row_of, int side);

/* Adds the rows of one side, and for a page also its blocks. The rows come from the image `of`, the blocks from
 * `image`. */
static int add_rows(struct diff *diff, struct groups *groups, const struct image *of, const struct image *image,
                    int side, add_blocks *add) {
    if (diff->form != diff_html) return groups_add(groups, of, side);
    groups->row_of = calloc(of->total_count + 1, sizeof *groups->row_of);
    int result = groups->row_of ? groups_add(groups, of, side) : -1;
    if (result == 0) result = add(&diff->blocks, image, groups->row_of, side);
    free(groups->row_of);
    groups->row_of = NULL;
    return result;
}

/* Adds the CUDA memory of one side to the rows and to the groups that the limits need. By thread, there are no rows,
 * because threads have no figures of CUDA memory. With --peak, the limits get nothing, because the peak of CUDA memory
 * is known only as a total. */
static int add_cuda(struct diff *diff, int side, const struct image *image) {
    if (!image->cuda.used) return 0;
    struct image view = cuda_view(image);
    int result = view.totals ? 0 : -1;
    if (result == 0 && diff->view != BY_THREAD)
        result = add_rows(diff, &diff->cuda, &view, image, side, diff_blocks_add_on_devices);
    if (result == 0 && !diff->peak) result = diff_limits_add(&diff->limited, &view, side, true);
    cuda_view_end(&view);
    return result;
}

static int add_figures(struct diff *diff, int side, struct image *image) {
    if (!diff->suppressed_in) return 0;
    int result = tally_add(&diff->figures[side], image, diff->subject[side].pid, TALLY_ALL);
    figures_end_run(&diff->figures[side]);
    return result;
}

static int add_side(struct diff *diff, int side, struct image *image) {
    if (diff->peak) at_peak_choose(image);
    take_total(diff, side, image);
    int result = add_figures(diff, side, image);
    if (result == 0) result = add_cuda(diff, side, image);
    if (result == 0) result = estimate_stacks(image);
    if (result == 0) result = add_rows(diff, &diff->groups, image, image, side, diff_blocks_add);
    return result == 0 ? diff_limits_add(&diff->limited, image, side, false) : result;
}

/* Loads one side of the comparison. The first file is closed before the second is opened, to save memory, and is read
 * again if one of its call stacks is shown. *stacks: whether the image has call stacks. */
static int load_side(struct diff *diff, int side, bool *stacks) {
    struct image *image = &diff->subject[side].image;
    int code = subject_open(&diff->subject[side], diff->argument[side], false);
    if (code != EXIT_FINE) return code;
    diff->loaded[side] = true;
    diff->header[side] = image->header;
    if (diff->suppressed_in && image->header.sample_bytes)
        return complain_usage("diff", "--suppressions: the call sites of %s are estimates, from samples",
                              TEXT_SAFE(diff->argument[side]));
    *stacks = image_has_stacks(image);
    int result = nvml_image_ask(image, diff->subject[side].pid);
    if (result == 0) result = add_side(diff, side, image);
    if (side == 0 || diff->groups.view != BY_SITE)
        close_side(diff, side);
    else
        image_drop_totals(image);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

static void begin_figures(struct diff *diff) {
    for (int side = 0; side < 2; side++) {
        figures_end(&diff->figures[side]);
        figures_begin(&diff->figures[side]);
        diff->figures[side].peak = diff->peak;
    }
}

static int sides_load(struct diff *diff) {
    bool stacks[2] = {false, false};
    begin_figures(diff);
    groups_begin(&diff->groups, diff->view, 2);
    groups_begin(&diff->cuda, diff->view, 2);
    diff->groups.measure = diff->peak ? MEASURE_PEAK : MEASURE_LIVE;
    diff->groups.without_runs = diff->cuda.without_runs = diff->apart;
    diff_limits_begin(&diff->limited, &diff->thresholds.limits, diff->groups.measure, diff->apart);
    for (int side = 0; side < 2; side++) {
        int code = load_side(diff, side, &stacks[side]);
        if (code != EXIT_FINE) return code;
    }
    bool same = diff->apart || image_same_process(&diff->header[0], &diff->header[1]);
    bool fits = diff->view_given || diff->view == BY_MODULE || (stacks[0] && stacks[1]);
    if (same && fits) return EXIT_FINE;
    close_side(diff, 1);
    groups_end(&diff->groups);
    groups_end(&diff->cuda);
    diff_blocks_end(&diff->blocks);
    diff_limits_end(&diff->limited);
    diff->apart = diff->apart || !same;
    if (!fits) diff->view = BY_MODULE;
    return sides_load(diff);
}

/* Sets diff->over_name to the name of the owner that passed a limit, or to the innermost function of the call site that
 * did. */
static void name_over(struct diff *diff) {
    const struct over *over = &diff->over;
    struct innermost_line line;
    if (over->finding && over->finding->figure->kind != FIGURE_TOTAL)
        figure_words(over->finding->figure, diff->over_name, sizeof diff->over_name);
    if (!over->row) return;
    const struct image *image = over->groups->view == BY_SITE ? diff_stacks(diff, over->row) : NULL;
    groups_words(over->groups, over->row, diff->over_name, sizeof diff->over_name);
    if (image && innermost_caller(&line, image, diff->symbols[over->row->stack_side], over->row->stack_node))
        snprintf(diff->over_name, sizeof diff->over_name, "%s", symbol_text(line.frame, line.symbol, 200).s);
    size_t used = strlen(diff->over_name);
    if (over->cuda) snprintf(diff->over_name + used, sizeof diff->over_name - used, " on CUDA devices");
}

static const struct limit *passed_on_host(const struct diff *diff) {
    struct growth growth = {diff_grown_bytes(diff), diff_grown_blocks(diff), diff->total[0].bytes};
    return limits_passed(&diff->thresholds.limits, LIMIT_TOTAL, growth);
}

static struct growth growth_on_cuda(const struct diff *diff) {
    const struct side_total *a = &diff->total[0], *b = &diff->total[1];
    if (diff->peak) return (struct growth){(int64_t)(b->cuda_peak - a->cuda_peak), 0, a->cuda_peak};
    return (struct growth){diff_grown_cuda_bytes(diff), diff_grown_cuda_blocks(diff), a->cuda_bytes};
}

static const struct limit *passed_on_cuda(const struct diff *diff) {
    struct growth growth = growth_on_cuda(diff);
    return diff_has_cuda(diff) ? limits_passed(&diff->thresholds.limits, LIMIT_TOTAL, growth) : NULL;
}

/* Finds the first finding that passed a limit. Suppressed growth does not count. */
static struct over passed_in_gate(const struct diff *diff) {
    for (size_t i = 0; i < diff->gate.count; i++)
        if (diff->gate.list[i].verdict == VERDICT_FAILED)
            return (struct over){.limit = diff->gate.list[i].limit,
                                 .finding = &diff->gate.list[i],
                                 .cuda = diff->gate.list[i].figure->cuda};
    return (struct over){.limit = NULL};
}

/* Finds the first limit that was passed. A limit on the total holds for the host and for CUDA devices separately. */
static void find_over(struct diff *diff) {
    bool by_names = diff->suppressed_in;
    diff->over = by_names ? passed_in_gate(diff) : (struct over){.limit = passed_on_host(diff)};
    if (!diff->over.limit && !by_names) diff->over = (struct over){.limit = passed_on_cuda(diff), .cuda = true};
    if (!diff->over.limit && !by_names) diff_limits_passed(&diff->limited, &diff->over);
    name_over(diff);
}

static struct growth growth_over(const struct diff *diff) {
    const struct over *over = &diff->over;
    if (over->finding) return over->finding->growth;
    if (over->row)
        return (struct growth){.bytes = groups_row_growth(over->row), .blocks = groups_row_growth_blocks(over->row)};
    if (over->cuda) return growth_on_cuda(diff);
    return (struct growth){.bytes = diff_grown_bytes(diff), .blocks = diff_grown_blocks(diff)};
}

static void complain_over(const struct diff *diff) {
    const struct over *over = &diff->over;
    struct growth growth = growth_over(diff);
    struct text_line name = text_fit(diff->over_name, 200);
    const char *on_cuda = diff->peak ? "the peak of CUDA memory" : "live CUDA memory";
    const char *total = over->cuda ? on_cuda : diff->peak ? "the peak" : "live memory";
    const char *what = *diff->over_name ? name.s : total;
    char without[64] = "";
    if (over->finding && over->finding->suppressed_bytes)
        snprintf(without, sizeof without, ", without %s that is suppressed",
                 text_size((uint64_t)over->finding->suppressed_bytes).s);
    if (growth.bytes > 0 && growth.blocks >= 0)
        complain("%s grew by %s and %s%s: over the limit of %s", what, text_size((uint64_t)growth.bytes).s,
                 text_block_count((uint64_t)growth.blocks).s, without, over->limit->text);
    else
        complain("%s changed by %s and %s%s: over the limit of %s", what, text_size_change(growth.bytes).s,
                 text_block_change(growth.blocks).s, without, over->limit->text);
}

static int cmd_diff_judge(struct diff *diff) {
    diff->gate = (struct gate){.before = &diff->figures[0],
                               .now = &diff->figures[1],
                               .thresholds = &diff->thresholds,
                               .suppressions = &diff->suppressions};
    return diff->suppressed_in ? gate_judge(&diff->gate) : 0;
}

static int cmd_diff_compare(struct diff *diff) {
    int code = sides_load(diff);
    if (code != EXIT_FINE) return code;
    if (diff->root == BY_RUN && diff->apart)
        return complain_usage("diff", "--by=run: the files are of two processes, whose runs are unrelated");
    if (groups_sort_by_growth(&diff->groups, diff->top) < 0 || groups_sort_by_growth(&diff->cuda, diff->top) < 0 ||
        cmd_diff_judge(diff) < 0) {
        complain("not enough memory");
        return EXIT_UNREADABLE;
    }
    find_over(diff);
    if (diff->form)
        code = diff->form(diff);
    else if (diff->json)
        diff_json(diff);
    else
        diff_text(diff);
    code = complain_finish(code != EXIT_FINE ? code : diff->over.limit ? EXIT_OVER : EXIT_FINE);
    if (diff->over.limit) complain_over(diff);
    return code;
}

struct form {
    const char *option;
    int (*write)(struct diff *diff); /* NULL: JSON */
};
static const struct form forms[] = {
    {"--json", NULL}, {"--html", diff_html}, {"--folded", diff_folded}, {"--pprof", diff_pprof}};

static int take_form(struct diff *diff, const struct form *form) {
    if (diff->form_name && diff->form_name != form->option)
        return complain_usage("diff", "%s and %s exclude each other", diff->form_name, form->option);
    diff->form_name = form->option;
    diff->form = form->write;
    diff->json = !form->write;
    return EXIT_FINE;
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_diff_take_option(struct diff *diff, int option, char **argv) {
    if (frame_options_take(option)) return 0;
    switch (option) {
    case OPTION_BY:
        diff->view_given = true;
        if (groups_view_parse(optarg, &diff->view)) return 0;
        return complain_usage("diff", "--by=%s: not model, node, run, site, module or thread", TEXT_SAFE(optarg));
    case OPTION_TOP:
        if (top_parse(optarg, &diff->top)) return 0;
        return complain_usage("diff", "--top=%s: not a number", TEXT_SAFE(optarg));
    case OPTION_FAIL_OVER:
        if (limits_parse(&diff->thresholds.limits, optarg)) return 0;
        return complain_usage("diff", "--fail-over=%s: not SIZE, PCT%% or COUNTx, separated by commas, %d at most",
                              TEXT_SAFE(optarg), LIMITS_MAX);
    case OPTION_SUPPRESSIONS:
        diff->suppressed_in = optarg;
        return 0;
    case OPTION_PEAK:
        diff->peak = true;
        return 0;
    case OPTION_PYTHON:
        diff->python = true;
        return 0;
    case 'o':
        diff->page = optarg;
        return 0;
    default:
        if (option < OPTION_FORM) return complain_option("diff", option, argv);
        return take_form(diff, &forms[option - OPTION_FORM]);
    }
}

static size_t default_top(const struct diff *diff) {
    if (!diff->form_name) return TOP_DEFAULT;
    return diff->view_given ? SIZE_MAX : ROWS_JSON;
}

static int check_page(struct diff *diff) {
    if (diff->view_given && diff->view != BY_SITE) return complain_usage("diff", "--html is by site");
    diff->view_given = true; /* by site even if a file has no call stacks */
    return html_page_check("diff", diff->page);
}

/* Rows of a profile are always by site. With --by=model, node or run, the owner of that kind becomes the outermost
 * frame. */
static int check_profile(struct diff *diff) {
    if (diff->view_given && diff->view != BY_MODEL && diff->view != BY_NODE && diff->view != BY_RUN)
        return complain_usage("diff", "--by=%s: %s is by model, node or run", groups_view_name(diff->view),
                              diff->form_name);
    if (diff->form == diff_pprof && isatty(STDOUT_FILENO))
        return complain_usage("diff", "--pprof writes a compressed file: send it to one with > FILE");
    diff->root = diff->view;
    diff->view = BY_SITE;
    diff->view_given = true;
    return EXIT_FINE;
}

static int check_form(struct diff *diff) {
    diff->root = BY_SITE;
    if (diff->page && diff->form != diff_html) return complain_usage("diff", "-o goes with --html");
    if (diff->python && diff->form != diff_folded && diff->form != diff_pprof)
        return complain_usage("diff", "--python goes with --folded or --pprof");
    if (frame_options_check("diff", !diff->form_name) != EXIT_FINE) return EXIT_USAGE;
    if (!diff->form) return EXIT_FINE;
    return diff->form == diff_html ? check_page(diff) : check_profile(diff);
}

int cmd_diff(int argc, char **argv) {
    static const struct option options[] = {{"by", required_argument, NULL, OPTION_BY},
                                            {"top", required_argument, NULL, OPTION_TOP},
                                            {"peak", no_argument, NULL, OPTION_PEAK},
                                            {"fail-over", required_argument, NULL, OPTION_FAIL_OVER},
                                            {"suppressions", required_argument, NULL, OPTION_SUPPRESSIONS},
                                            {"python", no_argument, NULL, OPTION_PYTHON},
                                            FRAME_OPTIONS,
                                            {"json", no_argument, NULL, OPTION_FORM},
                                            {"html", no_argument, NULL, OPTION_FORM + 1},
                                            {"folded", no_argument, NULL, OPTION_FORM + 2},
                                            {"pprof", no_argument, NULL, OPTION_FORM + 3},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct diff diff = {.view = BY_SITE};
    const size_t not_given = SIZE_MAX - 1;
    diff.top = not_given;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_diff_help();
        int code = cmd_diff_take_option(&diff, option, argv);
        if (code) return code;
    }
    if (argc - optind != 2) return complain_usage("diff", "two files or PIDs are needed");
    int code = check_form(&diff);
    if (code != EXIT_FINE) return code;
    if (diff.peak && diff.view == BY_THREAD) return complain_usage("diff", "the peak is not known by thread");
    if (diff.suppressed_in && !diff.thresholds.limits.count)
        return complain_usage("diff", "--suppressions goes with --fail-over");
    diff.argument[0] = argv[optind];
    diff.argument[1] = argv[optind + 1];
    diff.form_top = diff.top == not_given ? SIZE_MAX : diff.top;
    if (diff.top == not_given) diff.top = default_top(&diff);
    progress_begin();
    code = known_load(&diff.suppressions, diff.suppressed_in);
    if (code == EXIT_FINE) code = cmd_diff_compare(&diff);
    for (int side = 0; side < 2; side++) {
        close_side(&diff, side);
        figures_end(&diff.figures[side]);
    }
    gate_end(&diff.gate);
    suppressions_end(&diff.suppressions);
    groups_end(&diff.groups);
    groups_end(&diff.cuda);
    diff_blocks_end(&diff.blocks);
    diff_limits_end(&diff.limited);
    return code;
}
