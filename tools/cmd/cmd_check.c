/* cmd_check.c — memstow check: runs a program, compares its memory with a baseline, and gives a verdict. */
#include "tools/base/size.h"
#include "tools/check/baseline.h"
#include "tools/check/check.h"
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/base/program.h"
#include "tools/base/text.h"
#include "tools/base/top.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_BASELINE = 256,
    OPTION_UPDATE,
    OPTION_COMFY,
    OPTION_RUNS,
    OPTION_WARM_UP,
    OPTION_FAIL_OVER,
    OPTION_PASS_UNDER,
    OPTION_SUPPRESSIONS,
    OPTION_PEAK,
    OPTION_STACKS,
    OPTION_FOLLOW,
    OPTION_KEEP,
    OPTION_TOP,
    OPTION_HTML,
    OPTION_FORM
};
enum { NOT_GIVEN = UINT32_MAX, RUNS_MOST = 10000 };

static int cmd_check_help(void) {
    puts("usage: memstow check --baseline=FILE [OPTION...] [--] CMD [ARG...]\n"
         "       memstow check --comfy=WORKFLOW.json [OPTION...] [--] python3 main.py ...\n"
         "\n"
         "Runs CMD under memstow, and fails if CMD holds more at its end than the baseline\n"
         "allows. Or starts ComfyUI, runs a workflow several times, and fails if it grows.\n"
         "\n"
         "  --baseline=FILE      the amounts that CMD may hold\n"
         "  --update-baseline    write the baseline, and compare nothing\n"
         "  --comfy=WORKFLOW     run a workflow, as ComfyUI's 'Export (API)' saves it.\n"
         "                       Without a baseline the last runs are compared with the\n"
         "                       first\n"
         "  --runs=N             run CMD up to N times (default 5), until a run is fine;\n"
         "                       run a workflow N times (default 10)\n"
         "  --warm-up=N          first make N runs that do not count (default 1; a\n"
         "                       workflow 3)\n"
         "  --fail-over=LIMIT,...\n"
         "                       exit 1 if all runs grew by more than a LIMIT: SIZE\n"
         "                       (10MiB), PCT% (5%) or COUNTx blocks (100x). owner:LIMIT\n"
         "                       is for each owner, site:LIMIT for each call site\n"
         "                       (default: 5MiB,10%,owner:5MiB)\n"
         "  --pass-under=SIZE    growth below SIZE is fine, even if it exceeds a limit;\n"
         "                       growth from SIZE up to the limits is a warning\n"
         "                       (default: 1MiB; with --fail-over: none)\n"
         "  --suppressions=FILE  known growth, see memstow-check(1)\n"
         "  --peak               compare the peaks instead of live memory at the end\n"
         "  --stacks=full|none   call stacks of all allocations (default), or of none\n"
         "  --follow=all|none|NAME,...\n"
         "                       which children count (default: all)\n"
         "  --keep=DIR           keep the ledgers of the runs in DIR\n"
         "  --top=N              show N owners and N call sites that are fine (default 10)\n"
         "  --text, --json, --junit, --github, --markdown[=FILE]\n"
         "                       write the verdict in this form, to a file or to standard\n"
         "                       output; several may be given. The text also goes to\n"
         "                       standard output, unless another form goes there\n"
         "  --html=FILE          a page for a browser: the verdict, and the report of the\n"
         "                       last run\n"
         "\n"
         "Exit code: 0 fine, or a warning; 1 over a limit; 2 wrong usage, or no such\n"
         "workflow; 3 another file cannot be read or written; 4 CMD failed by itself;\n"
         "128 plus the number of a signal that ended the check.");
    return complain_finish(EXIT_FINE);
}

/* --- the options of memstow check --- */

static bool parse_count(const char *text, unsigned long least, uint32_t *count) {
    unsigned long value;
    if (!size_parse_count(text, least, RUNS_MOST, &value)) return false;
    *count = (uint32_t)value;
    return true;
}

static bool parse_pass_under(const char *text, uint64_t *bytes) {
    double size;
    if (!size_parse(text, &size) || size < 1 || size > (double)INT64_MAX) return false;
    *bytes = (uint64_t)size;
    return true;
}

static bool valid_follow(const char *value) {
    size_t length = strlen(value);
    return length && value[0] != ',' && value[length - 1] != ',' && !strstr(value, ",,");
}

