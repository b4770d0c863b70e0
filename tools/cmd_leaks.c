/* cmd_leaks.c — memstow leaks: what grows from run to run, and what owners that are gone left behind. */
#include "commands.h"
#include "html_page.h"
#include "leaks.h"
#include "leaks_follow.h"
#include "proc.h"
#include "report.h"
#include "series.h"
#include "subject.h"
#include "text.h"
#include "thresholds.h"
#include "top.h"

#include <getopt.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_JSON = 256, OPTION_TOP, OPTION_MIN, OPTION_SERIES, OPTION_RUNS, OPTION_HTML };

struct choice {
    bool json, html;
    const char *page; /* where a page goes; NULL: standard output */
    size_t top;
    uint64_t floor;
    struct follow follow;
};

static int help(void) {
    puts("usage: memstow leaks FILE...|PID [--top=N] [--min=SIZE]\n"
         "                     [--json | --html [-o PAGE]]\n"
         "       memstow leaks PID --series=FILE [--runs=N] [--top=N] [--min=SIZE]\n"
         "                     [--json | --html [-o PAGE]]\n"
         "\n"
         "What leaks: memory of owners that are gone, and who holds it; and what each\n"
         "run leaves behind, run after run, by model, node and call stack. What only\n"
         "looks like a leak is counted apart: initialisation, caches that are full, what\n"
         "comes and goes, owners with policy keep, memory that the allocator keeps.\n"
         "Several FILEs are snapshots of one process, in the order of their taking; a\n"
         "series is given alone.\n"
         "\n"
         "  --series=FILE  follow the process until it ends (or SIGINT, SIGTERM), and\n"
         "                 write to FILE what each of its runs changed, which\n"
         "                 'memstow leaks FILE' reads again\n"
         "  --runs=N       with --series: until N more runs have ended\n"
         "  --min=SIZE     leave out what grows by less than SIZE a run (default 1K)\n"
         "  --top=N        show N findings of each kind (default 10; with --json all)\n"
         "  --json         one JSON document, sizes in bytes\n"
         "  --html         one page for a browser, with the report of the last FILE\n"
         "  -o PAGE        where the page goes (default: standard output)\n"
         "\n"
         "A number is a PID; for a file of that name write ./NUMBER.\n"
         "Exit code: 0 no leak, 1 a leak, 2 wrong usage, 3 unreadable or damaged input.");
    return finish_output(EXIT_FINE);
}

static int no_memory(void) {
    complain("not enough memory");
    return EXIT_UNREADABLE;
}

/* --- reading --- */

static bool same_process(const struct snap_header *a, const struct snap_header *b) {
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->exec_generation == b->exec_generation &&
           memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0;
}

/* Whether this one goes on where the one before ended. */
static int check_order(const struct image *image, const char *argument, struct snap_header *before, uint64_t *taken) {
    uint64_t now = image_now(image);
    if (*taken && !same_process(&image->header, before))
        return usage_error("leaks", "%s is of another process than the file before it", TEXT_SAFE(argument));
    if (now < *taken) return usage_error("leaks", "%s was taken earlier than the file before it", TEXT_SAFE(argument));
    *before = image->header;
    *taken = now;
    return EXIT_FINE;
}

