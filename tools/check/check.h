/* check.h — memstow check: its options, its result, and the forms of the verdict.
 * In: options; figures of the baseline and of the runs. Out: the verdict as text, JSON, JUnit's XML, annotations of
 * GitHub, Markdown or a page. Each form has a source file of its own. cmd_check.c calls the parts. */
#ifndef MEMSTOW_CHECK_H
#define MEMSTOW_CHECK_H

#include "tools/diff/gate.h"
#include "tools/diff/known.h"
#include "tools/base/text.h"

#include <stdio.h>

enum check_form { CHECK_TEXT, CHECK_JSON, CHECK_JUNIT, CHECK_GITHUB, CHECK_MARKDOWN, CHECK_FORMS };

struct check {
    const char *baseline, *suppressed_in, *comfy, *stacks, *follow, *keep; /* NULL: not given */
    char **argv;                                                           /* the program */
    uint32_t runs, warm_up, runs_done;
    size_t top;
    bool peak, update;
    bool sites; /* call sites are read from now on, because a run exceeded a limit or had a warning */
    struct thresholds thresholds;
    struct suppressions suppressions;
    struct figures before, now;
    struct gate gate;
    const char *output[CHECK_FORMS]; /* a file, "-" for standard output, NULL: not wanted */
    const char *page;  /* the file of the HTML page, which never goes to standard output; NULL: not wanted */
    char folder[4096]; /* folder of the runs' ledgers */
};

/* check_folder.c: makes check->folder, the folder for the files of all runs. Returns 0, or an exit code after an error
 * message. */
int check_folder_make(struct check *check);
void check_folder_remove(const struct check *check); /* removes check->folder, unless --keep was given */
/* Makes the folder "WHAT-n" for one run, inside check->folder. Returns 0, or an exit code after an error message. */
int check_folder_of_run(const struct check *check, const char *what, uint32_t n, char *path, size_t size);

/* check_files.c: refuses a file that cannot be written, or that would overwrite a memstow file or another file that the
 * check reads or writes. Returns 0, or an exit code after an error message. */
int check_files(const struct check *check);

/* check_launch.c: from now on, SIGINT, SIGQUIT, SIGTERM and SIGHUP are only noted when they come for the first
 * time, and check_interrupted reports them. */
void check_launch_begin(void);
/* From now on, these signals also interrupt a system call that waits, such as the opening of a pipe that nobody reads.
 */
void check_launch_end(void);
/* Whether a signal asks memstow check to end. */
bool check_is_interrupted(void);
/* Returns 0; or, after an error message, 128 plus the number of the signal that asks memstow check to end. */
int check_interrupted(void);
/* Starts the command, waits for its end, and stores its exit status in *status. If it cannot be started, prints an
 * error message that begins with `name`, and stores EXIT_PROGRAM. Returns the result of check_interrupted(). The output
 * of the command goes to standard error. */
int check_launch(char **argv, const char *name, int *status);

/* check_program.c: runs the program at most check->runs times. Without --update-baseline, stops as soon as no limit is
 * exceeded and there is no warning. Returns 0, or an exit code after an error message. */
int check_program(struct check *check);
/* check_comfy.c: runs a workflow in a ComfyUI. Returns 0, or an exit code after an error message. */
int check_comfy(struct check *check);

/* Writers of the forms. They do not trust names: a line break in a name must not end a line of the form. */
void check_text(const struct check *check, FILE *to);
void check_json(const struct check *check, FILE *to);
void check_junit(const struct check *check, FILE *to);
void check_github(const struct check *check, FILE *to);
void check_markdown(const struct check *check, FILE *to);

/* check_html.c: writes the verdict and the report of the last run as a page. Must be called while the ledgers of that
 * run exist. Returns 0, or an exit code after an error message. */
int check_html(const struct check *check);

/* check_words.c: text that the writers have in common. */
const char *check_result(const struct check *check); /* pass, warning or fail */
/* Writes a finding as a sentence: "all memory grew by 5.0 MiB and 12 blocks: over the limit of 5MiB; most of it (+4.0
 * MiB) at json_cache@libjson.so < main@prog". */
void check_sentence(const struct check *check, const struct finding *finding, char *to, size_t capacity);
/* How the floor (--pass-under) affects a finding. For a limit that is ignored: "over 10%, but below the floor of 1
 * MiB". For a warning: "above the floor of 1 MiB, within limits". */
struct text_line check_why(const struct check *check, const struct finding *finding);
/* Writes the command line of the program. */
void check_command(const struct check *check, char *to, size_t capacity);
/* Returns the first call site in the list for which two things hold: its memory grew, and it is not suppressed. If the
 * finding is an owner, only call sites of that owner count. If the finding is a total, all call sites count. NULL: no
 * call site is found, or the finding is itself a call site. */
const struct finding *check_culprit(const struct check *check, const struct finding *finding);
/* Writes the number of runs: "3 of 5 runs, after 1 to warm up". */
void check_runs(const struct check *check, char *to, size_t capacity);
/* Whether a finding is shown. All totals are shown, and all findings that are over a limit or have a warning. Another
 * owner or call site is shown if fewer than --top=N findings of its kind stand in front of it in the list. */
bool check_shown(const struct check *check, size_t index);

#endif
