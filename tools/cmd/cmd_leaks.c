/* cmd_leaks.c — memstow leaks: shows memory that grows from run to run, and memory that retired owners left behind. */
#include "tools/base/complain.h"
#include "tools/base/duration.h"
#include "tools/base/progress.h"
#include "tools/cmd/commands.h"
#include "tools/cmd/frame_options.h"
#include "tools/cmd/leaks_tab.h"
#include "tools/html/html_page.h"
#include "tools/leaks/leaks.h"
#include "tools/leaks/leaks_ask.h"
#include "tools/leaks/leaks_follow.h"
#include "tools/proc/process.h"
#include "tools/report/report.h"
#include "tools/symbols/innermost.h"
#include "tools/leaks/series.h"
#include "tools/subject/subject.h"
#include "tools/base/text.h"
#include "tools/base/size.h"
#include "tools/base/top.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum {
    OPTION_JSON = 256,
    OPTION_TOP,
    OPTION_MIN,
    OPTION_SERIES,
    OPTION_RUNS,
    OPTION_EVERY,
    OPTION_HOLDERS,
    OPTION_TIMEOUT,
    OPTION_HTML
};
enum { TIMEOUT = 60, EVERY = 60 }; /* seconds */

struct choice {
    bool json, html, holders;
    const char *page; /* file for the HTML page; NULL: standard output */
    size_t top;
    uint64_t floor;
    double timeout; /* seconds that the process has for an answer; 0: it is not asked */
    pid_t pid;      /* 0: files were given instead */
    struct follow follow;
};

static int cmd_leaks_help(void) {
    puts("usage: memstow leaks FILE...|PID [--top=N] [--min=SIZE] [--all-frames]\n"
         "                     [--absolute] [--json | --html [-o PAGE]]\n"
         "       memstow leaks PID [--holders] [--timeout=SECONDS] …\n"
         "       memstow leaks PID --series=FILE [--runs=N] [--every=TIME] …\n"
         "\n"
         "Shows leaks and what holds them: memory of owners that are gone, and memory that\n"
         "each run leaves behind, by model, node and call stack. Memory that only\n"
         "looks like a leak is counted separately: initialisation, full caches, memory\n"
         "that comes and goes, owners with the policy keep, memory that the allocator\n"
         "keeps. Several FILEs are snapshots of one process, the oldest first. A series is\n"
         "one FILE. A running Python program that imports memstow first collects its\n"
         "garbage, between two runs.\n"
         "\n"
         "  --holders      ask the program which of its objects hold the leaks; it stops\n"
         "                 for some seconds. ComfyUI answers without this option, too\n"
         "  --timeout=SECONDS\n"
         "                 wait no longer for the program (60; 0: ask it nothing)\n"
         "  --series=FILE  follow the process until it ends (or SIGINT, SIGTERM), and\n"
         "                 write the changes of each run to FILE. 'memstow leaks FILE'\n"
         "                 reads it again\n"
         "  --runs=N       with --series: stop when N more runs have ended\n"
         "  --every=TIME   with --series: as long as no run has ended, read the memory\n"
         "                 after each TIME (60s)\n"
         "  --min=SIZE     leave out growth of less than SIZE a run (default 1K)\n"
         "  --top=N        show N findings of each kind (default 10; --json shows all)\n"
         "  --all-frames   whole call stacks, with the allocator's own frames\n"
         "  --absolute     whole paths of source files, for an editor to jump to\n"
         "  --json         one JSON document, sizes in bytes\n"
         "  --html         one page for a browser, with the report of the last FILE\n"
         "  -o PAGE        write the page to PAGE (default: standard output)\n"
         "\n"
         "A number is a PID; for a file of that name write ./NUMBER.\n"
         "Exit code: 0 no leak, 1 a leak, 2 wrong usage, 3 unreadable or damaged input,\n"
         "5 no verdict: too few runs, uneven growth, or garbage that Python has kept.");
    return complain_finish(EXIT_FINE);
}

