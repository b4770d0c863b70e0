/* cmd_control.c — memstow stow, restore, release and trigger: asks a running process to put memory away, to bring it
 * back, or to stop a move, and waits for the answer. */
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/cmd/commands.h"
#include "tools/proc/control_client.h"
#include "tools/proc/process.h"
#include "tools/views/roster.h"
#include "tools/subject/subject.h"
#include "tools/base/text.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 200, BEGINNING_SECONDS = 5, SILENCE_SECONDS = 30, LATE_SILENCE_SECONDS = 2, ATTEMPTS = 5 };
/* A single Ctrl-C may arrive as two signals, from the terminal and from a supervisor. Signals this close together count
 * as one. */
#define AT_ONCE_SECONDS 0.5

struct verb {
    enum wire_type type;
    const char *name, *doing, *done, *does; /* does: text for the help */
};
static const struct verb verbs[] = {
    {WIRE_TRIGGER, "trigger", "applying policies", "gave back",
     "Applies the policies of a process now: each owner is kept, stowed or freed."},
    {WIRE_STOW, "stow", "stowing", "stowed",
     "Moves an owner's memory out to disk. Addresses stay, and use brings it back."},
    {WIRE_RESTORE, "restore", "restoring", "restored", "Brings an owner's stowed memory back."},
    {WIRE_RELEASE, "release", "releasing", "released",
     "Returns an owner's unused memory to the system: free memory, and clean pages of\n"
     "files. Nothing is lost."},
};

/* A request of this command, and how far the process has come with it. */
struct order {
    const struct verb *verb;
    pid_t pid;
    const char *meant, *reason; /* OWNER as the user gave it, and the text of --reason; NULL: none */
    bool ends;                  /* --cancel: end the present move, even if this command did not request it */
    double timeout;             /* seconds; 0: none */
    char path[4096];            /* path of the socket */
    char subject[320];          /* for messages: the owner or process of the request */
    uint32_t owner;
    struct wire_message last; /* the message that came last from the process */
    /* times in seconds: when the request began, when a message came last, when a cancellation was sent last */
    double begun, heard, cancelled;
    int cancels;    /* how often the request was cancelled */
    int interrupts; /* number of interrupts that were dealt with */
    bool late;      /* the request was cancelled because of --timeout */
};

static volatile sig_atomic_t interrupts;

static void count_interrupt(int number) {
    (void)number;
    interrupts++;
}

static double cmd_control_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool can_be_ended(const struct verb *verb) { return verb->type == WIRE_STOW || verb->type == WIRE_RESTORE; }

static int cmd_control_help(const struct verb *verb) {
    bool trigger = verb->type == WIRE_TRIGGER;
    printf("usage: memstow %s PID %s [--timeout=SECONDS]\n", verb->name, trigger ? "[--reason=TEXT]" : "OWNER");
    if (can_be_ended(verb)) printf("       memstow %s PID [OWNER] --cancel [--timeout=SECONDS]\n", verb->name);
    printf("\n"
           "%s\n"
           "The process does so at once, unless the program answers such requests itself:\n"
           "ComfyUI does so between two runs. Ctrl-C withdraws the request, or ends its move\n"
           "early; nothing is lost.\n"
           "\n",
           verb->does);
    if (trigger)
        puts("  --reason=TEXT       note TEXT in the trace of decisions");
    else
        puts("OWNER is an id, or the unique name of a model, custom or state owner. 'memstow\n"
             "owners PID' lists them.\n");
    if (can_be_ended(verb))
        puts("  --cancel            end the move that is under way, of OWNER or of any owner,\n"
             "                      also if the program or a trigger began it");
    printf("  --timeout=SECONDS   wait no longer than this (default: until it is done)\n"
           "\n"
           "Exit code: 0 done; 1 not done: %srefused, failed, cancelled or not\n"
           "in time; 2 wrong usage; 3 no such process, not tracked, or it does not answer.\n",
           trigger ? "" : "no such owner, ");
    return complain_finish(EXIT_FINE);
}

/* --- showing the progress of a request --- */

