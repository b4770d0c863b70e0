/* lifecycle.c — see lifecycle.h. */
#include "tools/lifecycle/lifecycle.h"
#include "tools/base/complain.h"
#include "tools/lifecycle/drive.h"
#include "tools/base/duration.h"
#include "tools/reader/last_word.h"
#include "tools/watch/leftovers.h"
#include "tools/watch/observe.h"
#include "tools/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINE_NS (10 * SECOND_NS)
#define SLOW_NS (30 * SECOND_NS)
#define TELL_NS (5 * SECOND_NS)
#define MARK_NS (SECOND_NS / 2)
#define SETTLE_NS FINE_NS
enum { TAIL = 1500 };

static const struct {
    const char *name;
    enum phase phases[3];
    size_t count;
} tests[LIFECYCLE_TESTS] = {
    {"start and close", {0}, 0},
    {"load and close", {PHASE_LOAD}, 1},
    {"queue and close", {PHASE_QUEUE, PHASE_BEHIND}, 2},
    {"run to completion and close", {PHASE_QUEUE, PHASE_FINISH}, 2},
    {"cancel and close", {PHASE_QUEUE, PHASE_CANCEL}, 2},
    {"start a child and close", {PHASE_CHILD}, 1},
};

const char *lifecycle_name(unsigned test) { return tests[test - 1].name; }

const char *lifecycle_lacks(const struct scenario *scenario, unsigned test) {
    for (size_t i = 0; i < tests[test - 1].count; i++) {
        enum phase phase = tests[test - 1].phases[i];
        if (phase != PHASE_BEHIND && !scenario_has(scenario, phase)) return scenario_phase_name(phase);
    }
    return NULL;
}

/* --- starting the program --- */