static int no_memory(void) {
    complain("not enough memory");
    return EXIT_UNREADABLE;
}

/* --- reading the files --- */

static int cmd_leaks_complete(struct leak_sites *to, const struct image *image, const char *argument) {
    int result = series_complete(to, image);
    if (result == -1) return no_memory();
    if (result < 0) complain("%s: damaged: a series that does not add up", TEXT_SAFE(argument));
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* Refuses a series beside other files, because its readings and those files cannot be put into one order. */
static int check_alone(const struct image *image, const char *argument) {
    if (!image->series_size) return EXIT_FINE;
    return complain_usage("leaks", "%s is a series, which is read alone: several FILEs are snapshots",
                          TEXT_SAFE(argument));
}

/* Reads the files, one image at a time. The last image stays open. */
static int cmd_leaks_read_all(struct subject *last, struct leak_sites *to, char **arguments, int count) {
    struct subject_before before = {.taken_ns = 0};
    for (int i = 0; i < count; i++) {
        if (i) subject_close(last);
        int code = subject_open(last, arguments[i], i == count - 1);
        if (code != EXIT_FINE) return code;
        if (count > 1 && (code = check_alone(&last->image, arguments[i])) != EXIT_FINE) return code;
        if ((code = subject_check_order("leaks", last, arguments[i], &before)) != EXIT_FINE) return code;
        if (leak_sites_read(to, &last->image) < 0) return no_memory();
        if (count > 1 && leak_sites_point(to, &last->image) < 0) return no_memory();
    }
    return cmd_leaks_complete(to, &last->image, arguments[count - 1]);
}

/* --- finding leaks, and asking the process for more --- */

static struct subject subject;
static struct leak_sites sites;
static struct leaks leaks;
static struct leaks_view view;

static void cmd_leaks_forget(void) {
    symbols_end(view.symbols);
    view.symbols = NULL;
    leaks_clear(&leaks);
}

static int leaks_find_in(const struct choice *choice) {
    cmd_leaks_forget();
    if (leaks_find(&leaks, &sites, &subject.image, choice->floor) < 0) return no_memory();
    view.symbols = symbols_begin(&subject.image, subject.pid);
    return leaks_group(&leaks, view.symbols) < 0 ? no_memory() : EXIT_FINE;
}

/* Finds the leaks again, in the present memory of the process. If its ledger can no longer be read, the earlier
 * findings stay. */
static int find_again(const struct choice *choice) {
    static struct subject later;
    if (subject_open_pid(&later, choice->pid, true) != EXIT_FINE) return EXIT_FINE;
    cmd_leaks_forget();
    subject_close(&subject);
    subject = later;
    leak_sites_end(&sites);
    if (leak_sites_read(&sites, &subject.image) < 0) return no_memory();
    return leaks_find_in(choice);
}

static void say_why_no_holders(const struct choice *choice, const struct leaks_ask *ask, int error) {
    view.can_ask = error == -EAGAIN;
    if (!choice->holders) return;
    complain("process %d does not say what holds memory: %s", (int)choice->pid,
             error == -ETIMEDOUT ? "it did not answer in time"
             : error != -ENOTSUP ? TEXT_SAFE(ask->text)
                                 : "it does not answer such requests; Python programs that import memstow do");
}

static int count_paths(const struct leaks_ask_stack *stacks, size_t count) {
    int paths = 0;
    for (size_t i = 0; i < count; i++) paths += i == 0 || stacks[i].path != stacks[i - 1].path;
    return paths;
}

/* Says why the program has not looked for all holders. If all call stacks fit into one search, the program's answer has
 * the reason. */
static void say_what_is_left(const struct choice *choice, const struct leaks_ask *ask, int found, int paths) {
    if (paths <= LEAKS_ASK_PATHS)
        complain("process %d: %s", (int)choice->pid, TEXT_SAFE(ask->text));
    else
        complain("process %d: %d of %d call stacks: %s", (int)choice->pid, found, paths,
                 choice->holders ? "there was no time for all" : "ask again, or with --holders");
}

/* Asks the process which objects hold the memory of those findings whose holder is not known yet. */
static int ask_for_holders(const struct choice *choice, struct leaks_ask *ask) {
    struct leaks_ask_stack *stacks;
    size_t count;
    if (leaks_unknown(&leaks, &stacks, &count) < 0) return no_memory();
    int paths = count_paths(stacks, count);
    int result = count ? leaks_ask_holders(ask, stacks, count, leaks_last_judged(&leaks), choice->holders) : 0;
    free(stacks);
    if (result < 0) say_why_no_holders(choice, ask, result);
    if (result >= 0 && result < paths) say_what_is_left(choice, ask, result, paths);
    return count && result >= 0 ? find_again(choice) : EXIT_FINE;
}

/* Asks a running process to collect its garbage and to name the holders of memory. */
static int ask_for_more(const struct choice *choice) {
    struct leaks_ask ask;
    int code = EXIT_FINE;
    leaks_ask_begin(&ask, choice->pid, image_fact(&subject.image, SNAP_FACT_CONTROL), choice->timeout);
    if (leaks_has_garbage(&leaks) && leaks_ask_collect(&ask) >= 0) code = find_again(choice);
    return code == EXIT_FINE ? ask_for_holders(choice, &ask) : code;
}

/* --- showing the leaks --- */

/* Writes the page: the view of leaks, then the report of the same image. The view of leaks must come first, because the
 * report changes the image. */
static int write_page(const struct choice *choice) {
    struct report_tab tab = {.in_front = true};
    struct report report = {.top = SIZE_MAX, .page = choice->page, .tab = &tab};
    bool failed = leaks_tab_make(&tab, &leaks, &view) < 0;
    if (report_begin(&report, &subject) < 0) failed = true;
    int code = failed ? no_memory() : report_html(&report);
    report_end(&report);
    free(tab.text);
    return code;
}

static int leaks_show(const struct choice *choice) {
    static const int codes[] = {
        [LEAKS_NONE] = EXIT_FINE, [LEAKS_FOUND] = EXIT_OVER, [LEAKS_CANNOT_TELL] = EXIT_CANNOT_TELL};
    int code = EXIT_FINE;
    view.top = choice->top;
    if (choice->html)
        code = write_page(choice);
    else if (choice->json)
        leaks_json(&leaks, &view, stdout);
    else
        leaks_text(&leaks, &view);
    return complain_finish(code == EXIT_FINE ? codes[leaks_verdict(&leaks)] : code);
}

static int cmd_leaks_run(struct choice *choice, char **arguments, int count) {
    bool asks = choice->pid && !choice->follow.file && choice->timeout > 0;
    leak_sites_begin(&sites);
    if (!choice->follow.file) progress_begin();
    int code = choice->follow.file ? leaks_follow(&choice->follow, &subject, &sites)
                                   : cmd_leaks_read_all(&subject, &sites, arguments, count);
    if (code == EXIT_FINE) code = leaks_find_in(choice);
    if (code == EXIT_FINE && asks) code = ask_for_more(choice);
    if (code == EXIT_FINE) code = leaks_show(choice);
    cmd_leaks_forget();
    leak_sites_end(&sites);
    subject_close(&subject);
    return code;
}

/* --- the options of memstow leaks --- */

static bool parse_floor(const char *string, uint64_t *floor) {
    double size;
    if (!size_parse(string, &size) || size >= (double)(UINT64_C(1) << 60)) return false;
    *floor = (uint64_t)size;
    return true;
}

static bool parse_runs(const char *string, uint32_t *runs) {
    size_t number;
    if (!top_parse(string, &number) || !number || number > UINT32_MAX) return false;
    *runs = (uint32_t)number;
    return true;
}

static bool parse_timeout(const char *string, double *seconds) {
    char *end;
    *seconds = *string >= '0' && *string <= '9' ? strtod(string, &end) : -1;
    return *seconds >= 0 && *seconds < 1e9 && !*end;
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_leaks_take_option(struct choice *choice, int option, char **argv) {
    if (frame_options_take(option)) return 0;
    switch (option) {
    case OPTION_JSON:
        choice->json = true;
        return 0;
    case OPTION_HTML:
        choice->html = true;
        return 0;
    case 'o':
        choice->page = optarg;
        return 0;
    case OPTION_TOP:
        if (top_parse(optarg, &choice->top)) return 0;
        return complain_usage("leaks", "--top=%s: not a number", TEXT_SAFE(optarg));
    case OPTION_MIN:
        if (parse_floor(optarg, &choice->floor)) return 0;
        return complain_usage("leaks", "--min=%s: not a size like 64K or 1M", TEXT_SAFE(optarg));
    case OPTION_RUNS:
        if (parse_runs(optarg, &choice->follow.runs)) return 0;
        return complain_usage("leaks", "--runs=%s: not a number above 0", TEXT_SAFE(optarg));
    case OPTION_EVERY:
        if (duration_parse(optarg, &choice->follow.every_ns) && choice->follow.every_ns) return 0;
        return complain_usage("leaks", "--every=%s: not a time, such as 60s", TEXT_SAFE(optarg));
    case OPTION_SERIES:
        choice->follow.file = optarg;
        return 0;
    case OPTION_HOLDERS:
        choice->holders = true;
        return 0;
    case OPTION_TIMEOUT:
        if (parse_timeout(optarg, &choice->timeout)) return 0;
        return complain_usage("leaks", "--timeout=%s: not a number of seconds", TEXT_SAFE(optarg));
    default:
        return complain_option("leaks", option, argv);
    }
}

static int check_words(struct choice *choice, char **arguments, int count) {
    if (choice->page && !choice->html) return complain_usage("leaks", "-o goes with --html");
    if (choice->json && choice->html) return complain_usage("leaks", "--json and --html exclude each other");
    if (frame_options_check("leaks", !choice->json && !choice->html) != EXIT_FINE) return EXIT_USAGE;
    if (choice->html && html_page_check("leaks", choice->page) != EXIT_FINE) return EXIT_USAGE;
    if (count < 1) return complain_usage("leaks", "one FILE or PID is needed, or several FILEs");
    choice->pid = count == 1 ? process_parse(arguments[0]) : 0;
    if (choice->holders && (!choice->pid || choice->follow.file || !(choice->timeout > 0)))
        return complain_usage("leaks", "--holders goes with one PID, without --series and --timeout=0");
    if (!choice->follow.file) {
        if (choice->follow.runs) return complain_usage("leaks", "--runs goes with --series");
        if (choice->follow.every_ns) return complain_usage("leaks", "--every goes with --series");
        return 0;
    }
    if (!choice->follow.every_ns) choice->follow.every_ns = EVERY * SECOND_NS;
    choice->follow.pid = choice->pid;
    return choice->follow.pid ? 0 : complain_usage("leaks", "--series goes with one PID");
}

int cmd_leaks(int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"html", no_argument, NULL, OPTION_HTML},
                                            {"top", required_argument, NULL, OPTION_TOP},
                                            {"min", required_argument, NULL, OPTION_MIN},
                                            {"series", required_argument, NULL, OPTION_SERIES},
                                            {"runs", required_argument, NULL, OPTION_RUNS},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"holders", no_argument, NULL, OPTION_HOLDERS},
                                            {"timeout", required_argument, NULL, OPTION_TIMEOUT},
                                            FRAME_OPTIONS,
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const size_t not_given = SIZE_MAX - 1;
    struct choice choice = {.top = not_given, .floor = LEAKS_FLOOR, .timeout = TIMEOUT};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_leaks_help();
        int code = cmd_leaks_take_option(&choice, option, argv);
        if (code) return code;
    }
    if (choice.top == not_given) choice.top = choice.json || choice.html ? SIZE_MAX : TOP_DEFAULT;
    int code = check_words(&choice, argv + optind, argc - optind);
    return code ? code : cmd_leaks_run(&choice, argv + optind, argc - optind);
}
