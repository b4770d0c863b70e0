/* check_comfy.c — runs a workflow in a ComfyUI; see check.h. tools/python/memstow_comfy.py starts ComfyUI, sends HTTP
 * requests to it, and leaves a snapshot after each run that is not a warm-up. All snapshots are of one process.
 * Therefore a check without a baseline can compare the last runs with the first runs. */
#include "tools/check/check.h"
#include "tools/base/complain.h"
#include "tools/base/library.h"
#include "tools/symbols/tally.h"
#include "tools/base/text.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS = 20, WINDOW_MOST = 3 };

/* Finds memstow_comfy.py: where CMake or pip has installed it, or in the source tree. `command` is the path of memstow.
 * False: the file is in none of these places. */
static bool find_helper(char *path, const char *command) {
    static const char *const below[] = {"../share/memstow/python", "../lib/python3*/site-packages",
                                        "../lib/python3*/dist-packages", "../../tools/python", "../tools/python"};
    char folder[2 * PATH_MAX], pattern[2 * PATH_MAX + 64], *end = folder;
    bool found = false;
    for (const char *at = command; at < strrchr(command, '/'); at++) { /* wildcards in the folder's name are escaped */
        if (strchr("*?[\\", *at)) *end++ = '\\';
        *end++ = *at;
    }
    for (size_t i = 0; i < sizeof below / sizeof *below && !found; i++) {
        glob_t paths;
        snprintf(pattern, sizeof pattern, "%.*s/%s/memstow_comfy.py", (int)(end - folder), folder, below[i]);
        found = glob(pattern, 0, NULL, &paths) == 0 && realpath(paths.gl_pathv[0], path);
        globfree(&paths);
    }
    return found;
}

static int wait_for_helper(char **argv) {
    int status = 0, code = check_launch(argv, "python3", &status);
    if (code != EXIT_FINE) return code;
    return status == 0 || status == EXIT_USAGE ? status : EXIT_PROGRAM;
}

static int run_workflow(const struct check *check) {
    char command[PATH_MAX] = "", helper[PATH_MAX], runs[16], warm_up[16];
    size_t words = 0, count = 0;
    if (!library_command(command, sizeof command) || !find_helper(helper, command)) {
        complain("memstow_comfy.py was not found: it is installed with memstow, in share/memstow/python");
        return EXIT_USAGE;
    }
    snprintf(runs, sizeof runs, "%u", check->runs);
    snprintf(warm_up, sizeof warm_up, "%u", check->warm_up);
    while (check->argv[words]) words++;
    char **argv = calloc(words + OPTIONS, sizeof *argv);
    if (!argv) return EXIT_UNREADABLE;
    const char *const fixed[] = {"python3",    helper,
                                 "--memstow",  command,
                                 "--folder",   check->folder,
                                 "--workflow", check->comfy,
                                 "--runs",     runs,
                                 "--warm-up",  warm_up,
                                 "--stacks",   check->stacks ? check->stacks : "full",
                                 "--follow",   check->follow ? check->follow : "all",
                                 "--"};
    for (; count < sizeof fixed / sizeof *fixed; count++) argv[count] = (char *)fixed[count];
    memcpy(argv + count, check->argv, words * sizeof *argv);
    int code = wait_for_helper(argv);
    free(argv);
    return code;
}

/* Adds the snapshots `first` to `last` to the figures. Each snapshot is one run. */
static int runs_take(const struct check *check, struct figures *figures, uint32_t first, uint32_t last, int what) {
    char path[5000];
    int code = EXIT_FINE;
    for (uint32_t n = first; n <= last && code == EXIT_FINE; n++) {
        snprintf(path, sizeof path, "%s/run-%04u.mst", check->folder, n);
        code = tally_file(figures, path, what);
        figures_end_run(figures);
    }
    return code;
}

/* Compares the last third of the runs with the baseline or, if there is no baseline, with the first third of the runs.
 * A third is at least one run here, and at most three runs. */
static int check_comfy_compare(struct check *check, int what) {
    uint32_t window = check->runs / 3 < WINDOW_MOST ? check->runs / 3 : WINDOW_MOST;
    if (!window) window = 1;
    int code = check->baseline ? EXIT_FINE : runs_take(check, &check->before, 1, window, what);
    if (code == EXIT_FINE) code = runs_take(check, &check->now, check->runs - window + 1, check->runs, what);
    check->gate.owners_only = what == TALLY_OWNERS;
    if (code == EXIT_FINE && gate_judge(&check->gate) < 0) {
        complain("not enough memory");
        return EXIT_UNREADABLE;
    }
    return code;
}

int check_comfy(struct check *check) {
    bool sites = check->suppressions.count || limits_have(&check->thresholds.limits, LIMIT_SITE);
    int code = run_workflow(check);
    if (code != EXIT_FINE) return code;
    check->runs_done = check->runs;
    if (check->update) return runs_take(check, &check->now, 1, check->runs, TALLY_ALL);
    code = check_comfy_compare(check, sites ? TALLY_ALL : TALLY_OWNERS);
    if (code != EXIT_FINE || sites || (!check->gate.over && !check->gate.warnings)) return code;
    if (!check->baseline) figures_again(&check->before);
    figures_again(&check->now);
    return check_comfy_compare(check, TALLY_ALL); /* now with call sites, so that the verdict can name them */
}