static void show_progress(const struct order *order) {
    const char *state = order->cancels || order->ends      ? "cancelling"
                        : order->last.type == WIRE_WAITING ? "waiting for the program to take the request"
                                                           : order->verb->doing;
    struct text moved = text_size(order->last.number > 0 ? (uint64_t)order->last.number : 0), whole = {""};
    if (*order->last.text) whole = text_size(strtoull(order->last.text, NULL, 10));
    if (order->last.number <= 0)
        progress_say("%s: %s", order->subject, state);
    else
        progress_say("%s: %s, %s%s%s", order->subject, state, moved.s, *whole.s ? " of " : "", whole.s);
}

/* --- telling the outcome of a request --- */

static int not_done(struct order *order, const char *why) {
    complain("%s: %s", order->subject, why);
    return EXIT_OVER;
}

static int no_answer(struct order *order, const char *why) {
    complain("process %d does not answer: %s", (int)order->pid, why);
    return EXIT_UNREADABLE;
}

static const char *error_text(int64_t error) {
    if (error == -ECANCELED) return "cancelled";
    if (error == -ESHUTDOWN) return "the process ends, or goes into a sandbox";
    return error > -4096 ? strerror((int)-error) : "unknown error";
}

/* Tells the outcome of --cancel. Memory that was moved before the cancellation stays where it is. */
static int tell_ended(struct order *order) {
    int64_t number = order->last.number;
    char why[160];
    if (number == -ENOENT) {
        snprintf(why, sizeof why, "no memory of it is being %s", order->verb->done);
        return not_done(order, why);
    }
    if (number == -EPROTO) return not_done(order, "the process's memstow is too old to end a move");
    if (number < 0) {
        snprintf(why, sizeof why, "not cancelled: %s", error_text(number));
        return not_done(order, why);
    }
    printf("%s: cancelled, %s", order->subject, text_size((uint64_t)number).s);
    if (*order->last.text) printf(" of %s", text_size(strtoull(order->last.text, NULL, 10)).s);
    printf(" %s\n", order->verb->done);
    return complain_finish(EXIT_FINE);
}

static int tell_end(struct order *order) {
    char why[640];
    const char *text = order->last.text;
    int64_t number = order->last.number;
    if (order->ends) return tell_ended(order);
    if (number == -ECANCELED && order->late)
        return not_done(order, "withdrawn: the process did not begin the request in time");
    if (number < 0) {
        snprintf(why, sizeof why, "not %s: %s%s%.300s", order->meant ? order->verb->done : "done", error_text(number),
                 *text ? ": " : "", *text ? TEXT_SAFE(text) : "");
        return not_done(order, why);
    }
    printf("%s: %s %s%s%s\n", order->subject, order->verb->done, text_size((uint64_t)number).s, *text ? ": " : "",
           *text ? TEXT_SAFE(text) : "");
    return complain_finish(EXIT_FINE);
}

/* --- waiting for the outcome --- */

static void cmd_control_cancel(struct order *order, int fd) {
    struct wire_message message = {.type = WIRE_CANCEL};
    control_send(fd, &message);
    order->cancels++;
    order->cancelled = cmd_control_now();
}

/* Whether the process has been silent for too long: for SILENCE_SECONDS or, if the request was cancelled because of
 * --timeout, for LATE_SILENCE_SECONDS since the cancellation. */
static bool is_silent(const struct order *order) {
    double since = cmd_control_now() - order->heard;
    return since > SILENCE_SECONDS ||
           (order->late && since > LATE_SILENCE_SECONDS && cmd_control_now() - order->cancelled > LATE_SILENCE_SECONDS);
}

/* Cancels the request after an interrupt, or if the time is up before the process has begun to work on it. Returns an
 * exit code if the command need not wait any longer, otherwise -1. */
