/* cmd_metrics.c — memstow metrics: figures of running processes, for Prometheus and programs that read its formats. */
#include "tools/base/complain.h"
#include "tools/base/new_file.h"
#include "tools/base/text.h"
#include "tools/base/top.h"
#include "tools/cmd/commands.h"
#include "tools/export/metrics.h"
#include "tools/subject/subject.h"
#include "tools/proc/process.h"
#include "tools/reader/nvml_image.h"
#include "tools/subject/tracked.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 20 };
static const char FILE_NAME[] = "memstow.prom";

struct choice {
    bool all, leaks;
    enum metrics_form form; /* the form on standard output */
    const char *folder;     /* the folder of node_exporter's textfile collector; NULL: standard output */
    size_t models;
};

static int cmd_metrics_help(void) {
    puts("usage: memstow metrics PID|--all [--models=N] [--leaks]\n"
         "                       [--format=FORMAT | --textfile=DIR]\n"
         "\n"
         "Writes figures of running processes as OpenMetrics, for Prometheus and similar\n"
         "programs: live and resident memory, models, devices, runs. The processes are\n"
         "not paused, and do nothing for it.\n"
         "\n"
         "  --all           all processes that memstow tracks and that you may look at\n"
         "  --models=N      name the N largest models of a process, and sum the others as\n"
         "                  \"(others)\" (default 20)\n"
         "  --leaks         also count leaks, as 'memstow leaks' finds them without asking\n"
         "                  the program. This reads whole ledgers; other figures need\n"
         "                  only a part\n"
         "  --format=FORMAT openmetrics (default), or prometheus: Prometheus's text format\n"
         "  --textfile=DIR  write DIR/memstow.prom, whole or not at all, in Prometheus's\n"
         "                  text format: for node_exporter's textfile collector\n"
         "\n"
         "Exit code: 0 fine (also when no process is tracked), 2 wrong usage,\n"
         "3 no such process, not tracked, or output that cannot be written.");
    return complain_finish(EXIT_FINE);
}

/* Finds the leaks of a process, and adds their figures. The call stacks of `subject` must have been read. Returns 0, or
 * -1: no memory. */
static int leaks_count(struct metrics *metrics, const struct subject *subject) {
    static struct leak_sites sites;
    static struct leaks leaks;
    leak_sites_begin(&sites);
    int result = leak_sites_read(&sites, &subject->image);
    if (result == 0 && (result = leaks_find(&leaks, &sites, &subject->image, LEAKS_FLOOR)) == 0) {
        struct symbols *symbols = symbols_begin(&subject->image, subject->pid);
        result = leaks_group(&leaks, symbols) < 0 ? -1 : metrics_add_leaks(metrics, &subject->image, &leaks);
        symbols_end(symbols);
        leaks_clear(&leaks);
    }
    leak_sites_end(&sites);
    return result;
}

/* Adds one process. Returns 0, or an exit code after an error message. */
static int process_add(struct metrics *metrics, const struct choice *choice, pid_t pid) {
    static struct subject subject;
    int code = choice->leaks ? subject_open_pid(&subject, pid, true) : subject_open_figures(&subject, pid);
    if (code != EXIT_FINE) return code;
    int result = nvml_image_ask(&subject.image, pid) < 0 ? -1 : metrics_add(metrics, &subject.image, pid);
    if (result == 0 && choice->leaks) result = leaks_count(metrics, &subject);
    subject_close(&subject);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* Adds all processes. A process that ends meanwhile is left out. */
static int all_add(struct metrics *metrics, const struct choice *choice) {
    struct tracked_list list = {0};
    char error[256];
    int code = tracked_collect(&list, error, sizeof error) < 0 ? EXIT_UNREADABLE : EXIT_FINE;
    if (code != EXIT_FINE) complain("%s", error);
    for (size_t i = 0; code == EXIT_FINE && i < list.count; i++) {
        pid_t pid = list.items[i].pid;
        if (process_is_over(pid)) continue;
        code = process_add(metrics, choice, pid);
        if (code != EXIT_FINE && process_is_over(pid)) code = EXIT_FINE;
    }
    free(list.items);
    return code;
}

static int textfile_write(const struct metrics *metrics, const char *folder) {
    struct new_file file;
    char path[4096];
    int error = (size_t)snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME) < sizeof path ? 0 : ENAMETOOLONG;
    if (!error) error = new_file_begin(&file, path, true);
    if (!error) {
        metrics_write(metrics, METRICS_PROMETHEUS, file.stream);
        error = new_file_end(&file, true);
    }
    if (error) complain("%s/%s: %s", TEXT_SAFE(folder), FILE_NAME, new_file_why(error));
    return error ? EXIT_UNREADABLE : EXIT_FINE;
}

static int metrics_show(const struct choice *choice, pid_t pid) {
    struct metrics metrics = {.models = choice->models};
    int code = pid ? process_add(&metrics, choice, pid) : all_add(&metrics, choice);
    if (code == EXIT_FINE && choice->folder) code = textfile_write(&metrics, choice->folder);
    if (code == EXIT_FINE && !choice->folder) metrics_write(&metrics, choice->form, stdout);
    metrics_end(&metrics);
    return complain_finish(code);
}

static bool form_parse(const char *word, enum metrics_form *form) {
    *form = strcmp(word, "prometheus") == 0 ? METRICS_PROMETHEUS : METRICS_OPENMETRICS;
    return *form == METRICS_PROMETHEUS || strcmp(word, "openmetrics") == 0;
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_metrics_take_option(struct choice *choice, int option, char **argv) {
    switch (option) {
    case 'a':
        choice->all = true;
        return 0;
    case 'l':
        choice->leaks = true;
        return 0;
    case 't':
        choice->folder = optarg;
        return 0;
    case 'f':
        if (form_parse(optarg, &choice->form)) return 0;
        return complain_usage("metrics", "--format=%s: neither openmetrics nor prometheus", TEXT_SAFE(optarg));
    case 'm':
        if (top_parse(optarg, &choice->models)) return 0;
        return complain_usage("metrics", "--models=%s: not a number", TEXT_SAFE(optarg));
    default:
        return complain_option("metrics", option, argv);
    }
}

static int check_words(const struct choice *choice, int count) {
    if (choice->folder && !*choice->folder) return complain_usage("metrics", "--textfile= needs a folder");
    if (choice->folder && choice->form) return complain_usage("metrics", "--format and --textfile exclude each other");
    if (choice->all ? count != 0 : count != 1) return complain_usage("metrics", "one PID is needed, or --all");
    return 0;
}

int cmd_metrics(int argc, char **argv) {
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"models", required_argument, NULL, 'm'},
                                            {"leaks", no_argument, NULL, 'l'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"textfile", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct choice choice = {.models = MODELS};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_metrics_help();
        int code = cmd_metrics_take_option(&choice, option, argv);
        if (code) return code;
    }
    int code = check_words(&choice, argc - optind);
    if (code) return code;
    pid_t pid = choice.all ? 0 : process_parse(argv[optind]);
    if (!choice.all && !pid) return complain_usage("metrics", "%s: not a PID", TEXT_SAFE(argv[optind]));
    return metrics_show(&choice, pid);
}
