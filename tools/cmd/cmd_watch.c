/* cmd_watch.c — memstow watch: runs a program as `run` does, and reports everything that is left of it after its end.
 * It follows the whole process tree as subreaper, and looks from outside only. It passes signals on to the program, and
 * sends signals of its own only with --end. If memstow is killed, the program goes on undisturbed. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/base/duration.h"
#include "tools/watch/leftovers.h"
#include "tools/watch/observe.h"
#include "tools/proc/process.h"
#include "tools/launch/start.h"
#include "tools/views/status.h"
#include "tools/base/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPTION_GRACE = START_OTHERS, OPTION_STRICT, OPTION_END, OPTION_QUIET, OPTION_PID, OPTION_SERVER_MODE };
enum { GRACE_S = 60 };
/* MARK_AFTER and TELL_AFTER count from the beginning of a wait. A wait begins when the program ends, when it is asked
 * to end, or when a main thread ends. At MARK_AFTER the ledgers of the processes are read, and growth is measured from
 * then on. A process that ends earlier needs no such reading. Processes that are left are reported after TELL_AFTER. */
#define MARK_AFTER (SECOND_NS / 2)
#define TELL_AFTER (5 * SECOND_NS)

struct watch {
    struct start start;
    struct launch launch;
    struct observe observe;
    struct status status;
    struct exempt exempt;
    bool exempts;
    uint64_t grace_ns;
    bool strict, end, quiet, shown;
    /* What the present wait has done. marked: began to measure growth. told: made the first report. told_late: made the
     * last report. said: printed a report. */
    bool marked, told, told_late, said;
    /* when the present wait began; 0: no wait */
    uint64_t since_ns;
    pid_t pid;       /* pid of --pid; 0: a command is run */
    bool of_command; /* an option was given that only a command can have */
    size_t left;
};

static int cmd_watch_help(void) {
    printf("usage: memstow watch [OPTION...] [--] CMD [ARG...]\n"
           "       memstow watch --pid=PID [--grace=TIME]\n"
           "\n"
           "Runs CMD as 'memstow run' does, and shows what is left of it after its end:\n"
           "processes, their memory and where it grows, threads and what they wait in, open\n"
           "files, sockets, shared memory, temporary files. It also shows a process whose\n"
           "main thread has ended while other threads run on.\n"
           "\n"
           "  --grace=TIME            look for TIME after CMD has ended or was asked to end\n"
           "                          (default 60s), or until nothing is left\n"
           "  --strict                exit with 1 when something is left\n"
           "  --end                   end the processes that are left: SIGTERM, and SIGKILL\n"
           "                          after 5 seconds\n"
           "%s"
           "  --server-mode[=NAME,...]\n"
           "                          do not end or count processes of these names, those\n"
           "                          that the program registered to be kept, and what\n"
           "                          they started\n"
           "  --quiet                 no status line and no summary; only what is left\n"
           "  --pid=PID               in place of CMD: describe a running process and its\n"
           "                          descendants, with their growth within 5 seconds, or\n"
           "                          within --grace if that is shorter\n"
           "\n"
           "Exit code: that of CMD, as for 'memstow run'; with --strict 1 if that is 0 and\n"
           "something is left; 2 wrong usage; 3 there is no process PID.\n",
           start_help);
    return complain_finish(EXIT_FINE);
}

static struct text since_text(const struct watch *watch) { return text_duration(duration_now() - watch->since_ns); }

static const char *cmd_watch_program(const struct watch *watch) { return text_base_name(watch->start.argv[0]); }

/* Begins a new wait. None of its reports has been made yet. */
static void begin_waiting(struct watch *watch, uint64_t since_ns) {
    watch->since_ns = since_ns;
    watch->marked = watch->told = watch->told_late = watch->said = false;
}

/* Called while nobody has asked the program to end: begins a wait for a process whose main thread has ended while other
 * threads run on. If there is no such process any more, the wait is over, and nothing is reported. */
static void wait_for_lingerer(struct watch *watch) {
    const struct member *member = observe_lingerer(&watch->observe);
    uint64_t since_ns = member ? member->done_ns : 0;
    if (since_ns != watch->since_ns) begin_waiting(watch, since_ns);
}

/* Prints why the present wait began. */
static void print_reason(const struct watch *watch) {
    const struct member *member = observe_lingerer(&watch->observe);
    if (watch->launch.ended || watch->observe.asked_ns)
        fprintf(stderr, "%s %s", text_fit(cmd_watch_program(watch), 40).s,
                watch->launch.ended ? "ended" : "was asked to end");
    else
        fprintf(stderr, "the main thread of %s, pid %d, came to its end", text_fit(member->name, 31).s,
                (int)member->pid);
}