static int look_at_time(struct order *order, int fd) {
    bool begun = order->last.type == WIRE_WORKING;
    bool interrupted =
        interrupts > order->interrupts && (!order->cancels || cmd_control_now() - order->cancelled > AT_ONCE_SECONDS);
    bool late = order->timeout > 0 && cmd_control_now() - order->begun > order->timeout;
    order->interrupts = interrupts;
    if (order->ends && (interrupted || late)) return not_done(order, "the move was told to end, and has not ended yet");
    if (interrupted) {
        if (order->cancels) return not_done(order, "not waited for any longer: the request goes on in the process");
        cmd_control_cancel(order, fd);
    }
    if (late && !order->cancels) {
        if (begun) return not_done(order, "not finished in time: the request goes on in the process");
        order->late = true;
        cmd_control_cancel(order, fd);
    }
    return is_silent(order) ? no_answer(order, "is it stopped?") : -1;
}

static int order_follow(struct order *order, int fd) {
    order->heard = cmd_control_now();
    for (;;) {
        int result = control_receive(fd, &order->last, LOOK_MS);
        if (result < 0) return result == -ECONNRESET ? -1 : no_answer(order, strerror(-result));
        if (result > 0) order->heard = cmd_control_now();
        if (result > 0 && order->last.type == WIRE_DONE) return tell_end(order);
        int code = look_at_time(order, fd);
        if (code >= 0) return code;
        show_progress(order);
    }
}

/* Whether the process is ending, now or within a second. A process that is being killed closes its socket a moment
 * before it counts as ending. */