static int cmd_check_take_number(struct check *check, int option) {
    const char *name = option == OPTION_RUNS ? "runs" : option == OPTION_WARM_UP ? "warm-up" : "top";
    bool right = option == OPTION_RUNS      ? parse_count(optarg, 1, &check->runs)
                 : option == OPTION_WARM_UP ? parse_count(optarg, 0, &check->warm_up)
                                            : top_parse(optarg, &check->top);
    if (right) return 0;
    if (option == OPTION_TOP) return complain_usage("check", "--top=%s: not a number", TEXT_SAFE(optarg));
    return complain_usage("check", "--%s=%s: not a number from %d to %d", name, TEXT_SAFE(optarg),
                          option == OPTION_RUNS, RUNS_MOST);
}

static int take_limit(struct check *check, int option) {
    if (option == OPTION_PASS_UNDER && parse_pass_under(optarg, &check->thresholds.pass_under)) return 0;
    if (option == OPTION_PASS_UNDER)
        return complain_usage("check", "--pass-under=%s: not a size like 64K or 1MiB", TEXT_SAFE(optarg));
    if (limits_parse(&check->thresholds.limits, optarg)) return 0;
    return complain_usage("check", "--fail-over=%s: not SIZE, PCT%% or COUNTx, separated by commas, %d at most",
                          TEXT_SAFE(optarg), LIMITS_MAX);
}

/* Takes an option that is passed on to `memstow run`. */
static int take_passed_on(struct check *check, int option) {
    if (option == OPTION_STACKS && (strcmp(optarg, "full") == 0 || strcmp(optarg, "none") == 0))
        check->stacks = optarg;
    else if (option == OPTION_STACKS)
        return complain_usage("check", "--stacks=%s: not full or none: samples give no baseline", TEXT_SAFE(optarg));
    else if (!valid_follow(optarg))
        return complain_usage("check", "--follow=%s: not all, none or names, separated by commas", TEXT_SAFE(optarg));
    else
        check->follow = optarg;
    return 0;
}

/* Refuses "--html --json" and "--html --": the file name is missing, and the next option would be taken as the file. */
static int check_file_given(int option, char **argv) {
    bool names_file = option == OPTION_BASELINE || option == OPTION_COMFY || option == OPTION_SUPPRESSIONS ||
                      option == OPTION_KEEP || option == OPTION_HTML;
    if (!names_file || optarg != argv[optind - 1] || optarg[0] != '-' || !optarg[1]) return EXIT_FINE;
    return complain_usage("check", "%s needs =%s", TEXT_SAFE(argv[optind - 2]), option == OPTION_KEEP ? "DIR" : "FILE");
}

static int cmd_check_take_option(struct check *check, int option, char **argv) {
    int code = check_file_given(option, argv);
    if (code != EXIT_FINE) return code;
    switch (option) {
    case OPTION_BASELINE:
        check->baseline = optarg;
        return 0;
    case OPTION_UPDATE:
        check->update = true;
        return 0;
    case OPTION_COMFY:
        check->comfy = optarg;
        return 0;
    case OPTION_RUNS:
    case OPTION_WARM_UP:
    case OPTION_TOP:
        return cmd_check_take_number(check, option);
    case OPTION_FAIL_OVER:
    case OPTION_PASS_UNDER:
        return take_limit(check, option);
    case OPTION_SUPPRESSIONS:
        check->suppressed_in = optarg;
        return 0;
    case OPTION_PEAK:
        check->peak = true;
        return 0;
    case OPTION_STACKS:
    case OPTION_FOLLOW:
        return take_passed_on(check, option);
    case OPTION_KEEP:
        check->keep = optarg;
        return 0;
    case OPTION_HTML:
        check->page = optarg;
        return 0;
    default:
        if (option < OPTION_FORM || option >= OPTION_FORM + CHECK_FORMS) return complain_option("check", option, argv);
        check->output[option - OPTION_FORM] = optarg ? optarg : "-";
        return 0;
    }
}

static void fill_in(struct check *check) {
    bool taken = false, given = check->thresholds.limits.count > 0;
    uint64_t pass_under = check->thresholds.pass_under;
    if (!given) check->thresholds = thresholds_standard();
    if (pass_under) check->thresholds.pass_under = pass_under;
    if (check->runs == NOT_GIVEN) check->runs = check->comfy ? 10 : 5;
    if (check->warm_up == NOT_GIVEN) check->warm_up = check->comfy ? 3 : 1;
    for (int i = 0; i < CHECK_FORMS; i++) taken |= check->output[i] && strcmp(check->output[i], "-") == 0;
    if (!taken && !check->output[CHECK_TEXT]) check->output[CHECK_TEXT] = "-";
}

