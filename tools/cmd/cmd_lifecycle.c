/* cmd_lifecycle.c — memstow lifecycle: starts a program, uses it, closes it, and reports everything that is left of it.
 * There are six standard ways to do so, the tests T1 to T6. Each test is repeated several times; one repetition is a
 * life (lifecycle.h). */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/lifecycle/drive.h"
#include "tools/base/duration.h"
#include "tools/watch/family.h"
#include "tools/base/json.h"
#include "tools/base/size.h"
#include "tools/lifecycle/lifecycle.h"
#include "tools/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_TEST = START_OTHERS,
    OPTION_REPEAT,
    OPTION_OBSERVE,
    OPTION_STRICT,
    OPTION_JSON,
    OPTION_UNTRACKED,
    OPTION_SERVER_MODE
};

struct cycle {
    struct start start;
    struct scenario scenario;
    struct lifecycle lifecycle;
    struct exempt exempt;
    struct json *json;
    const char *path;
    char here[4096], ledgers[4096]; /* ledgers: the temporary folder for ledgers; "": there is none */
    bool chosen, wanted[LIFECYCLE_TESTS + 1], strict, untracked, exempts; /* chosen: --test was given */
    unsigned long repeat;                                                 /* 0: as the scenario says */
    uint64_t observe_ns;
    bool observe_given;
    size_t count[VERDICT_FAILED + 1], own_faults, skipped;
};

static int cmd_lifecycle_help(void) {
    printf("usage: memstow lifecycle [OPTION...] SCENARIO\n"
           "\n"
           "Starts a program, uses it, closes it, and shows what is left of it. The file\n"
           "SCENARIO has the steps; memstow-lifecycle(1) lists its keys.\n"
           "  T1 start and close                 T4 run to completion and close\n"
           "  T2 load and close                  T5 cancel a run and close\n"
           "  T3 queue and close                 T6 start a child and close\n"
           "\n"
           "  --test=T1,...           make only these tests\n"
           "  --repeat=N              repeat each test N times (default: as SCENARIO says,\n"
           "                          else 3)\n"
           "  --observe=TIME          look for TIME after closing (default: as SCENARIO\n"
           "                          says, else 60s)\n"
           "  --strict                exit with 1 also on a warning\n"
           "  --json                  one JSON document, sizes in bytes\n"
           "  --server-mode[=NAME,...]\n"
           "                          do not end or count processes of these names, those\n"
           "                          that the program registered to be kept, and what\n"
           "                          they started\n"
           "  --untracked             keep no ledger: faster, but growth is not explained\n"
           "%s"
           "\n"
           "Ledgers are removed, unless -o is given.\n"
           "Exit code: 0 fine, 1 something was left, grew, or took too long; 2 wrong usage;\n"
           "3 SCENARIO is unreadable or damaged; 4 the program failed before it was closed;\n"
           "128 plus the number of a signal that ended memstow.\n",
           start_help);
    return complain_finish(EXIT_FINE);
}

/* --- one life as text --- */

static const char *const verdicts[] = {"passed", "warning", "failed"};

enum { FIGURES = 14 /* the column at which the figures of a life begin */ };

static void life_figures(const struct life *life, char *text, size_t size) {
    char gone[64] = "not gone";
    if (life->own_fault) {
        snprintf(text, size, "peak %s", text_size(life->peak_bytes).s);
        return;
    }
    if (life->gone_ns != UINT64_MAX) snprintf(gone, sizeof gone, "gone after %s", text_duration(life->gone_ns).s);
    snprintf(text, size, "%s; peak %s, at close %s, then +%s, at the end %s; at most %u process%s, %u thread%s", gone,
             text_size(life->peak_bytes).s, text_size(life->close_bytes).s, text_size(life->growth_bytes).s,
             text_size(life->final_bytes).s, life->processes, life->processes == 1 ? "" : "es", life->threads,
             life->threads == 1 ? "" : "s");
}

