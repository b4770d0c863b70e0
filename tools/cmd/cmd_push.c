/* cmd_push.c — memstow push: sends profiles of running processes to a server that keeps profiles over time. */
#include "tools/base/complain.h"
#include "tools/base/duration.h"
#include "tools/base/list.h"
#include "tools/base/text.h"
#include "tools/base/whole_file.h"
#include "tools/cmd/commands.h"
#include "tools/net/https.h"
#include "tools/proc/process.h"
#include "tools/push/delivery.h"
#include "tools/push/moment.h"
#include "tools/subject/live.h"
#include "tools/subject/tracked.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LABELS_MOST = 24, OWN_LABELS_MOST = 16, CREDENTIALS_MOST = 1024 };

struct push {
    bool all, to_given;
    pid_t pid;
    uint64_t every_ns; /* between two profiles; 0: one profile is sent, and the command ends */
    const char *service, *bearer, *basic;
    struct body_label own[OWN_LABELS_MOST]; /* the labels of --label */
    size_t own_count;
    struct delivery delivery;
    struct moment *moments;
    size_t count, capacity;
    int failed; /* the exit code for a process that could not be read; 0: all could be read */
};

static volatile sig_atomic_t over;

static int cmd_push_help(void) {
    puts("usage: memstow push --to=pyroscope|parca URL PID|--all [--every=60s]\n"
         "                    [--service=NAME] [--label=NAME=VALUE]...\n"
         "                    [--bearer=FILE | --basic=FILE] [--cacert=FILE]\n"
         "\n"
         "Sends profiles of running processes to a server that keeps them: what is live\n"
         "now, and what was allocated since the last profile, by call stack, model, node\n"
         "and run. The processes are not paused, and do nothing for it.\n"
         "\n"
         "  --to=SERVER         pyroscope or parca, which is at URL\n"
         "  --all               all processes that memstow tracks and that you may look at\n"
         "  --every=TIME        send a profile at once, and then after each TIME, until\n"
         "                      the process ends (without --every: one profile)\n"
         "  --service=NAME      label service_name (default: the process's name)\n"
         "  --label=NAME=VALUE  one more label\n"
         "  --bearer=FILE       send the token in FILE\n"
         "  --basic=FILE        send USER:PASSWORD in FILE\n"
         "  --cacert=FILE       trust the certificates in FILE; https needs libcurl\n"
         "\n"
         "Exit code: 0 fine, 2 wrong usage, 3 no such process, not tracked, or the server\n"
         "refuses a profile (with --every, a server that is down is asked again).");
    return complain_finish(EXIT_FINE);
}

static void push_end(int number) {
    (void)number;
    over = 1;
}