static int read_series(struct leak_sites *sites, const struct image *image, const char *argument) {
    int result = series_unpack(sites, image);
    if (result == -1) return no_memory();
    if (result < 0) complain("%s: damaged: a series that does not add up", TEXT_SAFE(argument));
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* A series has readings of its own, which those of other files cannot be put between. */
static int check_alone(const struct image *image, const char *argument) {
    if (!image->series_size) return EXIT_FINE;
    return usage_error("leaks", "%s is a series, which is read alone: several FILEs are snapshots",
                       TEXT_SAFE(argument));
}

/* One image at a time; the last stays open. */
static int read_all(struct subject *subject, struct leak_sites *sites, char **arguments, int count) {
    struct snap_header before;
    uint64_t taken = 0;
    for (int i = 0; i < count; i++) {
        if (i) subject_close(subject);
        int code = subject_open(subject, arguments[i], i == count - 1);
        if (code != EXIT_FINE) return code;
        if (count > 1 && (code = check_alone(&subject->image, arguments[i])) != EXIT_FINE) return code;
        if ((code = check_order(&subject->image, arguments[i], &before, &taken)) != EXIT_FINE) return code;
        if (leak_sites_read(sites, &subject->image) < 0) return no_memory();
        if (count > 1 && leak_sites_point(sites, &subject->image) < 0) return no_memory();
    }
    if (count == 1) return read_series(sites, &subject->image, arguments[0]);
    return leak_entries_sort(&sites->moved, sites->count, sites->point_count) < 0 ? no_memory() : EXIT_FINE;
}

/* --- showing --- */

/* The report of the same image, behind the view of what leaks. It changes the image: so that comes first. */
static int write_page(const struct choice *choice, struct subject *subject, const struct leaks *leaks,
                      const struct leaks_view *view) {
    char *text = NULL;
    struct report_tab tab = {.command = "leaks"};
    struct report report = {.top = SIZE_MAX, .page = choice->page, .tab = &tab};
    FILE *to = open_memstream(&text, &tab.length);
    if (!to) return no_memory();
    leaks_json(leaks, view, to);
    bool failed = fclose(to) != 0 || report_begin(&report, subject) < 0;
    tab.text = text;
    int code = failed ? no_memory() : report_html(&report);
    report_end(&report);
    free(text);
    return code;
}

static int show(const struct choice *choice, struct subject *subject, struct leak_sites *sites) {
    struct leaks leaks;
    int code = EXIT_FINE;
    struct leaks_view view = {.top = choice->top};
    if (leaks_find(&leaks, sites, &subject->image, choice->floor) < 0) {
        leaks_clear(&leaks);
        return no_memory();
    }
    view.symbols = symbols_begin(&subject->image, subject->pid);
    if (choice->html)
        code = write_page(choice, subject, &leaks, &view);
    else if (choice->json)
        leaks_json(&leaks, &view, stdout);
    else
        leaks_text(&leaks, &view);
    symbols_end(view.symbols);
    if (code == EXIT_FINE && leaks_total(&leaks)) code = EXIT_OVER;
    leaks_clear(&leaks);
    return finish_output(code);
}

static int run(struct choice *choice, char **arguments, int count) {
    static struct subject subject;
    static struct leak_sites sites;
    leak_sites_begin(&sites);
    int code = choice->follow.file ? leaks_follow(&choice->follow, &subject, &sites)
                                   : read_all(&subject, &sites, arguments, count);
    if (code == EXIT_FINE) code = show(choice, &subject, &sites);
    leak_sites_end(&sites);
    subject_close(&subject);
    return code;
}

/* --- options --- */

static bool parse_floor(const char *string, uint64_t *floor) {
    double size;
    if (!limits_parse_size(string, &size) || size >= (double)(UINT64_C(1) << 60)) return false;
    *floor = (uint64_t)size;
    return true;
}

static bool parse_runs(const char *string, uint32_t *runs) {
    size_t number;
    if (!top_parse(string, &number) || !number || number > UINT32_MAX) return false;
    *runs = (uint32_t)number;
    return true;
}

/* 0, or an exit code after complaining. */
static int take_option(struct choice *choice, int option, char **argv) {
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
        return usage_error("leaks", "--top=%s: not a number", TEXT_SAFE(optarg));
    case OPTION_MIN:
        if (parse_floor(optarg, &choice->floor)) return 0;
        return usage_error("leaks", "--min=%s: not a size like 64K or 1M", TEXT_SAFE(optarg));
    case OPTION_RUNS:
        if (parse_runs(optarg, &choice->follow.runs)) return 0;
        return usage_error("leaks", "--runs=%s: not a number above 0", TEXT_SAFE(optarg));
    case OPTION_SERIES:
        choice->follow.file = optarg;
        return 0;
    default:
        return option_error("leaks", option, argv);
    }
}

static int check_words(struct choice *choice, char **arguments, int count) {
    if (choice->page && !choice->html) return usage_error("leaks", "-o goes with --html");
    if (choice->json && choice->html) return usage_error("leaks", "--json and --html exclude each other");
    if (choice->html && html_page_check("leaks", choice->page) != EXIT_FINE) return EXIT_USAGE;
    if (count < 1) return usage_error("leaks", "one FILE or PID is needed, or several FILEs");
    if (!choice->follow.file) {
        if (choice->follow.runs) return usage_error("leaks", "--runs goes with --series");
        return 0;
    }
    choice->follow.pid = count == 1 ? process_parse(arguments[0]) : 0;
    return choice->follow.pid ? 0 : usage_error("leaks", "--series goes with one PID");
}

int cmd_leaks(int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"html", no_argument, NULL, OPTION_HTML},
                                            {"top", required_argument, NULL, OPTION_TOP},
                                            {"min", required_argument, NULL, OPTION_MIN},
                                            {"series", required_argument, NULL, OPTION_SERIES},
                                            {"runs", required_argument, NULL, OPTION_RUNS},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const size_t not_given = SIZE_MAX - 1;
    struct choice choice = {.top = not_given, .floor = LEAKS_FLOOR};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (option == 'h') return help();
        int code = take_option(&choice, option, argv);
        if (code) return code;
    }
    if (choice.top == not_given) choice.top = choice.json || choice.html ? SIZE_MAX : TOP_DEFAULT;
    int code = check_words(&choice, argv + optind, argc - optind);
    return code ? code : run(&choice, argv + optind, argc - optind);
}