static int check_usage(const struct check *check) {
    int to_stdout = 0;
    for (int i = 0; i < CHECK_FORMS; i++) to_stdout += check->output[i] && strcmp(check->output[i], "-") == 0;
    if (!check->argv[0]) return complain_usage("check", "no command given");
    if (!check->baseline && !check->comfy) return complain_usage("check", "--baseline or --comfy is needed");
    if (check->page && !*check->page) return complain_usage("check", "--html= needs a file");
    if (check->page && strcmp(check->page, "-") == 0) return complain_usage("check", "--html=-: a page goes to a file");
    if (check->page && check->update) return complain_usage("check", "--html and --update-baseline exclude each other");
    if (check->update && !check->baseline) return complain_usage("check", "--update-baseline needs --baseline");
    if (check->output[CHECK_JSON] && to_stdout > 1 && strcmp(check->output[CHECK_JSON], "-") == 0)
        return complain_usage("check", "--json must be alone on standard output: write the other forms to files");
    if (check->comfy && check->peak) return complain_usage("check", "--peak and --comfy exclude each other");
    if (check->comfy && !check->baseline && check->runs < 2)
        return complain_usage("check", "--comfy needs two runs at least, or a baseline");
    return check_files(check);
}

/* --- loading and saving the baseline --- */

/* Loads the baseline. With --update-baseline, a damaged or missing baseline is ignored, because a new one will replace
 * it. */