static void watch_tell(struct watch *watch) {
    struct family *family = &watch->observe.family;
    if (!family->here) return; /* the last look found no process */
    watch->said = true;
    if (watch->shown) status_end(&watch->status);
    fprintf(stderr, "memstow: %s after ", since_text(watch).s);
    print_reason(watch);
    fprintf(stderr, ", %zu process%s still there\n", family->here, family->here == 1 ? " is" : "es are");
    leftovers_print(stderr, family);
    if (!watch->told_late) family_mark(family, true);
}

/* Does what is due in the present wait: begins to measure growth, makes the first report, makes the last report. */
static void go_on(struct watch *watch) {
    uint64_t waited = duration_now() - watch->since_ns;
    uint64_t tell_after = TELL_AFTER < watch->grace_ns ? TELL_AFTER : watch->grace_ns;
    if (!watch->marked && waited >= (MARK_AFTER < tell_after ? MARK_AFTER : 0)) {
        watch->marked = true;
        family_mark(&watch->observe.family, true);
    }
    if (!watch->told && waited >= tell_after) {
        watch->told = true;
        watch->told_late = waited >= watch->grace_ns;
        watch_tell(watch);
    }
    if (watch->told && !watch->told_late && waited >= watch->grace_ns) {
        watch->told_late = true;
        watch_tell(watch);
    }
}

