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
    bool all;
    const char *folder; /* of node_exporter's textfile collector; NULL: standard output */
    size_t models;
};

static int cmd_metrics_help(void) {
    puts("usage: memstow metrics PID|--all [--models=N] [--textfile=DIR]\n"
         "\n"
         "Figures of running processes as OpenMetrics, for Prometheus and whatever else\n"
         "reads it: live and resident memory, models, devices, runs. The processes are\n"
         "not paused, and do nothing for it.\n"
         "\n"
         "  --all           all processes that memstow tracks and that you may look at\n"
         "  --models=N      name the N largest models of a process, and sum the others as\n"
         "                  \"(others)\" (default 20)\n"
         "  --textfile=DIR  write DIR/memstow.prom, whole or not at all, in Prometheus's\n"
         "                  text format: for node_exporter's textfile collector\n"
         "\n"
         "Exit code: 0 fine (also when no process is tracked), 2 wrong usage,\n"
         "3 no such process, not tracked, or output that cannot be written.");
    return complain_finish(EXIT_FINE);
}

/* Adds one process. Returns 0, or an exit code after a complaint. */
static int process_add(struct metrics *metrics, pid_t pid) {
    static struct subject subject;
    int code = subject_open_pid(&subject, pid, true);
    if (code != EXIT_FINE) return code;
    int result = nvml_image_ask(&subject.image, pid) < 0 ? -1 : metrics_add(metrics, &subject.image);
    subject_close(&subject);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* Adds all processes. One that ends meanwhile is left out. */
static int all_add(struct metrics *metrics) {
    struct tracked_list list = {0};
    char error[256];
    int code = tracked_collect(&list, error, sizeof error) < 0 ? EXIT_UNREADABLE : EXIT_FINE;
    if (code != EXIT_FINE) complain("%s", error);
    for (size_t i = 0; code == EXIT_FINE && i < list.count; i++) {
        pid_t pid = list.items[i].pid;
        if (process_is_over(pid)) continue;
        code = process_add(metrics, pid);
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
    int code = pid ? process_add(&metrics, pid) : all_add(&metrics);
    if (code == EXIT_FINE && choice->folder) code = textfile_write(&metrics, choice->folder);
    if (code == EXIT_FINE && !choice->folder) metrics_write(&metrics, METRICS_OPENMETRICS, stdout);
    metrics_end(&metrics);
    return complain_finish(code);
}

int cmd_metrics(int argc, char **argv) {
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"models", required_argument, NULL, 'm'},
                                            {"textfile", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct choice choice = {.models = MODELS};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_metrics_help();
        if (option != 'a' && option != 'm' && option != 't') return complain_option("metrics", option, argv);
        if (option == 'a') choice.all = true;
        if (option == 't') choice.folder = optarg;
        if (option == 'm' && !top_parse(optarg, &choice.models))
            return complain_usage("metrics", "--models=%s: not a number", TEXT_SAFE(optarg));
    }
    if (choice.folder && !*choice.folder) return complain_usage("metrics", "--textfile= needs a folder");
    if (choice.all ? optind != argc : argc - optind != 1)
        return complain_usage("metrics", "one PID is needed, or --all");
    pid_t pid = choice.all ? 0 : process_parse(argv[optind]);
    if (!choice.all && !pid) return complain_usage("metrics", "%s: not a PID", TEXT_SAFE(argv[optind]));
    return metrics_show(&choice, pid);
}
