/* cmd_report.c — memstow report: shows the memory that a process holds, or that it held at its end. */
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/cmd/commands.h"
#include "tools/cmd/frame_options.h"
#include "tools/cmd/leaks_tab.h"
#include "tools/export/export.h"
#include "tools/html/html_page.h"
#include "tools/html/html_snapshots.h"
#include "tools/symbols/innermost.h"
#include "tools/report/report.h"
#include "tools/views/stacks.h"
#include "tools/base/text.h"
#include "tools/base/size.h"
#include "tools/base/top.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    OPTION_BY = 256,
    OPTION_TOP,
    OPTION_MATCH,
    OPTION_PEAK,
    OPTION_CHURN,
    OPTION_PYTHON,
    OPTION_MIN,
    OPTION_FORM,
    TOP_SITES_JSON = 1000
};

struct choice {
    enum view view;
    enum measure measure;
    bool view_given, top_given, min_given, python;
    size_t top;
    uint64_t min;
    const char *match;
    const char *form; /* the option that chose the output format; NULL: text */
    int (*write)(const struct report *report);
    const char *page; /* file of --html; NULL: standard output */
    struct massif massif;
    struct html_snapshots snapshots;
    struct leaks_tab leaks;
    struct subject_before before; /* the FILE before the present one, if the user gave several */
};

static int cmd_report_help(void) {
    puts("usage: memstow report FILE|PID [--by=VIEW] [--top=N] [--match=TEXT]\n"
         "                      [--peak | --churn] [--all-frames] [--absolute] [--json]\n"
         "       memstow report FILE|PID --folded|--pprof|--speedscope\n"
         "                      [--by=model|node|run] [--python] [--min=SIZE | --top=N]\n"
         "                      [--match=TEXT] [--peak | --churn]\n"
         "       memstow report FILE|PID --csv [--top=N] [--match=TEXT] [--peak | --churn]\n"
         "       memstow report FILE...|PID --massif [--python] [--min=SIZE]\n"
         "                      [--match=TEXT]\n"
         "       memstow report FILE...|PID --perfetto [--top=N]\n"
         "       memstow report FILE...|PID --html [-o PAGE] [--top=N] [--match=TEXT]\n"
         "                      [--peak | --churn]\n"
         "\n"
         "Shows what a process holds: live bytes and blocks, the peak, the call stacks\n"
         "that allocated them, and where the resident memory is.\n"
         "\n"
         "  --by=VIEW     model, node, run, site, module or thread (default: site if\n"
         "                there are call stacks and model if there are owners, else\n"
         "                module)\n"
         "  --top=N       show N rows of each list (default 10; other forms than text\n"
         "                show all rows, but JSON shows 1,000 sites)\n"
         "  --match=TEXT  only stacks with TEXT in a function, a file or a module\n"
         "  --peak        memory at the peak instead of live memory\n"
         "  --churn       all that was ever allocated instead of live memory\n"
         "  --all-frames  whole call stacks, with the allocator's own frames\n"
         "  --absolute    whole paths of source files, for an editor to jump to\n"
         "  --json        one JSON document, sizes in bytes\n"
         "  --folded      one line a stack, for flame graphs\n"
         "  --pprof       a compressed profile for pprof; not to a terminal\n"
         "  --speedscope  a file for speedscope with a profile for each measure\n"
         "  --csv         a table for spreadsheets, one line a site, the largest first\n"
         "  --massif      snapshots of live memory and of the peak, for ms_print and\n"
         "                massif-visualizer\n"
         "  --perfetto    a trace for Perfetto: memory, owners and devices as counters;\n"
         "                runs, nodes, models, triggers and decisions over time\n"
         "  --html        one page for a browser: flame graph, tables, owners, blocks;\n"
         "                it needs no other file and no network\n"
         "  -o PAGE       write the page to PAGE (default: standard output)\n"
         "\n"
         "With --massif, --perfetto and --html, several FILEs are snapshots of one\n"
         "process, the oldest first. The page is that of the last one; for a range of time\n"
         "it shows what the others know.\n"
         "\n"
         "With --folded, --pprof, --speedscope and --massif:\n"
         "  --by=VIEW     model, node or run: the owner becomes the outermost frame; not\n"
         "                with --massif\n"
         "  --python      Python frames only\n"
         "  --min=SIZE    merge stacks that hold less than SIZE (default: 1/2000 of all;\n"
         "                --massif 1/100; --pprof 0, which merges nothing)\n"
         "\n"
         "A number is a PID; for a file of that name write ./NUMBER.\n"
         "Exit code: 0 fine, 2 wrong usage, 3 unreadable or damaged input.");
    return complain_finish(EXIT_FINE);
}

/* Returns one byte for each frame: 1 if its function, file or module has the text, otherwise 0. Frames that the report
 * leaves out of its stacks get 0, too. Returns NULL if there is no memory. */