static bool is_request(int signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/* Begins a wait when a signal asks the program to end, and when the program has ended. Returns false if the watch is
 * over: nothing is left of the program, or such a signal comes after the program's end. */
static bool watch_note(struct watch *watch, int signal, bool *had_ended) {
    struct observe *observe = &watch->observe;
    if (is_request(signal) && *had_ended) return false;
    if (is_request(signal) && !observe->asked_ns) {
        observe_asked(observe);
        begin_waiting(watch, observe->asked_ns);
    }
    if (watch->launch.ended && !*had_ended) {
        *had_ended = true;
        begin_waiting(watch, observe->ended_ns);
    }
    return !observe_is_over(observe);
}

/* Goes on with the present wait, if there is one. Returns false if the time after the program's end is up. */
static bool watch_wait(struct watch *watch, bool had_ended) {
    bool is_ending = had_ended || watch->observe.asked_ns;
    if (!is_ending) wait_for_lingerer(watch);
    if (watch->since_ns) go_on(watch);
    if (!watch->told_late || !is_ending) return true;
    if (!had_ended && watch->end) observe_end_all(&watch->observe, stderr);
    return !had_ended;
}

/* Follows the program's processes until none is left, the time is up, or the user interrupts the wait. */
static void watch_follow(struct watch *watch) {
    struct observe *observe = &watch->observe;
    bool had_ended = false, goes_on = !observe_is_over(observe);
    while (goes_on) {
        int signal = observe_step(observe, SECOND_NS / 2);
        if (watch->shown && !watch->launch.ended && !observe->asked_ns) status_tick(&watch->status);
        goes_on = watch_note(watch, signal, &had_ended) && watch_wait(watch, had_ended) && !observe_is_over(observe);
    }
}

static void watch_settle(struct watch *watch) {
    struct observe *observe = &watch->observe;
    observe_look(observe);
    bool unknown = observe->blind && !observe_is_over(observe);
    watch->left = observe->family.here + unknown;
    if (unknown) fprintf(stderr, "memstow: something is left, but /proc cannot be read to say what it is\n");
    if (observe->family.here && !watch->told_late) watch_tell(watch);
    if (observe->family.here && watch->end) observe_end_all(observe, stderr);
    traces_settle(&observe->traces, &observe->family);
    watch->left += observe->traces.left + observe->traces.missed;
    if (observe->traces.left || observe->traces.missed) {
        fprintf(stderr, "memstow: %s left behind in the system:\n", text_fit(cmd_watch_program(watch), 40).s);
        leftovers_print_traces(stderr, &observe->traces);
    }
    const char *nothing = observe->family.stays ? "nothing else" : "nothing";
    if (observe->family.stays) fputs("memstow: ", stderr);
    leftovers_print_exempt(stderr, &observe->family);
    if (!watch->left && watch->said)
        fprintf(stderr, "memstow: %s is left, %s after %s ended\n", nothing, since_text(watch).s,
                text_fit(cmd_watch_program(watch), 40).s);
    else if (!watch->left && !watch->quiet)
        fprintf(stderr, "memstow: %s is left\n", nothing);
}

static int cmd_watch_execute(struct watch *watch) {
    int code = start_launch(&watch->start, &watch->launch);
    if (code != EXIT_FINE) return code;
    watch->shown = !watch->quiet && isatty(STDERR_FILENO);
    observe_begin(&watch->observe, &watch->launch, watch->start.argv, watch->exempts ? &watch->exempt : NULL);
    status_begin(&watch->status, watch->launch.pid);
    watch_follow(watch);
    status_end(&watch->status);
    start_sum_up(&watch->start, &watch->launch, watch->quiet);
    watch_settle(watch);
    observe_end(&watch->observe);
    code = launch_exit_code(&watch->launch);
    return code == EXIT_FINE && watch->strict && watch->left ? EXIT_OVER : code;
}

/* --- one look at a running process (--pid) --- */

static int look_now(struct family *family, uint64_t between_ns) {
    struct timespec pause = {(time_t)(between_ns / SECOND_NS), (long)(between_ns % SECOND_NS)};
    if (family_look(family) < 0 || !family->here) return -1;
    family_mark(family, true);
    nanosleep(&pause, NULL);
    return family_look(family);
}

static int tell_now(const struct watch *watch) {
    struct family family;
    family_adopt(); /* children that this process had before its exec do not belong to the family */
    family_begin(&family, watch->pid, NULL);
    int result = look_now(&family, TELL_AFTER < watch->grace_ns ? TELL_AFTER : watch->grace_ns);
    if (result < 0)
        complain("no such process, or /proc cannot be read: %d", (int)watch->pid);
    else if (family.here)
        leftovers_print(stdout, &family);
    else
        printf("pid %d has ended meanwhile\n", (int)watch->pid);
    family_end(&family);
    return result < 0 ? EXIT_UNREADABLE : complain_finish(EXIT_FINE);
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_watch_take_option(struct watch *watch, int option, char **argv) {
    watch->of_command |= option != OPTION_GRACE && option != OPTION_PID;
    switch (option) {
    case OPTION_PID:
        if ((watch->pid = process_parse(optarg))) return 0;
        return complain_usage("watch", "--pid=%s: not a PID", TEXT_SAFE(optarg));
    case OPTION_GRACE:
        if (duration_parse(optarg, &watch->grace_ns)) return 0;
        return complain_usage("watch", "--grace=%s: not a time like 60s, 500ms or 2m, a day at most",
                              TEXT_SAFE(optarg));
    case OPTION_STRICT:
        watch->strict = true;
        return 0;
    case OPTION_END:
        watch->end = true;
        return 0;
    case OPTION_QUIET:
        watch->quiet = true;
        return 0;
    case OPTION_SERVER_MODE:
        watch->exempts = true;
        if (exempt_take(&watch->exempt, optarg)) return 0;
        return complain_usage("watch", "--server-mode: a name is empty, or there are more than %d", EXEMPT_NAMES_MOST);
    default:
        return start_option(&watch->start, option, argv);
    }
}

int cmd_watch(int argc, char **argv) {
    static const struct option options[] = {START_OPTIONS,
                                            {"grace", required_argument, NULL, OPTION_GRACE},
                                            {"strict", no_argument, NULL, OPTION_STRICT},
                                            {"end", no_argument, NULL, OPTION_END},
                                            {"quiet", no_argument, NULL, OPTION_QUIET},
                                            {"server-mode", optional_argument, NULL, OPTION_SERVER_MODE},
                                            {"pid", required_argument, NULL, OPTION_PID},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct watch watch = {
        .start = {.subcommand = "watch"}, .launch = {.adopts = true}, .grace_ns = GRACE_S * SECOND_NS};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "+:ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_watch_help();
        int code = cmd_watch_take_option(&watch, option, argv);
        if (code != EXIT_FINE) return code;
    }
    if (watch.pid && (watch.of_command || optind < argc))
        return complain_usage("watch", "--pid goes with --grace only");
    if (!watch.pid && optind == argc) return complain_usage("watch", "no command given");
    if (watch.pid) return tell_now(&watch);
    int code = start_prepare(&watch.start, argv + optind);
    if (code != EXIT_FINE) return code;
    if (!family_adopt()) complain("processes that cut the link to their parent cannot be followed here");
    return cmd_watch_execute(&watch);
}