static bool ends_now(pid_t pid) {
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < 100; i++) {
        if (process_is_over(pid)) return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Sends the request, and waits for its outcome. Returns an exit code, or -1 if the connection was closed before an
 * answer came. That may happen when many clients connect at the same moment. */
static int ask_once(struct order *order) {
    struct wire_message message = {.type = order->verb->type, .owner = order->owner};
    if (order->ends) message.type = WIRE_END, message.number = order->verb->type;
    char error[256];
    int fd = control_connect(order->pid, order->path, error, sizeof error), code = -1;
    if (fd < 0) return no_answer(order, ends_now(order->pid) ? "it has ended" : error);
    snprintf(message.text, sizeof message.text, "%s", order->reason ? order->reason : "");
    if (control_send(fd, &message) == 0) code = order_follow(order, fd);
    close(fd);
    return code;
}

static int order_ask(struct order *order) {
    struct sigaction action = {.sa_handler = count_interrupt};
    sigaction(SIGINT, &action, NULL);
    order->begun = cmd_control_now();
    progress_begin();
    for (int i = 0; i < ATTEMPTS; i++) {
        int code = ask_once(order);
        if (code >= 0) return code;
        if (order->last.type) return no_answer(order, "it has ended");
    }
    return no_answer(order, "it closed the connection");
}

/* --- the process to ask --- */

static bool note_of_control(const struct image *image, char *why, size_t size) {
    static const char begin[] = "no control socket: ";
    for (size_t i = 0; i < image->fact_count; i++) {
        const char *note = image_string(image, image->facts[i].string);
        if (image->facts[i].key != SNAP_FACT_NOTE || strncmp(note, begin, sizeof begin - 1) != 0) continue;
        snprintf(why, size, "%.300s", TEXT_SAFE(note));
        return true;
    }
    return false;
}

/* Whether the process is perhaps opening its socket now. A thread of the process opens it after the first owner was
 * registered. */
static bool socket_may_come(const struct image *image) {
    char why[320];
    return image->owner_count && !*image_fact(image, SNAP_FACT_CONTROL) && !note_of_control(image, why, sizeof why);
}

/* Opens the ledger of the process. If the path of the socket is still missing, opens the ledger again and again, for at
 * most BEGINNING_SECONDS. Returns 0, or an exit code. */
static int open_with_socket(struct subject *subject, pid_t pid) {
    const struct timespec pause = {.tv_nsec = 10000000};
    double begun = cmd_control_now();
    for (;;) {
        int code = subject_open_pid(subject, pid, false);
        if (code != EXIT_FINE || !socket_may_come(&subject->image) || cmd_control_now() - begun > BEGINNING_SECONDS)
            return code;
        subject_close(subject);
        nanosleep(&pause, NULL);
    }
}

static int find_socket(struct order *order, const struct image *image) {
    char why[320];
    snprintf(order->path, sizeof order->path, "%s", image_fact(image, SNAP_FACT_CONTROL));
    if (order->path[0] == '/') return EXIT_FINE;
    if (!note_of_control(image, why, sizeof why))
        snprintf(why, sizeof why, "%s",
                 image->owner_count ? "it has opened no control socket" : "it has registered no owner yet");
    complain("process %d takes no requests: %s", (int)order->pid, why);
    return EXIT_UNREADABLE;
}

static int find_owner(struct order *order, const struct image *image) {
    char why[800];
    snprintf(order->subject, sizeof order->subject, "process %d", (int)order->pid);
    if (!order->meant) return EXIT_FINE;
    const struct snap_owner *owner = roster_find(image, order->meant, why, sizeof why);
    if (!owner) {
        complain("process %d: %s", (int)order->pid, why);
        return EXIT_OVER;
    }
    order->owner = owner->id;
    struct text_line words;
    image_owner_words(image, owner->id, words.s, sizeof words.s);
    snprintf(order->subject, sizeof order->subject, "%s %u '%.256s'", roster_kind(owner), owner->id,
             TEXT_SAFE(words.s));
    return EXIT_FINE;
}

static int carry_out(struct order *order) {
    static struct subject subject;
    int code = open_with_socket(&subject, order->pid);
    if (code != EXIT_FINE) return code;
    code = find_socket(order, &subject.image);
    if (code == EXIT_FINE) code = find_owner(order, &subject.image);
    subject_close(&subject);
    return code == EXIT_FINE ? order_ask(order) : code;
}

/* --- the arguments of the command --- */

static bool valid_timeout(const char *value, double *seconds) {
    char *end;
    if (*value < '0' || *value > '9') return false;
    *seconds = strtod(value, &end);
    return !*end && isfinite(*seconds) && *seconds > 0;
}

static int cmd_control_take_option(struct order *order, int option, char **argv) {
    const char *verb = order->verb->name;
    if (option == 'r' && order->verb->type != WIRE_TRIGGER) return complain_usage(verb, "unknown option --reason");
    if (option == 'r') {
        order->reason = optarg;
        size_t length = strlen(optarg);
        return length <= WIRE_TEXT && wire_text(optarg, length) == length
                   ? 0
                   : complain_usage(verb, "--reason: not a line of text of at most %d bytes", WIRE_TEXT);
    }
    if (option == 'c' && !can_be_ended(order->verb)) return complain_usage(verb, "unknown option --cancel");
    if (option == 'c') {
        order->ends = true;
        return 0;
    }
    if (option != 't') return complain_option(verb, option, argv);
    return valid_timeout(optarg, &order->timeout)
               ? 0
               : complain_usage(verb, "--timeout=%s: not a number of seconds above 0", TEXT_SAFE(optarg));
}

static int cmd_control_run(const struct verb *verb, int argc, char **argv) {
    static const struct option options[] = {{"reason", required_argument, NULL, 'r'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"cancel", no_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct order order;
    bool trigger = verb->type == WIRE_TRIGGER;
    order.verb = verb;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_control_help(verb);
        int code = cmd_control_take_option(&order, option, argv);
        if (code) return code;
    }
    int given = argc - optind;
    if (given != (trigger ? 1 : 2) && !(order.ends && given == 1))
        return complain_usage(verb->name, trigger      ? "one PID is needed"
                                          : order.ends ? "a PID is needed, and at most one OWNER"
                                                       : "a PID and an OWNER are needed");
    order.pid = process_parse(argv[optind]);
    if (!order.pid) return complain_usage(verb->name, "%s is not a PID", TEXT_SAFE(argv[optind]));
    order.meant = given == 2 ? argv[optind + 1] : NULL;
    return carry_out(&order);
}

int cmd_trigger(int argc, char **argv) { return cmd_control_run(&verbs[0], argc, argv); }
int cmd_stow(int argc, char **argv) { return cmd_control_run(&verbs[1], argc, argv); }
int cmd_restore(int argc, char **argv) { return cmd_control_run(&verbs[2], argc, argv); }
int cmd_release(int argc, char **argv) { return cmd_control_run(&verbs[3], argc, argv); }