/* Handles the signals that end the command. Without SA_RESTART, a signal also ends a pause. */
static void push_listen(void) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = push_end};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaction(ends[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- the profile of one process */

/* Sets a label. It replaces an earlier label of the same name, because servers refuse two labels of one name. */
static void label_set(struct body_label *labels, size_t *count, const char *name, const char *value) {
    size_t at = 0;
    while (at < *count && strcmp(labels[at].name, name) != 0) at++;
    labels[at] = (struct body_label){name, value};
    if (at == *count) ++*count;
}

static int push_moment(struct push *push, struct moment *moment) {
    struct body_label labels[LABELS_MOST];
    struct body body;
    char host[256] = "", pid[16];
    size_t count = 0;
    int code = moment_take(moment);
    if (code != EXIT_FINE) return code;
    gethostname(host, sizeof host - 1);
    snprintf(pid, sizeof pid, "%d", moment->pid);
    label_set(labels, &count, "__name__", "memory");
    /* allocated amounts are differences already, so Pyroscope must not subtract them again */
    if (push->delivery.form == BODY_PYROSCOPE) label_set(labels, &count, "__delta__", "false");
    label_set(labels, &count, "service_name", push->service ? push->service : moment->name);
    label_set(labels, &count, "pod", host);
    label_set(labels, &count, "process", moment->name);
    label_set(labels, &count, "pid", pid);
    for (size_t i = 0; i < push->own_count; i++) label_set(labels, &count, push->own[i].name, push->own[i].value);
    int result = body_write(&body, push->delivery.form, labels, count, moment->profile, moment->length);
    free(moment->profile);
    moment->profile = NULL;
    if (result == 0)
        delivery_add(&push->delivery, body);
    else
        complain("not enough memory");
    return result == 0 ? EXIT_FINE : EXIT_UNREADABLE;
}

/* ---- choosing processes, and taking a profile of each */

static bool push_knows(const struct push *push, pid_t pid) {
    for (size_t i = 0; i < push->count; i++)
        if (push->moments[i].pid == pid) return true;
    return false;
}

static bool push_add(struct push *push, pid_t pid) {
    if (push_knows(push, pid)) return true;
    if (!LIST_GROW(push->moments, push->count, push->capacity)) return false;
    push->moments[push->count++] = (struct moment){.pid = pid};
    return true;
}

static void push_forget_ended(struct push *push) {
    for (size_t i = push->count; i-- > 0;) {
        if (!process_is_over(push->moments[i].pid)) continue;
        moment_clear(&push->moments[i]);
        push->moments[i] = push->moments[--push->count];
    }
}

/* Adds processes that are new since the last round, and forgets those that have ended. */
static int push_find(struct push *push) {
    struct tracked_list list = {0};
    char error[256];
    push_forget_ended(push);
    int code = tracked_collect(&list, error, sizeof error) < 0 ? EXIT_UNREADABLE : EXIT_FINE;
    if (code != EXIT_FINE) complain("%s", error);
    for (size_t i = 0; code == EXIT_FINE && i < list.count; i++)
        if (!push_add(push, list.items[i].pid)) code = EXIT_UNREADABLE;
    free(list.items);
    return code;
}

/* Takes a profile of one process. Returns 0, or an exit code after an error message. With --all, or after an earlier
 * look at the process:
 * - The end of the process is no error.
 * - With --every, a failed look is an error only if LIVE_EXEC_LOOKS in a row have failed (live.h). */
static int push_take_one(struct push *push, struct moment *moment) {
    bool may_end = push->all || moment->looked_ns;
    if (may_end && process_is_over(moment->pid)) return EXIT_FINE;
    int code = push_moment(push, moment);
    if (code == EXIT_FINE) moment->failed_looks = 0;
    if (code == EXIT_FINE || !may_end) return code;
    bool may_return = push->every_ns && ++moment->failed_looks < LIVE_EXEC_LOOKS;
    return may_return || process_is_over(moment->pid) ? EXIT_FINE : code;
}

/* Takes and sends a profile of each process, one after the other. If a process cannot be read, push->failed is set, and
 * the other processes still have their turn. Once the server is down, no more profiles are taken. Returns 0, or an exit
 * code after an error message if the server refuses a profile or, without --every, cannot be reached. */
static int push_round(struct push *push) {
    int code = EXIT_FINE;
    if (push->all) push->failed = push_find(push);
    for (size_t i = 0; code == EXIT_FINE && i < push->count && delivery_is_due(&push->delivery); i++) {
        int taken = push_take_one(push, &push->moments[i]);
        if (taken != EXIT_FINE) push->failed = taken;
        code = push->every_ns ? delivery_send(&push->delivery) : delivery_end(&push->delivery);
    }
    return code;
}

/* ---- sending profiles once, or again and again */

static void push_wait(uint64_t until) {
    uint64_t now = duration_now(), left = until > now ? until - now : 0;
    if (left > SECOND_NS) left = SECOND_NS; /* so that the end of a process is seen soon */
    struct timespec pause = {.tv_sec = (time_t)(left / SECOND_NS), .tv_nsec = (long)(left % SECOND_NS)};
    nanosleep(&pause, NULL);
}

static bool push_is_over(const struct push *push) {
    const struct moment *first = push->moments;
    return over || (!push->all && first->looked_ns && process_is_over(first->pid));
}

/* Sends profiles again and again, until the command is to end. While the server is down, no profile is taken; the next
 * profile then has all memory that was allocated since the previous profile. */
static int push_repeat(struct push *push) {
    uint64_t next = duration_now();
    int code = EXIT_FINE;
    while (code == EXIT_FINE && !push_is_over(push)) {
        if (delivery_is_due(&push->delivery)) code = delivery_send(&push->delivery);
        if (code == EXIT_FINE && delivery_is_due(&push->delivery) && duration_now() >= next) {
            code = push_round(push);
            while (next <= duration_now()) next += push->every_ns;
            if (!push->all && code == EXIT_FINE) code = push->failed;
        }
        if (code == EXIT_FINE && !push_is_over(push))
            push_wait(push->delivery.pause_ns ? push->delivery.again_ns : next);
    }
    return code == EXIT_FINE ? delivery_end(&push->delivery) : code;
}

static int push_once(struct push *push) {
    int code = push_round(push);
    return code == EXIT_FINE ? push->failed : code;
}

static int push_run(struct push *push) {
    push_listen();
    if (!push->all && !push_add(push, push->pid)) return EXIT_UNREADABLE;
    int code = push->every_ns ? push_repeat(push) : push_once(push);
    for (size_t i = 0; i < push->count; i++) moment_clear(&push->moments[i]);
    free(push->moments);
    return complain_finish(code);
}

/* ---- the arguments of memstow push */

static bool is_label(const char *text, size_t length) {
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    return length && strchr(first, *text) &&
           strspn(text, "0123456789"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") >= length;
}

static int label_take(struct push *push, char *word) {
    char *equals = strchr(word, '=');
    if (!equals || !is_label(word, (size_t)(equals - word)))
        return complain_usage("push", "--label=%s: not NAME=VALUE", TEXT_SAFE(word));
    if (push->own_count == OWN_LABELS_MOST) return complain_usage("push", "at most %d labels", OWN_LABELS_MOST);
    *equals = 0;
    push->own[push->own_count++] = (struct body_label){word, equals + 1};
    return 0;
}

static int server_take(struct push *push, const char *word) {
    push->to_given = true;
    push->delivery.form = strcmp(word, "parca") == 0 ? BODY_PARCA : BODY_PYROSCOPE;
    if (push->delivery.form == BODY_PARCA || strcmp(word, "pyroscope") == 0) return 0;
    return complain_usage("push", "--to=%s: neither pyroscope nor parca", TEXT_SAFE(word));
}

/* Reads the one line of a file. No error message quotes the line, because it is secret. */
static int credentials_read(const char *path, char *line, size_t size) {
    struct whole_file file;
    if (whole_file_read(&file, path, 1) < 0) {
        complain("%s: %s", TEXT_SAFE(path), file.why);
        return EXIT_UNREADABLE;
    }
    size_t length = strcspn(file.text, "\r\n");
    bool fits = length && length < size && file.text[length + strspn(file.text + length, "\r\n")] == 0;
    for (size_t i = 0; i < length; i++) fits &= file.text[i] >= ' ' && file.text[i] <= '~';
    if (fits) snprintf(line, size, "%.*s", (int)length, file.text);
    free(file.text);
    if (!fits) complain("%s: it must have one line of at most %zu letters", TEXT_SAFE(path), size - 1);
    return fits ? 0 : EXIT_UNREADABLE;
}

static int credentials_take(struct push *push) {
    char line[CREDENTIALS_MOST], letters[TEXT_BASE64(CREDENTIALS_MOST) + 1] = "";
    const char *path = push->bearer ? push->bearer : push->basic;
    int code = path ? credentials_read(path, line, sizeof line) : 0;
    if (!path || code) return code;
    if (push->basic) text_base64(letters, line, strlen(line));
    snprintf(push->delivery.headers, sizeof push->delivery.headers, "Authorization: %s %s\r\n",
             push->basic ? "Basic" : "Bearer", push->basic ? letters : line);
    if (!push->delivery.url.secure) complain("the credentials go over http, where others can read them");
    return 0;
}

/* Takes one option, as getopt_long has returned it. Returns 0, or an exit code after an error message. */
static int cmd_push_take_option(struct push *push, int option, char **argv) {
    switch (option) {
    case 'a':
        push->all = true;
        return 0;
    case 't':
        return server_take(push, optarg);
    case 'e':
        if (duration_parse(optarg, &push->every_ns) && push->every_ns) return 0;
        return complain_usage("push", "--every=%s: not a time, such as 60s", TEXT_SAFE(optarg));
    case 's':
        push->service = optarg;
        return 0;
    case 'l':
        return label_take(push, optarg);
    case 'b':
        push->bearer = optarg;
        return 0;
    case 'u':
        push->basic = optarg;
        return 0;
    case 'c':
        push->delivery.authorities = optarg;
        return 0;
    default:
        return complain_option("push", option, argv);
    }
}

static int words_take(struct push *push, char **words, int count) {
    if (!push->to_given) return complain_usage("push", "--to=pyroscope or --to=parca is needed");
    if (push->all ? count != 1 : count != 2) return complain_usage("push", "a URL is needed, and one PID or --all");
    if (!url_parse(&push->delivery.url, words[0]))
        return complain_usage("push", "%s: not a URL, such as http://127.0.0.1:4040", TEXT_SAFE(words[0]));
    if (!push->all && !(push->pid = process_parse(words[1])))
        return complain_usage("push", "%s: not a PID", TEXT_SAFE(words[1]));
    if (push->bearer && push->basic) return complain_usage("push", "--bearer and --basic exclude each other");
    if (push->delivery.url.secure && !https_is_there()) {
        complain("https needs libcurl (libcurl.so.4), which is not installed");
        return EXIT_UNREADABLE;
    }
    return credentials_take(push);
}

int cmd_push(int argc, char **argv) {
    static const struct option options[] = {
        {"all", no_argument, NULL, 'a'},         {"to", required_argument, NULL, 't'},
        {"every", required_argument, NULL, 'e'}, {"service", required_argument, NULL, 's'},
        {"label", required_argument, NULL, 'l'}, {"bearer", required_argument, NULL, 'b'},
        {"basic", required_argument, NULL, 'u'}, {"cacert", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    static struct push push;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_push_help();
        int code = cmd_push_take_option(&push, option, argv);
        if (code) return code;
    }
    int code = words_take(&push, argv + optind, argc - optind);
    return code ? code : push_run(&push);
}