static void print_life(const struct life *life, unsigned repetition) {
    static const char *const words[] = {"passed", "WARNING", "FAILED"};
    char figures[400];
    printf("  %-3u %-8s", repetition, words[life->verdict]);
    life_figures(life, figures, sizeof figures);
    text_wrap(stdout, figures, FIGURES, FIGURES);
    for (size_t i = 0; i < life->reason_count; i++) printf("        %s\n", text_fit(life->reasons[i], 300).s);
    if (life->exempt_count && life->exempt) printf("        %s", life->exempt);
    if (life->verdict == VERDICT_FINE || !life->details) return;
    char *rest = NULL;
    for (char *line = strtok_r(life->details, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        printf("        %s\n", line);
}

static void json_life(struct json *json, const struct life *life, unsigned test, unsigned repetition) {
    char name[8];
    snprintf(name, sizeof name, "T%u", test);
    json_object(json, NULL);
    json_string(json, "test", name);
    json_number(json, "repetition", repetition);
    json_string(json, "verdict", verdicts[life->verdict]);
    json_array(json, "reasons");
    for (size_t i = 0; i < life->reason_count; i++) json_string(json, NULL, life->reasons[i]);
    json_end_array(json);
    json_real(json, "ready_seconds", (double)life->ready_ns / 1e9);
    if (life->own_fault || life->gone_ns == UINT64_MAX)
        json_null(json, "gone_seconds");
    else
        json_real(json, "gone_seconds", (double)life->gone_ns / 1e9);
    json_number(json, "peak_bytes", life->peak_bytes);
    json_number(json, "close_bytes", life->close_bytes);
    json_number(json, "growth_bytes", life->growth_bytes);
    json_number(json, "final_bytes", life->final_bytes);
    json_number(json, "processes", life->processes);
    json_number(json, "threads", life->threads);
    json_number(json, "left_processes", life->left_processes);
    json_number(json, "left_traces", life->left_traces);
    json_number(json, "kept_processes", life->exempt_count);
    json_signed(json, "exit_status", life->exit_code);
    json_string(json, "details", life->details && *life->details ? life->details : NULL);
    json_end_object(json);
}

/* --- all lives --- */

static void life_tell(struct cycle *cycle, const struct life *life, unsigned test, unsigned repetition) {
    cycle->count[life->verdict]++;
    cycle->own_faults += life->own_fault;
    if (cycle->json)
        json_life(cycle->json, life, test, repetition);
    else
        print_life(life, repetition);
    fflush(stdout);
}

static int run_test(struct cycle *cycle, unsigned test) {
    for (unsigned i = 1; i <= (unsigned)cycle->scenario.repeat; i++) {
        struct life life;
        int code = lifecycle_run(&cycle->lifecycle, test, &life);
        if (code == EXIT_FINE) life_tell(cycle, &life, test, i);
        free(life.details);
        free(life.exempt);
        if (code != EXIT_FINE) return code;
    }
    return EXIT_FINE;
}

static int run_tests(struct cycle *cycle) {
    for (unsigned test = 1; test <= LIFECYCLE_TESTS; test++) {
        const char *lacks = lifecycle_lacks(&cycle->scenario, test);
        if (cycle->chosen && !cycle->wanted[test]) continue;
        if (!cycle->json)
            printf("T%u %s%s%s%s\n", test, lifecycle_name(test), lacks ? ": skipped, the scenario has no '" : "",
                   lacks ? lacks : "", lacks ? "'" : "");
        fflush(stdout);
        cycle->skipped += lacks != NULL;
        int code = lacks ? EXIT_FINE : run_test(cycle, test);
        if (code != EXIT_FINE) return code;
    }
    return EXIT_FINE;
}

static int exit_code(const struct cycle *cycle) {
    size_t failed = cycle->count[VERDICT_FAILED];
    if (failed) return failed > cycle->own_faults ? EXIT_OVER : EXIT_PROGRAM;
    return cycle->strict && cycle->count[VERDICT_WARNING] ? EXIT_OVER : EXIT_FINE;
}

static int cmd_lifecycle_execute(struct cycle *cycle) {
    if (cycle->json) {
        json_begin(cycle->json, stdout, "memstow-lifecycle");
        json_string(cycle->json, "scenario", cycle->path);
        json_array(cycle->json, "lives");
    }
    int code = run_tests(cycle);
    if (cycle->json) {
        json_end_array(cycle->json);
        json_number(cycle->json, "passed", cycle->count[VERDICT_FINE]);
        json_number(cycle->json, "warnings", cycle->count[VERDICT_WARNING]);
        json_number(cycle->json, "failed", cycle->count[VERDICT_FAILED]);
        json_number(cycle->json, "skipped_tests", cycle->skipped);
        json_finish(cycle->json);
    } else
        printf("%zu passed, %zu with a warning, %zu failed; %zu test%s skipped\n", cycle->count[VERDICT_FINE],
               cycle->count[VERDICT_WARNING], cycle->count[VERDICT_FAILED], cycle->skipped,
               cycle->skipped == 1 ? "" : "s");
    return code != EXIT_FINE ? code : complain_finish(exit_code(cycle));
}

/* --- where ledgers go --- */

static bool make_ledgers(struct cycle *cycle) {
    const char *folder = getenv("TMPDIR");
    static char output[4200];
    if (cycle->start.output) return true;
    snprintf(cycle->ledgers, sizeof cycle->ledgers, "%s/memstow-lifecycle-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(cycle->ledgers)) return false;
    snprintf(output, sizeof output, "%s/%%n.%%p.mst", cycle->ledgers);
    cycle->start.output = output;
    return true;
}

static void remove_ledgers(const struct cycle *cycle) {
    DIR *folder = *cycle->ledgers ? opendir(cycle->ledgers) : NULL;
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(cycle->ledgers);
}

static void find_here(struct cycle *cycle) {
    char *whole = realpath(cycle->path, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash) *slash = 0;
    snprintf(cycle->here, sizeof cycle->here, "%s", slash ? whole : ".");
    free(whole);
}

static int cmd_lifecycle_prepare(struct cycle *cycle) {
    if (scenario_load(&cycle->scenario, cycle->path) < 0) {
        complain("%s", cycle->scenario.error);
        return EXIT_UNREADABLE;
    }
    if (cycle->repeat) cycle->scenario.repeat = (int)cycle->repeat;
    if (cycle->observe_given) cycle->scenario.observe_ns = cycle->observe_ns;
    find_here(cycle);
    const struct drive at = {.here = cycle->here};
    if (cycle->scenario.folder) cycle->exempt.folder = drive_expand(&at, cycle->scenario.folder);
    cycle->lifecycle = (struct lifecycle){&cycle->scenario, cycle->here, cycle->untracked ? NULL : &cycle->start,
                                          cycle->exempts ? &cycle->exempt : NULL};
    if (!family_adopt()) complain("processes that cut the link to their parent cannot be followed here");
    if (cycle->untracked || make_ledgers(cycle)) return EXIT_FINE;
    complain("%s: %s", TEXT_SAFE(cycle->ledgers), strerror(errno));
    return EXIT_UNREADABLE;
}

/* --- the options of memstow lifecycle --- */

/* Reads a list of tests such as "T1,T3". False: it is not such a list. */
static bool take_tests(struct cycle *cycle, const char *list) {
    for (const char *at = list;; at += 3) {
        bool known = (at[0] == 'T' || at[0] == 't') && at[1] >= '1' && at[1] <= '0' + LIFECYCLE_TESTS;
        if (!known || (at[2] && at[2] != ',')) return false;
        cycle->chosen = cycle->wanted[at[1] - '0'] = true;
        if (!at[2]) return true;
    }
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_lifecycle_take_option(struct cycle *cycle, int option, char **argv) {
    static struct json json;
    switch (option) {
    case OPTION_TEST:
        if (take_tests(cycle, optarg)) return 0;
        return complain_usage("lifecycle", "--test=%s: not some of T1 to T6, separated by commas", TEXT_SAFE(optarg));
    case OPTION_REPEAT:
        if (size_parse_count(optarg, 1, 9999, &cycle->repeat)) return 0;
        return complain_usage("lifecycle", "--repeat=%s: not a number from 1 to 9999", TEXT_SAFE(optarg));
    case OPTION_OBSERVE:
        cycle->observe_given = true;
        if (duration_parse(optarg, &cycle->observe_ns)) return 0;
        return complain_usage("lifecycle", "--observe=%s: not a time like 60s, 500ms or 2m, a day at most",
                              TEXT_SAFE(optarg));
    case OPTION_STRICT:
        cycle->strict = true;
        return 0;
    case OPTION_JSON:
        cycle->json = &json;
        return 0;
    case OPTION_UNTRACKED:
        cycle->untracked = true;
        return 0;
    case OPTION_SERVER_MODE:
        cycle->exempts = true;
        if (exempt_take(&cycle->exempt, optarg)) return 0;
        return complain_usage("lifecycle", "--server-mode: a name is empty, or there are more than %d",
                              EXEMPT_NAMES_MOST);
    default:
        return start_option(&cycle->start, option, argv);
    }
}

int cmd_lifecycle(int argc, char **argv) {
    static const struct option options[] = {START_OPTIONS,
                                            {"test", required_argument, NULL, OPTION_TEST},
                                            {"repeat", required_argument, NULL, OPTION_REPEAT},
                                            {"observe", required_argument, NULL, OPTION_OBSERVE},
                                            {"strict", no_argument, NULL, OPTION_STRICT},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"untracked", no_argument, NULL, OPTION_UNTRACKED},
                                            {"server-mode", optional_argument, NULL, OPTION_SERVER_MODE},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct cycle cycle = {.start = {.subcommand = "lifecycle"}};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_lifecycle_help();
        int code = cmd_lifecycle_take_option(&cycle, option, argv);
        if (code != EXIT_FINE) return code;
    }
    if (argc - optind != 1) return complain_usage("lifecycle", "one SCENARIO is needed");
    cycle.path = argv[optind];
    int code = cmd_lifecycle_prepare(&cycle);
    if (code == EXIT_FINE) code = cmd_lifecycle_execute(&cycle);
    remove_ledgers(&cycle);
    free((char *)cycle.exempt.folder);
    scenario_clear(&cycle.scenario);
    return code;
}