/* Runs in the child before the exec: sets its input, output, group, environment and folder. */
static void prepare_child(void *context) {
    const struct drive *drive = context;
    const struct scenario *scenario = drive->scenario;
    dup2(drive->input >= 0 ? drive->child_input : open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(drive->output, STDOUT_FILENO);
    dup2(drive->output, STDERR_FILENO);
    setpgid(0, 0);
    for (size_t i = 0; i < scenario->set_count; i++) {
        char *pair = drive_expand(drive, scenario->sets[i]);
        if (pair) putenv(pair);
    }
    char *folder = scenario->folder ? drive_expand(drive, scenario->folder) : NULL;
    if (folder && chdir(folder) < 0) {
        dprintf(STDERR_FILENO, "%s: %s\n", folder, strerror(errno));
        _exit(127);
    }
}

/* The command for the shell, with "exec", so that the shell becomes the program. */
static char *command_of(const struct drive *drive) {
    char *program = drive_expand(drive, drive->scenario->program), *command = NULL;
    if (program && asprintf(&command, "exec %s", program) < 0) command = NULL;
    free(program);
    return command;
}

static int lifecycle_launch(struct start *start, struct launch *launch_, struct drive *drive, char **argv) {
    if (!start) {
        int error = launch_start(launch_, argv, prepare_child, drive);
        if (error) complain("/bin/sh: %s", strerror(error));
        return error ? START_NOT_EXECUTABLE : EXIT_FINE;
    }
    start->also = prepare_child;
    start->also_context = drive;
    int code = start_prepare(start, argv);
    return code == EXIT_FINE ? start_launch(start, launch_) : code;
}

/* --- the verdict on a life --- */

static void lifecycle_judge(struct life *life, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void lifecycle_judge(struct life *life, enum verdict verdict, const char *format, ...) {
    va_list arguments;
    if (verdict > life->verdict) life->verdict = verdict;
    if (life->reason_count == LIFECYCLE_REASONS) return;
    va_start(arguments, format);
    vsnprintf(life->reasons[life->reason_count++], sizeof life->reasons[0], format, arguments);
    va_end(arguments);
}

static void judge_growth(struct life *life) {
    struct thresholds standard = thresholds_standard();
    const struct limit *passed;
    struct growth growth = {.bytes = (int64_t)life->growth_bytes, .before = life->settled_bytes};
    enum verdict verdict = thresholds_judge(&standard, LIMIT_TOTAL, growth, &passed);
    if (verdict == VERDICT_FINE) return;
    lifecycle_judge(life, verdict, "grew by %s, measured from 10 s after the close", text_size(life->growth_bytes).s);
}

static bool is_fine_exit(const struct scenario *scenario, const struct drive *drive, int code) {
    if (code == 0 || (drive->signal && code == 128 + drive->signal)) return true;
    for (size_t i = 0; i < scenario->exit_count; i++)
        if (scenario->exits[i] == code) return true;
    return false;
}

static void judge_exit(struct life *life, const struct launch *ended, const struct drive *drive) {
    if (!ended->ended || life->exit_code < 0 || is_fine_exit(drive->scenario, drive, life->exit_code)) return;
    if (WIFSIGNALED(ended->status))
        lifecycle_judge(life, VERDICT_FAILED, "crashed: %s", last_word_signal(WTERMSIG(ended->status)).s);
    else
        lifecycle_judge(life, VERDICT_FAILED, "exited with %d, which the scenario does not name", life->exit_code);
}

static void judge_end(struct life *life, const struct scenario *scenario) {
    char time[48];
    snprintf(time, sizeof time, "%s", text_duration(life->gone_ns).s);
    if (life->left_processes)
        lifecycle_judge(life, VERDICT_FAILED, "%zu process%s left after %s", life->left_processes,
                        life->left_processes == 1 ? "" : "es", text_duration(scenario->observe_ns).s);
    else if (life->gone_ns > SLOW_NS)
        lifecycle_judge(life, VERDICT_FAILED, "took %s to close, more than 30 s", time);
    else if (life->gone_ns > FINE_NS)
        lifecycle_judge(life, VERDICT_WARNING, "took %s to close, more than 10 s", time);
    if (life->left_traces)
        lifecycle_judge(life, VERDICT_FAILED, "%zu thing%s left behind in the system", life->left_traces,
                        life->left_traces == 1 ? "" : "s");
}

/* --- one life --- */

/* Notes growth after the settling time. Growth before that time does not count, because a program may take memory while
 * it ends. */
static void note_growth(struct life *life, const struct observe *observe, uint64_t passed) {
    uint64_t now = observe->family.rss;
    life->final_bytes = now;
    if (!life->settled_bytes && passed >= SETTLE_NS) life->settled_bytes = now;
    if (life->settled_bytes && now > life->settled_bytes && now - life->settled_bytes > life->growth_bytes)
        life->growth_bytes = now - life->settled_bytes;
}

/* Whether all processes of the program are gone, except exempt ones (--server-mode). While exempt processes live on,
 * observe_is_over() is true only after several looks in a row found no other process. When the time is up, the last
 * look alone decides. */
static bool lifecycle_is_gone(const struct observe *observe, bool time_is_over) {
    const struct family *family = &observe->family;
    if (observe_is_over(observe)) return true;
    return time_is_over && observe->launch->ended && !observe->blind && !family->here && family->stays;
}

/* Watches until nothing is left, the time is up, or the user interrupts memstow. Describes in detail what is
 * still there: after five seconds, and when the time is up. Ends what is left. */
static void watch_end(struct life *life, struct observe *observe, uint64_t begun_ns, uint64_t observe_ns,
                      FILE *details) {
    bool marked = false, told = false;
    for (;;) {
        uint64_t passed = duration_now() - begun_ns;
        note_growth(life, observe, passed);
        if (lifecycle_is_gone(observe, passed >= observe_ns)) {
            life->gone_ns = observe->empty_ns > begun_ns ? observe->empty_ns - begun_ns : 0;
            return;
        }
        if (!marked && passed >= MARK_NS) {
            marked = true;
            family_mark(&observe->family, true);
        }
        if ((!told && passed >= TELL_NS) || passed >= observe_ns) {
            size_t threads = told ? 0 : leftovers_python_threads(&observe->family);
            if (threads)
                lifecycle_judge(life, VERDICT_WARNING, "%zu Python thread%s: Python waits for %s at exit", threads,
                                threads == 1 ? " is not a daemon" : "s are not daemons", threads == 1 ? "it" : "them");
            told = true;
            fprintf(details, "%s after close, still there:\n", text_duration(passed).s);
            leftovers_print(details, &observe->family);
        }
        if (passed >= observe_ns || observe->interrupted) break;
        observe_step(observe, SECOND_NS / 10);
    }
    life->gone_ns = UINT64_MAX;
    life->left_processes = observe->family.here;
    if (!life->left_processes) { /* /proc cannot be read, or the last look saw no process */
        fprintf(details, "something is left, but it is not known what it is\n");
        life->left_processes = 1;
    }
    life->exit_code = observe->launch->ended ? 0 : -1;
    observe_end_all(observe, details);
}

static int lifecycle_use(struct drive *drive, unsigned test, struct life *life, uint64_t begun_ns) {
    if (drive_phase(drive, PHASE_READY) < 0) return -1;
    life->ready_ns = duration_now() - begun_ns;
    for (size_t i = 0; i < tests[test - 1].count; i++)
        if (drive_phase(drive, tests[test - 1].phases[i]) < 0) return -1;
    return 0;
}

static void write_tail(FILE *details, int output) {
    char text[TAIL + 1];
    off_t size = lseek(output, 0, SEEK_END), from = size > TAIL ? size - TAIL : 0;
    ssize_t got = pread(output, text, TAIL, from);
    if (got <= 0) return;
    text[got] = 0;
    fputs("the last output of the program:\n", details);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        fprintf(details, "  | %s\n", text_fit(line, 150).s);
}

static void close_and_watch(struct drive *drive, struct life *life, FILE *details) {
    struct observe *observe = drive->observe;
    observe_look(observe);
    life->close_bytes = observe->family.rss;
    uint64_t closed_ns = duration_now();
    observe_asked(observe);
    if (drive_phase(drive, PHASE_CLOSE) < 0) lifecycle_judge(life, VERDICT_FAILED, "%s", drive->error);
    watch_end(life, observe, closed_ns, drive->scenario->observe_ns, details);
    if (observe->launch->ended && life->exit_code == 0) life->exit_code = launch_exit_code(observe->launch);
    traces_settle(&observe->traces, &observe->family);
    life->left_traces = observe->traces.left;
    leftovers_print_traces(details, &observe->traces);
    judge_end(life, drive->scenario);
    judge_growth(life);
    judge_exit(life, observe->launch, drive);
}

static void note_exempt(struct life *life, const struct family *family) {
    size_t size = 0;
    FILE *line = open_memstream(&life->exempt, &size);
    life->exempt_count = family->stays;
    if (!line) return;
    leftovers_print_exempt(line, family);
    fclose(line);
}

static void lifecycle_live(struct drive *drive, unsigned test, struct life *life) {
    size_t size = 0;
    struct observe *observe = drive->observe;
    FILE *details = open_memstream(&life->details, &size);
    life->own_fault = !details || lifecycle_use(drive, test, life, duration_now()) < 0;
    if (life->own_fault) {
        lifecycle_judge(life, VERDICT_FAILED, "%s", details ? drive->error : strerror(errno));
        observe_end_all(observe, NULL);
        if (observe->launch->ended) life->exit_code = launch_exit_code(observe->launch);
    } else
        close_and_watch(drive, life, details);
    note_exempt(life, &observe->family);
    life->peak_bytes = observe->family.peak_rss;
    life->processes = observe->family.most_here;
    life->threads = observe->family.most_threads;
    if (!details) return;
    if (life->verdict == VERDICT_FAILED) write_tail(details, drive->output);
    fclose(details);
}

int lifecycle_run(const struct lifecycle *lifecycle, unsigned test, struct life *life) {
    const struct scenario *scenario = lifecycle->scenario;
    struct launch launched = {.adopts = true};
    struct observe observe;
    *life = (struct life){0};
    struct drive drive = {.scenario = scenario, .here = lifecycle->here, .observe = &observe};
    drive_open(&drive);
    char *command = command_of(&drive), *argv[] = {"/bin/sh", "-c", command, NULL};
    int code = command ? lifecycle_launch(lifecycle->start, &launched, &drive, argv) : EXIT_UNREADABLE;
    if (code == EXIT_FINE) {
        observe_begin(&observe, &launched, argv, lifecycle->exempt);
        lifecycle_live(&drive, test, life);
        if (observe.interrupted) code = 128 + observe.interrupted;
        observe_end(&observe);
        launch_forget(&launched);
    }
    free(command);
    drive_close(&drive);
    return code;
}
