/* drive.c — see drive.h. */
#include "tools/lifecycle/drive.h"
#include "tools/base/duration.h"
#include "tools/lifecycle/http.h"
#include "preload/shared/jsontext.h"
#include "tools/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MOST = 64 << 20, READ_ROOM = 1 << 16, ASK_S = 10 };
#define TURN_NS (SECOND_NS / 20)

static int step_fail(struct drive *drive, const struct step *step, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int step_fail(struct drive *drive, const struct step *step, const char *format, ...) {
    va_list arguments;
    int used = snprintf(drive->error, sizeof drive->error, "line %zu, %s: %s%s%.100s: ", step->line,
                        phase_name(step->phase), verb_name(step->verb), *step->text ? " " : "", step->text);
    va_start(arguments, format);
    vsnprintf(drive->error + used, sizeof drive->error - (size_t)used, format, arguments);
    va_end(arguments);
    return -1;
}

char *drive_expand(const char *text, uint16_t port, const char *here) {
    char *out = NULL, number[8];
    size_t size = 0;
    FILE *memory = open_memstream(&out, &size);
    if (!memory) return NULL;
    snprintf(number, sizeof number, "%u", port);
    while (*text) {
        bool is_port = strncmp(text, "{port}", 6) == 0, is_here = strncmp(text, "{here}", 6) == 0;
        if (is_port || is_here)
            fputs(is_port ? number : here, memory);
        else
            fputc(*text, memory);
        text += is_port || is_here ? 6 : 1;
    }
    return fclose(memory) == 0 ? out : NULL;
}

/* Maps a file of the scenario's. NULL: it cannot be read. */
static char *map_file(const struct drive *drive, const char *name, size_t *length) {
    char path[4096];
    struct stat st;
    char *text = NULL;
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : drive->here, name[0] == '/' ? "" : "/", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_MOST &&
        (text = malloc((size_t)st.st_size + 1))) {
        ssize_t got = pread(fd, text, (size_t)st.st_size, 0);
        *length = got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return text;
}

/* --- conditions to wait for: 1 it is true, 0 not yet, -1 it will never be --- */

typedef int (*look_fn)(struct drive *drive, const struct step *step, const char *text);

/* The output is read, not mapped, because the program may cut it short at any time. */
static int look_says(struct drive *drive, const struct step *step, const char *text) {
    size_t length = strlen(text), room = length + READ_ROOM, kept = 0;
    char *part = malloc(room);
    bool found = false;
    ssize_t got;
    (void)step;
    for (off_t at = 0; part && !found && (got = pread(drive->output, part + kept, room - kept, at)) > 0; at += got) {
        kept += (size_t)got;
        found = memmem(part, kept, text, length) != NULL;
        size_t rest = kept < length ? kept : length - 1; /* the bytes in which the text may begin */
        memmove(part, part + kept - rest, rest);
        kept = rest;
    }
    free(part);
    return found;
}

static int look_file(struct drive *drive, const struct step *step, const char *text) {
    (void)drive, (void)step;
    return access(text, F_OK) == 0;
}

/* At most the time of the step itself. */
static uint64_t ask_ns(const struct step *step) {
    return step->within_ns < ASK_S * SECOND_NS ? step->within_ns : ASK_S * SECOND_NS;
}

static int look_http(struct drive *drive, const struct step *step, const char *text) {
    struct http_answer answer;
    http_ask(&answer, drive->port, "GET", strchr(text, '/'), NULL, 0, ask_ns(step));
    free(answer.body);
    return answer.status >= 200 && answer.status < 300;
}

/* A member of ComfyUI's answer; `answer` holds its text. */
static bool ask_member(struct drive *drive, const struct step *step, const char *path, const char *name,
                       struct http_answer *answer, struct jsontext *value) {
    http_ask(answer, drive->port, "GET", path, NULL, 0, ask_ns(step));
    return answer->status == 200 && jsontext_is_object(answer->body, answer->length) &&
           jsontext_member((struct jsontext){answer->body, answer->length}, name, value);
}

/* The state of ComfyUI's queue. False: there was no answer. */
static bool ask_queue(struct drive *drive, const struct step *step, bool *some_run, bool *some_wait) {
    struct http_answer answer;
    struct jsontext running, pending, first;
    size_t next = 0, next_too = 0;
    bool known = ask_member(drive, step, "/queue", "queue_running", &answer, &running) && *running.at == '[' &&
                 jsontext_member((struct jsontext){answer.body, answer.length}, "queue_pending", &pending) &&
                 *pending.at == '[';
    *some_run = known && jsontext_next(running, &next, NULL, &first);
    *some_wait = known && jsontext_next(pending, &next_too, NULL, &first);
    free(answer.body);
    return known;
}

static int look_running(struct drive *drive, const struct step *step, const char *text) {
    bool some_run, some_wait;
    (void)text;
    return ask_queue(drive, step, &some_run, &some_wait) && some_run;
}

static int look_waiting(struct drive *drive, const struct step *step, const char *text) {
    bool some_run, some_wait;
    (void)text;
    if (!ask_queue(drive, step, &some_run, &some_wait) || some_run || some_wait) return some_wait;
    return step_fail(drive, step, "nothing runs that a workflow could wait behind");
}

static int look_finished(struct drive *drive, const struct step *step, const char *text) {
    struct http_answer answer;
    struct jsontext run, status, word;
    char path[160], outcome[32] = "";
    (void)text;
    if (!*drive->prompt_id) return step_fail(drive, step, "no prompt was sent before");
    snprintf(path, sizeof path, "/history/%s", drive->prompt_id);
    bool there = ask_member(drive, step, path, drive->prompt_id, &answer, &run);
    if (there && jsontext_member(run, "status", &status) && *status.at == '{' &&
        jsontext_member(status, "status_str", &word))
        jsontext_string(word, outcome, sizeof outcome);
    free(answer.body);
    if (there && strcmp(outcome, "success") != 0) return step_fail(drive, step, "it ended with '%s'", outcome);
    return there;
}

/* --- actions: 0 or -1 --- */

static int do_http(struct drive *drive, const struct step *step, const char *text) {
    char method[16], path[2048], name[2048] = "";
    struct http_answer answer;
    size_t length = 0;
    if (sscanf(text, "%15s %2047s %2047s", method, path, name) < 2)
        return step_fail(drive, step, "not METHOD /PATH [FILE]");
    char *body = *name ? map_file(drive, name, &length) : NULL;
    if (*name && !body) return step_fail(drive, step, "%s cannot be read", TEXT_SAFE(name));
    http_ask(&answer, drive->port, method, path, body, length, step->within_ns);
    free(body);
    free(answer.body);
    if (!answer.status) return step_fail(drive, step, "no answer");
    return answer.status < 400 ? 0 : step_fail(drive, step, "answered with %d", answer.status);
}

static int do_prompt(struct drive *drive, const struct step *step, const char *text) {
    struct http_answer answer;
    struct jsontext id;
    size_t length = 0, size = 0;
    char *workflow = map_file(drive, text, &length), *body = NULL;
    FILE *memory = workflow ? open_memstream(&body, &size) : NULL;
    if (!memory) {
        free(workflow);
        return step_fail(drive, step, "it cannot be read");
    }
    fprintf(memory, "{\"prompt\": ");
    fwrite(workflow, 1, length, memory);
    fputc('}', memory);
    fclose(memory);
    free(workflow);
    http_ask(&answer, drive->port, "POST", "/prompt", body, size, step->within_ns);
    free(body);
    bool taken = answer.status == 200 && jsontext_is_object(answer.body, answer.length) &&
                 jsontext_member((struct jsontext){answer.body, answer.length}, "prompt_id", &id) &&
                 jsontext_string(id, drive->prompt_id, sizeof drive->prompt_id);
    char why[160];
    snprintf(why, sizeof why, "%.150s", answer.body ? answer.body : "");
    free(answer.body);
    return taken ? 0 : step_fail(drive, step, "answered with %d %s", answer.status, text_fit(why, 150).s);
}

static int do_interrupt(struct drive *drive, const struct step *step, const char *text) {
    struct http_answer answer;
    (void)text;
    http_ask(&answer, drive->port, "POST", "/interrupt", NULL, 0, step->within_ns);
    free(answer.body);
    return answer.status == 200 ? 0 : step_fail(drive, step, "answered with %d", answer.status);
}

static int do_signal(struct drive *drive, const struct step *step, const char *text) {
    drive->signal = scenario_signal(text);
    if (drive->observe->launch->ended || kill(drive->observe->launch->pid, drive->signal) < 0)
        return step_fail(drive, step, "the program is not there");
    return 0;
}

static int do_input(struct drive *drive, const struct step *step, const char *text) {
    size_t length = strlen(text);
    bool sent = send(drive->input, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length &&
                send(drive->input, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    return sent ? 0 : step_fail(drive, step, "the program does not read it");
}

static _Noreturn void run_shell(const struct drive *drive, const char *text) {
    char port[8], pid[16];
    sigset_t none;
    sigemptyset(&none);
    sigaction(SIGPIPE, &drive->observe->launch->outer_pipe_action, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(port, sizeof port, "%u", drive->port);
    snprintf(pid, sizeof pid, "%d", (int)drive->observe->launch->pid);
    setenv("PORT", port, 1);
    setenv("PID", pid, 1);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(drive->output, STDOUT_FILENO);
    dup2(drive->output, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", text, NULL);
    _exit(127);
}

static int do_run(struct drive *drive, const struct step *step, const char *text) {
    int status = 0;
    uint64_t end = duration_now() + step->within_ns;
    pid_t pid = fork();
    if (pid == 0) run_shell(drive, text);
    if (pid < 0) return step_fail(drive, step, "%s", strerror(errno));
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (duration_now() > end) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return step_fail(drive, step, "it did not end in time");
        }
        usleep(TURN_NS / 1000);
    }
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0
                                                     : step_fail(drive, step, "it failed, with %d", status >> 8 & 255);
}

/* --- steps --- */

static int ended_by_itself(struct drive *drive, const struct step *step) {
    return step_fail(drive, step, "the program had ended, with %d", launch_exit_code(drive->observe->launch));
}

static int wait_for(struct drive *drive, const struct step *step, const char *text, look_fn look) {
    uint64_t end = duration_now() + step->within_ns;
    for (;;) {
        int found = look(drive, step, text);
        if (found) return found < 0 ? -1 : 0;
        if (drive->observe->launch->ended && step->phase != PHASE_CLOSE) return ended_by_itself(drive, step);
        if (drive->observe->interrupted) return step_fail(drive, step, "interrupted");
        if (duration_now() > end) return step_fail(drive, step, "not within %s", text_duration(step->within_ns).s);
        observe_step(drive->observe, TURN_NS);
    }
}

static int do_wait(struct drive *drive, const struct step *step, const char *text) {
    uint64_t length = 0, end;
    duration_parse(text, &length);
    for (end = duration_now() + length; duration_now() < end;) {
        uint64_t left = end - duration_now();
        observe_step(drive->observe, left < TURN_NS ? left : TURN_NS);
        if (drive->observe->interrupted) return step_fail(drive, step, "interrupted");
        if (drive->observe->launch->ended && step->phase != PHASE_CLOSE) return ended_by_itself(drive, step);
    }
    return 0;
}

static int do_step(struct drive *drive, const struct step *step, const char *text) {
    switch (step->verb) {
    case VERB_WAIT:
        return do_wait(drive, step, text);
    case VERB_SAYS:
        return wait_for(drive, step, text, look_says);
    case VERB_FILE:
        return wait_for(drive, step, text, look_file);
    case VERB_HTTP:
        return strncmp(text, "GET ", 4) == 0 ? wait_for(drive, step, text, look_http) : do_http(drive, step, text);
    case VERB_RUN:
        return do_run(drive, step, text);
    case VERB_INPUT:
        return do_input(drive, step, text);
    case VERB_SIGNAL:
        return do_signal(drive, step, text);
    case VERB_PROMPT:
        return do_prompt(drive, step, text);
    case VERB_RUNNING:
        return wait_for(drive, step, text, look_running);
    case VERB_WAITING:
        return wait_for(drive, step, text, look_waiting);
    case VERB_FINISHED:
        return wait_for(drive, step, text, look_finished);
    default:
        return do_interrupt(drive, step, text);
    }
}

int drive_phase(struct drive *drive, enum phase phase) {
    static const struct step moment = {.verb = VERB_WAIT, .phase = PHASE_READY, .text = "1s"};
    static const struct step usual = {.verb = VERB_SIGNAL, .phase = PHASE_CLOSE, .text = "TERM"};
    if (!scenario_has(drive->scenario, phase) && (phase == PHASE_READY || phase == PHASE_CLOSE))
        return do_step(drive, phase == PHASE_READY ? &moment : &usual, phase == PHASE_READY ? "1s" : "TERM");
    for (size_t i = 0; i < drive->scenario->step_count; i++) {
        const struct step *step = &drive->scenario->steps[i];
        if (step->phase != phase) continue;
        char *text = drive_expand(step->text, drive->port, drive->here);
        int result = text ? do_step(drive, step, text) : step_fail(drive, step, "not enough memory");
        free(text);
        if (result < 0) return -1;
    }
    return 0;
}