static uint8_t *nodes_match(const struct report *report, const char *text) {
    uint8_t *marks = symbols_match(report->symbols, text, false);
    for (size_t i = 0; marks && i < report->image->frame_count; i++)
        if (innermost_is_import(report->image, (uint32_t)i)) marks[i] = 0;
    return marks;
}

static int write_report(struct report *report, const struct choice *choice) {
    uint8_t *marks = choice->match ? nodes_match(report, choice->match) : NULL;
    uint8_t *matched = marks ? stack_marked(report->image, marks) : NULL;
    int result = -1;
    report->matched = matched;
    if (matched || !choice->match) result = choice->write(report);
    if (result == 0 && choice->form) report_tell_match(report);
    free(marks);
    free(matched);
    return result;
}

/* Reads the image for the view of leaks. This comes before report_begin, which changes the image. After the last image,
 * the view's document is ready. Returns 0, or -1: no memory. */
static int read_leaks(struct choice *choice, const struct subject *subject, struct report *report) {
    bool several = choice->leaks.begun || report->more;
    if (leaks_tab_read(&choice->leaks, &subject->image, several) < 0) return -1;
    return report->more ? 0 : leaks_tab_write(&choice->leaks, subject, &report->tab);
}

static int report_show(const char *argument, struct choice *choice, bool more) {
    static struct subject subject;
    progress_begin();
    int code = subject_open(&subject, argument, true);
    if (code != EXIT_FINE) return code;
    if ((code = subject_check_order("report", &subject, argument, &choice->before)) != EXIT_FINE) return code;
    struct report report = {.argument = argument,
                            .view = choice->view,
                            .view_given = choice->view_given,
                            .measure = choice->measure,
                            .match = choice->match,
                            .page = choice->page,
                            .massif = &choice->massif,
                            .snapshots = &choice->snapshots,
                            .more = more,
                            .top = choice->top_given ? choice->top
                                   : choice->form    ? SIZE_MAX
                                                     : TOP_DEFAULT,
                            .python = choice->python,
                            .min_given = choice->min_given,
                            .min = choice->min,
                            .top_sites = choice->top_given ? choice->top : TOP_SITES_JSON};
    int result = choice->write == report_html ? read_leaks(choice, &subject, &report) : 0;
    if (report_begin(&report, &subject) < 0) result = -1;
    if (choice->measure == MEASURE_PEAK && !subject.image.has_picture)
        complain("%s: nothing is live, and no picture of its peak was taken: --peak shows nothing",
                 TEXT_SAFE(argument));
    if (result == 0) result = write_report(&report, choice);
    if (result < 0) complain("not enough memory");
    report_end(&report);
    subject_close(&subject);
    return complain_finish(result < 0 ? EXIT_UNREADABLE : result);
}

struct form {
    const char *option;
    int (*write)(const struct report *report);
};
static const struct form forms[] = {
    {"--json", report_json},     {"--folded", report_folded},         {"--pprof", report_pprof},
    {"--html", report_html},     {"--speedscope", report_speedscope}, {"--csv", report_csv},
    {"--massif", report_massif}, {"--perfetto", report_perfetto}};