static int load_baseline(struct check *check) {
    struct scan scan;
    if (!check->baseline) return EXIT_FINE;
    int result = scan_open(&scan, check->baseline);
    bool missing = result < 0 && access(check->baseline, F_OK) < 0;
    if (result == 0) result = baseline_read(&check->before, &scan);
    scan_close(&scan);
    if (result < 0 && check->update) {
        figures_end(&check->before);
        return EXIT_FINE;
    }
    if (result < 0) complain("%s%s", scan.error, missing ? ": --update-baseline writes one" : "");
    if (result == 0 && !check->update) {
        if (check->peak && !check->before.peak)
            return complain_usage("check", "--peak: %s is a baseline of live memory, not of the peak",
                                  TEXT_SAFE(check->baseline));
        check->now.peak = check->before.peak;
        check->now.without_origins = check->before.without_origins;
    }
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* Prints ", 12 call sites", or nothing for a count of 0. */
static void print_count(const struct figures *figures, enum figure_kind kind, const char *what) {
    size_t count = 0;
    for (const struct figure *figure = figures->table; figure; figure = figure->hh.next) count += figure->kind == kind;
    if (count) fprintf(stderr, ", %s %s%s", text_count(count).s, what, count == 1 ? "" : "s");
}

static int save_baseline(struct check *check) {
    char error[4400];
    const struct figures *before = check->before.runs && check->before.peak == check->now.peak ? &check->before : NULL;
    if (before) figures_settle(&check->now, before);
    figures_cut(&check->now, before, BASELINE_SITES);
    if (baseline_save(&check->now, check->baseline, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_UNREADABLE;
    }
    const struct figure *total = figures_find(&check->now, FIGURE_TOTAL, "");
    const struct figure *cuda = figures_find_cuda(&check->now, FIGURE_TOTAL, "");
    fprintf(stderr, "memstow: %s written: %s", TEXT_SAFE(check->baseline), text_size(total ? total->bytes.high : 0).s);
    if (cuda) fprintf(stderr, " and %s on CUDA devices", text_size(cuda->bytes.high).s);
    print_count(&check->now, FIGURE_OWNER, "owner");
    print_count(&check->now, FIGURE_SITE, "call site");
    fprintf(stderr, ", of %u run%s\n", check->now.runs, check->now.runs == 1 ? "" : "s");
    return EXIT_FINE;
}

/* --- writing the verdict --- */

static int write_form(const struct check *check, int form) {
    static void (*const writers[CHECK_FORMS])(const struct check *, FILE *) = {check_text, check_json, check_junit,
                                                                               check_github, check_markdown};
    const char *path = check->output[form];
    if (strcmp(path, "-") == 0) {
        writers[form](check, stdout);
        return EXIT_FINE;
    }
    FILE *to = fopen(path, "we");
    bool failed = !to;
    if (to) writers[form](check, to);
    if (to && ferror(to)) failed = true;
    if (to && fclose(to) != 0) failed = true;
    if (failed) complain("%s: %s", TEXT_SAFE(path), strerror(errno));
    return failed ? EXIT_UNREADABLE : EXIT_FINE;
}

static int verdict_tell(const struct check *check) {
    char sentence[1400];
    int code = EXIT_FINE;
    if (check->page) code = check_html(check);
    for (int i = 0; i < CHECK_FORMS && !check_is_interrupted(); i++) /* a failure does not stop the others */
        if (check->output[i] && write_form(check, i) != EXIT_FINE) code = EXIT_UNREADABLE;
    if (code != EXIT_FINE) return code;
    code = complain_finish(check->gate.over ? EXIT_OVER : EXIT_FINE);
    for (size_t i = 0; i < check->gate.count; i++) {
        const struct finding *finding = &check->gate.list[i];
        if (finding->verdict == VERDICT_FINE) continue;
        check_sentence(check, finding, sentence, sizeof sentence);
        fprintf(stderr, "memstow: %s", finding->verdict == VERDICT_WARNING ? "warning: " : "");
        text_wrap(stderr, sentence, finding->verdict == VERDICT_WARNING ? 18 : 9, 9);
        /* Only the first finding is told here; the verdict has them all. Totals come before owners and sites. */
        break;
    }
    return code;
}

static int cmd_check_run(struct check *check) {
    check_launch_begin();
    int code = check_folder_make(check);
    if (code == EXIT_FINE) code = check->comfy ? check_comfy(check) : check_program(check);
    check_launch_end();
    if (code == EXIT_FINE) code = check_interrupted();
    if (code == EXIT_FINE) code = check->update ? save_baseline(check) : verdict_tell(check);
    int ended = code == EXIT_UNREADABLE ? check_interrupted() : EXIT_FINE; /* the signal may be why it failed */
    check_folder_remove(check);
    return ended ? ended : code;
}

static int cmd_check_prepare(struct check *check) {
    fill_in(check);
    figures_begin(&check->before);
    figures_begin(&check->now);
    check->now.peak = check->peak;
    check->gate = (struct gate){.before = &check->before,
                                .now = &check->now,
                                .thresholds = &check->thresholds,
                                .suppressions = &check->suppressions};
    int code = check_usage(check);
    if (code == EXIT_FINE) code = known_load(&check->suppressions, check->suppressed_in);
    return code == EXIT_FINE ? load_baseline(check) : code;
}

/* Refuses "--junit out.xml CMD". A form's file must be part of its option (--junit=out.xml). Otherwise out.xml would be
 * run as the command. */
static int check_file_of_form(char **argv, int command) {
    static const char *const forms[] = {"--text", "--json", "--junit", "--github", "--markdown"};
    char path[4096];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (argv[command] && strcmp(argv[command - 1], forms[i]) == 0 &&
            program_find(argv[command], path, sizeof path) == ENOENT)
            return complain_usage("check", "%s is not a command: to write to that file, give %s=%s",
                                  TEXT_SAFE(argv[command]), forms[i], TEXT_SAFE(argv[command]));
    return EXIT_FINE;
}

int cmd_check(int argc, char **argv) {
    static const struct option options[] = {{"baseline", required_argument, NULL, OPTION_BASELINE},
                                            {"update-baseline", no_argument, NULL, OPTION_UPDATE},
                                            {"comfy", required_argument, NULL, OPTION_COMFY},
                                            {"runs", required_argument, NULL, OPTION_RUNS},
                                            {"warm-up", required_argument, NULL, OPTION_WARM_UP},
                                            {"fail-over", required_argument, NULL, OPTION_FAIL_OVER},
                                            {"pass-under", required_argument, NULL, OPTION_PASS_UNDER},
                                            {"suppressions", required_argument, NULL, OPTION_SUPPRESSIONS},
                                            {"peak", no_argument, NULL, OPTION_PEAK},
                                            {"stacks", required_argument, NULL, OPTION_STACKS},
                                            {"follow", required_argument, NULL, OPTION_FOLLOW},
                                            {"keep", required_argument, NULL, OPTION_KEEP},
                                            {"top", required_argument, NULL, OPTION_TOP},
                                            {"text", optional_argument, NULL, OPTION_FORM + CHECK_TEXT},
                                            {"json", optional_argument, NULL, OPTION_FORM + CHECK_JSON},
                                            {"junit", optional_argument, NULL, OPTION_FORM + CHECK_JUNIT},
                                            {"github", optional_argument, NULL, OPTION_FORM + CHECK_GITHUB},
                                            {"markdown", optional_argument, NULL, OPTION_FORM + CHECK_MARKDOWN},
                                            {"html", required_argument, NULL, OPTION_HTML},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct check check = {.runs = NOT_GIVEN, .warm_up = NOT_GIVEN, .top = TOP_DEFAULT};
    opterr = 0;
    /* '+': the first word that is not an option is the command. The words after it belong to the command. */
    for (int option; (option = getopt_long(argc, argv, "+:h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_check_help();
        int code = cmd_check_take_option(&check, option, argv);
        if (code) return code;
    }
    check.argv = argv + optind;
    int code = check_file_of_form(argv, optind);
    if (code == EXIT_FINE) code = cmd_check_prepare(&check);
    if (code == EXIT_FINE) code = cmd_check_run(&check);
    gate_end(&check.gate);
    figures_end(&check.before);
    figures_end(&check.now);
    suppressions_end(&check.suppressions);
    return code;
}
