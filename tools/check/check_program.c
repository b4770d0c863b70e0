/* check_program.c — runs a program under memstow; see check.h. Each run is a `memstow run` with a folder of its own.
 * The program's output goes to standard error, because standard output is for the verdict. The figures of a run are the
 * sum of all processes in it. */
#include "tools/check/check.h"
#include "tools/base/complain.h"
#include "tools/base/library.h"
#include "tools/reader/last_word.h"
#include "tools/symbols/tally.h"
#include "tools/base/text.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPTIONS = 10 };

/* The command line of one run. The caller frees the array; the strings in it are not copies. */
static char **command_line(const struct check *check, char *output, char *stacks, char *follow) {
    static char self[PATH_MAX];
    size_t words = 0, count = 0;
    while (check->argv[words]) words++;
    char **argv = calloc(words + OPTIONS, sizeof *argv);
    if (!argv) return NULL;
    argv[count++] = library_command(self, sizeof self) ? self : "memstow";
    argv[count++] = "run";
    argv[count++] = "--quiet";
    argv[count++] = "-o";
    argv[count++] = output;
    if (stacks) argv[count++] = stacks;
    if (follow) argv[count++] = follow;
    argv[count++] = "--";
    memcpy(argv + count, check->argv, words * sizeof *argv);
    return argv;
}

/* Makes the option "--name=value", which the caller frees; NULL if `value` is NULL. */
static char *check_program_option(const char *name, const char *value) {
    char *text = NULL;
    if (value && asprintf(&text, "--%s=%s", name, value) < 0) text = NULL;
    return text;
}

/* As a shell does, `memstow run` exits with 128 + the number of the signal that killed the program. */
static struct text_line meaning_of(int status) {
    struct text_line text = {""};
    if (status > 128 && status < 128 + NSIG)
        snprintf(text.s, sizeof text.s, ", as after %s", last_word_signal(status - 128).s);
    return text;
}

static int run_once(const struct check *check, const char *folder, const char *what, uint32_t n) {
    char output[5000];
    snprintf(output, sizeof output, "%s/run.mst", folder);
    char *stacks = check_program_option("stacks", check->stacks),
         *follow = check_program_option("follow", check->follow);
    char **argv = command_line(check, output, stacks, follow);
    int status = EXIT_PROGRAM, code = argv ? check_launch(argv, "memstow run", &status) : EXIT_FINE;
    free(argv);
    free(stacks);
    free(follow);
    if (code != EXIT_FINE || status == 0) return code;
    complain("%s %u exited with %d%s: a program that fails by itself is not checked", what, n, status,
             meaning_of(status).s);
    return EXIT_PROGRAM;
}

/* Adds all ledgers of a run to the figures. */
static int take_folder(struct figures *figures, const char *folder, int what) {
    char path[5300];
    int code = EXIT_FINE;
    size_t files = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && code == EXIT_FINE && (entry = readdir(directory));) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode)) continue;
        code = tally_file(figures, path, what);
        files++;
    }
    if (directory) closedir(directory);
    if (code != EXIT_FINE || files) return code;
    complain("the program wrote no ledger: it cannot be tracked");
    return EXIT_UNREADABLE;
}

/* Whether the verdict needs call sites. If not, they are read only when something is over a limit or has a warning. */
static bool sites_matter(const struct check *check) {
    return check->update || check->suppressions.count || limits_have(&check->thresholds.limits, LIMIT_SITE);
}

static int check_program_judge(struct check *check, bool *fine) {
    int result = gate_judge(&check->gate);
    *fine = !check->gate.over && !check->gate.warnings;
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* Adds a run to the figures and, without --update-baseline, judges them. *fine: no limit was exceeded, and there is no
 * warning. Call sites are read only if they are needed, or if the judgement without them is not fine. In the second
 * case the run is read and judged again, but counts once. */
static int check_program_measure(struct check *check, const char *folder, bool *fine) {
    bool sites = sites_matter(check) || check->sites;
    int code = take_folder(&check->now, folder, sites ? TALLY_ALL : TALLY_OWNERS);
    if (code != EXIT_FINE) return code;
    figures_end_run(&check->now);
    if (check->update) return EXIT_FINE;
    check->gate.owners_only = !sites;
    code = check_program_judge(check, fine);
    if (code != EXIT_FINE || *fine || sites) return code;
    figures_again(&check->now);
    check->sites = true;
    check->gate.owners_only = false;
    code = take_folder(&check->now, folder, TALLY_ALL);
    figures_end_run(&check->now);
    return code == EXIT_FINE ? check_program_judge(check, fine) : code;
}

static int measured_run(struct check *check, uint32_t n, bool *fine) {
    char folder[4900];
    int code = check_folder_of_run(check, "run", n, folder, sizeof folder);
    if (code == EXIT_FINE) code = run_once(check, folder, "run", n);
    if (code == EXIT_FINE) code = check_program_measure(check, folder, fine);
    check->runs_done = n;
    return code;
}

static int warm_up(struct check *check, uint32_t n) {
    char folder[4900];
    int code = check_folder_of_run(check, "warm-up", n, folder, sizeof folder);
    return code == EXIT_FINE ? run_once(check, folder, "warm-up", n) : code;
}

int check_program(struct check *check) {
    int code = EXIT_FINE;
    bool fine = false;
    for (uint32_t n = 1; code == EXIT_FINE && n <= check->warm_up; n++) code = warm_up(check, n);
    /* once the verdict is pass, no further run is needed: another run could not change it (gate.h) */
    for (uint32_t n = 1; code == EXIT_FINE && n <= check->runs && !fine; n++) code = measured_run(check, n, &fine);
    return code;
}