static bool parse_min(const char *text, uint64_t *bytes) {
    double size;
    if (!size_parse(text, &size) || size > (double)INT64_MAX) return false;
    *bytes = (uint64_t)size;
    return true;
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_report_take_option(struct choice *choice, int option, char **argv) {
    if (frame_options_take(option)) return 0;
    switch (option) {
    case OPTION_BY:
        if (!groups_view_parse(optarg, &choice->view))
            return complain_usage("report", "--by=%s: not model, node, run, site, module or thread", TEXT_SAFE(optarg));
        choice->view_given = true;
        return 0;
    case OPTION_TOP:
        if (!top_parse(optarg, &choice->top))
            return complain_usage("report", "--top=%s: not a number", TEXT_SAFE(optarg));
        choice->top_given = true;
        return 0;
    case OPTION_MIN:
        choice->min_given = true;
        if (parse_min(optarg, &choice->min)) return 0;
        return complain_usage("report", "--min=%s: not a size like 64K or 1M", TEXT_SAFE(optarg));
    case OPTION_PYTHON:
        choice->python = true;
        return 0;
    case OPTION_MATCH:
        choice->match = optarg;
        return *optarg ? 0 : complain_usage("report", "--match= matches everything: give it a text");
    case OPTION_PEAK:
    case OPTION_CHURN:
        if (choice->measure != MEASURE_LIVE) return complain_usage("report", "--peak and --churn exclude each other");
        choice->measure = option == OPTION_PEAK ? MEASURE_PEAK : MEASURE_ALLOCATED;
        return 0;
    case 'o':
        choice->page = optarg;
        return 0;
    default:
        if (option < OPTION_FORM) return complain_option("report", option, argv);
        const struct form *form = &forms[option - OPTION_FORM];
        if (choice->form && choice->form != form->option)
            return complain_usage("report", "%s and %s exclude each other", choice->form, form->option);
        choice->form = form->option;
        choice->write = form->write;
        return 0;
    }
}

static bool is_profile(int (*write)(const struct report *report)) {
    return write == report_folded || write == report_pprof || write == report_speedscope;
}

/* Whether the form shows memory over time, so that several files of one process can be written as one. */
static bool is_curve(int (*write)(const struct report *report)) {
    return write == report_massif || write == report_perfetto || write == report_html;
}

/* Refuses options that do not go with --perfetto, because a trace for Perfetto has owners, but no call stacks. */
static int check_perfetto(const struct choice *choice) {
    if (choice->view_given) return complain_usage("report", "--by does not go with --perfetto, which has all owners");
    if (choice->match) return complain_usage("report", "--match does not go with --perfetto, which has no call stacks");
    if (choice->measure != MEASURE_LIVE)
        return complain_usage("report", "--perfetto has what is live over time: no other measure");
    if (isatty(STDOUT_FILENO))
        return complain_usage("report", "--perfetto writes a binary file: send it to one with > FILE");
    return EXIT_FINE;
}

static int check_page(const struct choice *choice, int files) {
    if (files <= HTML_SNAPSHOTS_MOST) return html_page_check("report", choice->page);
    return complain_usage("report", "--html takes %d FILEs at most", HTML_SNAPSHOTS_MOST);
}

/* Refuses options that would have no effect. */
static int check_usage(const struct choice *choice) {
    bool profile = is_profile(choice->write), massif = choice->write == report_massif;
    const char *with_stacks = "--folded, --pprof, --speedscope or --massif";
    if (choice->python && !profile && !massif) return complain_usage("report", "--python goes with %s", with_stacks);
    if (choice->min_given && !profile && !massif) return complain_usage("report", "--min goes with %s", with_stacks);
    if (massif && choice->top_given) return complain_usage("report", "--top does not go with --massif: --min does");
    if (massif && choice->measure != MEASURE_LIVE)
        return complain_usage("report", "--massif has what is live, and the peak: no other measure");
    if (choice->view_given && (massif || choice->write == report_csv) && choice->view != BY_SITE)
        return complain_usage("report", "--by=%s: %s is by site", groups_view_name(choice->view), choice->form);
    if (choice->min_given && choice->top_given) return complain_usage("report", "--min and --top exclude each other");
    if (profile && choice->view_given && choice->view != BY_MODEL && choice->view != BY_NODE && choice->view != BY_RUN)
        return complain_usage("report", "--by=%s: %s is by model, node or run", groups_view_name(choice->view),
                              choice->form);
    if (choice->write == report_pprof && isatty(STDOUT_FILENO))
        return complain_usage("report", "--pprof writes a compressed file: send it to one with > FILE");
    if (frame_options_check("report", !choice->form) != EXIT_FINE) return EXIT_USAGE;
    if (choice->page && choice->write != report_html) return complain_usage("report", "-o goes with --html");
    return choice->write == report_perfetto ? check_perfetto(choice) : EXIT_FINE;
}

int cmd_report(int argc, char **argv) {
    static const struct option options[] = {
        {"by", required_argument, NULL, OPTION_BY},
        {"top", required_argument, NULL, OPTION_TOP},
        {"match", required_argument, NULL, OPTION_MATCH},
        {"peak", no_argument, NULL, OPTION_PEAK},
        {"churn", no_argument, NULL, OPTION_CHURN},
        {"python", no_argument, NULL, OPTION_PYTHON},
        {"min", required_argument, NULL, OPTION_MIN},
        FRAME_OPTIONS,
        {"json", no_argument, NULL, OPTION_FORM},
        {"folded", no_argument, NULL, OPTION_FORM + 1},
        {"pprof", no_argument, NULL, OPTION_FORM + 2},
        {"html", no_argument, NULL, OPTION_FORM + 3},
        {"speedscope", no_argument, NULL, OPTION_FORM + 4},
        {"csv", no_argument, NULL, OPTION_FORM + 5},
        {"massif", no_argument, NULL, OPTION_FORM + 6},
        {"perfetto", no_argument, NULL, OPTION_FORM + 7},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static struct choice choice = {.write = report_text};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_report_help();
        int code = cmd_report_take_option(&choice, option, argv);
        if (code) return code;
    }
    int code = EXIT_FINE;
    if (argc - optind != 1 && !(is_curve(choice.write) && argc > optind))
        return complain_usage("report", "one FILE or PID is needed");
    if ((code = check_usage(&choice)) != EXIT_FINE) return code;
    if (choice.write == report_html && (code = check_page(&choice, argc - optind)) != EXIT_FINE) return code;
    for (; code == EXIT_FINE && optind < argc; optind++) code = report_show(argv[optind], &choice, optind + 1 < argc);
    html_snapshots_end(&choice.snapshots);
    leaks_tab_end(&choice.leaks);
    return code;
}
