/* drive.c — see drive.h. */
#include "tools/lifecycle/drive.h"
#include "tools/base/duration.h"
#include "tools/launch/file_limit.h"
#include "tools/base/text.h"
#include "tools/base/whole_file.h"
#include "preload/shared/jsontext.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MIB = 64, READ_SIZE = 1 << 16, ASK_S = 10 };
#define TURN_NS (SECOND_NS / 20)

static int step_fail(struct drive *drive, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int step_fail(struct drive *drive, const char *format, ...) {
    va_list arguments;
    const struct step *step = drive->step;
    int used =
        snprintf(drive->error, sizeof drive->error, "line %zu, %s: %s%s%.100s: ", step->line,
                 scenario_phase_name(step->phase), scenario_verb_name(step->verb), *step->text ? " " : "", step->text);
    va_start(arguments, format);
    vsnprintf(drive->error + used, sizeof drive->error - (size_t)used, format, arguments);
    va_end(arguments);
    return -1;
}

char *drive_expand(const struct drive *drive, const char *text) {
    char *out = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&out, &size);
    if (!memory) return NULL;
    for (const char *brace; (brace = strchr(text, '{')); text = brace) {
        fwrite(text, 1, (size_t)(brace - text), memory);
        bool is_port = strncmp(brace, "{port}", 6) == 0, is_here = strncmp(brace, "{here}", 6) == 0;
        if (is_port) fprintf(memory, "%u", drive->port);
        if (is_here) fputs(drive->here, memory);
        if (!is_port && !is_here) fputc('{', memory);
        brace += is_port || is_here ? 6 : 1;
    }
    fputs(text, memory);
    return fclose(memory) == 0 ? out : NULL;
}

/* --- opening and closing the input, the output and the port --- */

static uint16_t free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
                 getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    if (fd >= 0) close(fd);
    return found ? ntohs(address.sin_port) : 0;
}

static bool wants_input(const struct scenario *scenario) {
    for (size_t i = 0; i < scenario->step_count; i++)
        if (scenario->steps[i].verb == VERB_INPUT) return true;
    return false;
}

void drive_open(struct drive *drive) {
    int ends[2] = {-1, -1};
    drive->port = drive->scenario->port ? (uint16_t)drive->scenario->port : free_port();
    drive->output = memfd_create("output", MFD_CLOEXEC);
    fcntl(drive->output, F_SETFL, O_APPEND);
    /* A socket, because MSG_NOSIGNAL is for sockets only: a write to a pipe without a reader raises SIGPIPE. */
    if (wants_input(drive->scenario)) socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    drive->child_input = ends[0];
    drive->input = ends[1];
}

void drive_close(struct drive *drive) {
    free(drive->answer.body);
    close(drive->output);
    if (drive->input >= 0) close(drive->input), close(drive->child_input);
}

/* Reads a file that the scenario names. Returns 0, or -1 with error set. */
static int read_file(struct drive *drive, struct whole_file *file, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : drive->here, name[0] == '/' ? "" : "/", name);
    if (whole_file_read(file, path, FILE_MIB) == 0) return 0;
    return step_fail(drive, "%s cannot be read: %s", TEXT_SAFE(name), file->why);
}

/* --- requests to the program's server --- */

/* Sends a request. The answer stays in drive->answer until the next request. Returns the status of the answer; 0: there
 * was none. */
static int drive_ask(struct drive *drive, const char *method, const char *path, const char *body, size_t length) {
    uint64_t within = drive->step->within_ns;
    if (strcmp(method, "GET") == 0 && within > ASK_S * SECOND_NS) within = ASK_S * SECOND_NS;
    free(drive->answer.body);
    http_ask(&drive->answer, drive->port, method, path, body, length, within);
    return drive->answer.status;
}

/* Finds a member of the JSON object in ComfyUI's last answer. False: it has none, or the status was not 200. */
static bool answer_member(const struct drive *drive, const char *name, struct jsontext *value) {
    struct jsontext whole = {drive->answer.body, drive->answer.length};
    return drive->answer.status == 200 && jsontext_is_object(whole.at, whole.length) &&
           jsontext_member(whole, name, value);
}

/* Whether the list `name` in the last answer has an item: 1 or 0; -1: there is no such list. */
static int has_items(const struct drive *drive, const char *name) {
    struct jsontext list, first;
    size_t next = 0;
    if (!answer_member(drive, name, &list) || *list.at != '[') return -1;
    return jsontext_next(list, &next, NULL, &first);
}

/* --- conditions to wait for. Each returns 1: it is true; 0: not yet; -1: it will never be --- */

/* Looks for the step's text in the program's output. The output is read, not mapped, because the program may truncate
 * it at any time. */
static int look_says(struct drive *drive) {
    size_t length = strlen(drive->text), capacity = length + READ_SIZE, kept = 0;
    char *part = malloc(capacity);
    bool found = false;
    ssize_t got;
    for (off_t at = 0; part && !found && (got = pread(drive->output, part + kept, capacity - kept, at)) > 0;
         at += got) {
        kept += (size_t)got;
        found = memmem(part, kept, drive->text, length) != NULL;
        size_t rest = kept < length ? kept : length - 1; /* the end of this part, in which the text may begin */
        memmove(part, part + kept - rest, rest);
        kept = rest;
    }
    free(part);
    return found;
}

static int look_file(struct drive *drive) { return access(drive->text, F_OK) == 0; }

static int look_http(struct drive *drive) {
    int status = drive_ask(drive, "GET", strchr(drive->text, '/'), NULL, 0);
    return status >= 200 && status < 300;
}

static int look_running(struct drive *drive) {
    drive_ask(drive, "GET", "/queue", NULL, 0);
    return has_items(drive, "queue_running") > 0;
}

static int look_waiting(struct drive *drive) {
    drive_ask(drive, "GET", "/queue", NULL, 0);
    int running = has_items(drive, "queue_running"), pending = has_items(drive, "queue_pending");
    if (running == 0 && pending == 0) return step_fail(drive, "nothing runs that a workflow could wait behind");
    return running >= 0 && pending > 0;
}

static int look_finished(struct drive *drive) {
    struct jsontext run, status, word;
    char path[160], outcome[32] = "";
    if (!*drive->prompt_id) return step_fail(drive, "no prompt was sent before");
    snprintf(path, sizeof path, "/history/%s", drive->prompt_id);
    drive_ask(drive, "GET", path, NULL, 0);
    if (!answer_member(drive, drive->prompt_id, &run)) return 0;
    if (jsontext_member(run, "status", &status) && *status.at == '{' && jsontext_member(status, "status_str", &word))
        jsontext_string(word, outcome, sizeof outcome);
    return strcmp(outcome, "success") == 0 ? 1 : step_fail(drive, "the workflow ended with '%s'", outcome);
}

/* Returns 0 if the present step may go on waiting; -1 with error set if the user has interrupted memstow, or if the
 * program has ended. Steps of PHASE_CLOSE may wait on after the program's end. */
static int check_wait(struct drive *drive) {
    const struct launch *launch = drive->observe->launch;
    if (drive->observe->interrupted) return step_fail(drive, "interrupted");
    if (!launch->ended || drive->step->phase == PHASE_CLOSE) return 0;
    return step_fail(drive, "the program had ended with exit status %d", launch_exit_code(launch));
}

static int drive_wait_for(struct drive *drive, int (*look)(struct drive *drive)) {
    uint64_t end = duration_now() + drive->step->within_ns;
    for (;;) {
        int found = look(drive);
        if (found) return found < 0 ? -1 : 0;
        if (check_wait(drive) < 0) return -1;
        if (duration_now() > end) return step_fail(drive, "not within %s", text_duration(drive->step->within_ns).s);
        observe_step(drive->observe, TURN_NS);
    }
}

/* --- actions. Each returns 0, or -1 with error set --- */

static int do_wait(struct drive *drive) {
    uint64_t length = 0, now = duration_now();
    duration_parse(drive->text, &length);
    for (uint64_t end = now + length; now < end; now = duration_now()) {
        observe_step(drive->observe, end - now < TURN_NS ? end - now : TURN_NS);
        if (check_wait(drive) < 0) return -1;
    }
    return 0;
}

static int do_http(struct drive *drive) {
    char method[16], path[2048], name[2048] = "";
    struct whole_file file = {0};
    if (strncmp(drive->text, "GET ", 4) == 0) return drive_wait_for(drive, look_http);
    if (sscanf(drive->text, "%15s %2047s %2047s", method, path, name) < 2)
        return step_fail(drive, "not METHOD /PATH [FILE]");
    if (*name && read_file(drive, &file, name) < 0) return -1;
    int status = drive_ask(drive, method, path, file.text, file.length);
    free(file.text);
    if (!status) return step_fail(drive, "no answer");
    return status < 400 ? 0 : step_fail(drive, "answered with %d", status);
}

static int do_prompt(struct drive *drive) {
    struct whole_file file;
    struct jsontext id;
    char *body = NULL;
    if (read_file(drive, &file, drive->text) < 0) return -1;
    int length = asprintf(&body, "{\"prompt\": %s}", file.text);
    free(file.text);
    if (length < 0) return step_fail(drive, "not enough memory");
    int status = drive_ask(drive, "POST", "/prompt", body, (size_t)length);
    free(body);
    if (answer_member(drive, "prompt_id", &id) && jsontext_string(id, drive->prompt_id, sizeof drive->prompt_id))
        return 0;
    const char *answer = drive->answer.body ? drive->answer.body : "";
    return step_fail(drive, "answered with %d %s", status, text_fit(answer, 150).s);
}

static int do_interrupt(struct drive *drive) {
    int status = drive_ask(drive, "POST", "/interrupt", NULL, 0);
    return status == 200 ? 0 : step_fail(drive, "answered with %d", status);
}

static int do_signal(struct drive *drive) {
    drive->signal = scenario_signal(drive->text);
    if (drive->observe->launch->ended || kill(drive->observe->launch->pid, drive->signal) < 0)
        return step_fail(drive, "the program is not there");
    return 0;
}

static int do_input(struct drive *drive) {
    struct iovec parts[] = {{(char *)drive->text, strlen(drive->text)}, {(char *)"\n", 1}};
    struct msghdr line = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(drive->input, &line, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == (ssize_t)parts[0].iov_len + 1 ? 0 : step_fail(drive, "the program does not read its input");
}

static _Noreturn void run_shell(const struct drive *drive) {
    char port[8], pid[16];
    sigset_t none;
    sigemptyset(&none);
    sigaction(SIGPIPE, &drive->observe->launch->outer_pipe_action, NULL);
    file_limit_restore();
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(port, sizeof port, "%u", drive->port);
    snprintf(pid, sizeof pid, "%d", (int)drive->observe->launch->pid);
    setenv("PORT", port, 1);
    setenv("PID", pid, 1);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(drive->output, STDOUT_FILENO);
    dup2(drive->output, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", drive->text, NULL);
    _exit(127);
}

static int do_run(struct drive *drive) {
    int status = 0;
    uint64_t end = duration_now() + drive->step->within_ns;
    pid_t pid = fork();
    if (pid == 0) run_shell(drive);
    if (pid < 0) return step_fail(drive, "%s", strerror(errno));
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (duration_now() > end) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return step_fail(drive, "the command did not end in time");
        }
        usleep(TURN_NS / 1000);
    }
    return status == 0 ? 0 : step_fail(drive, "the command failed with %d", status >> 8 & 255);
}

/* --- doing a phase's steps --- */

static int do_step(struct drive *drive) {
    static int (*const looks[VERBS])(struct drive *) = {
        [VERB_SAYS] = look_says,       [VERB_FILE] = look_file,         [VERB_RUNNING] = look_running,
        [VERB_WAITING] = look_waiting, [VERB_FINISHED] = look_finished,
    };
    static int (*const actions[VERBS])(struct drive *) = {
        [VERB_WAIT] = do_wait,           [VERB_HTTP] = do_http,     [VERB_RUN] = do_run,
        [VERB_INPUT] = do_input,         [VERB_SIGNAL] = do_signal, [VERB_PROMPT] = do_prompt,
        [VERB_INTERRUPT] = do_interrupt,
    };
    enum verb verb = drive->step->verb;
    return looks[verb] ? drive_wait_for(drive, looks[verb]) : actions[verb](drive);
}

static int take_step(struct drive *drive, const struct step *step) {
    char *text = drive_expand(drive, step->text);
    drive->step = step;
    drive->text = text;
    int result = text ? do_step(drive) : step_fail(drive, "not enough memory");
    free(text);
    return result;
}

int drive_phase(struct drive *drive, enum phase phase) {
    static const struct step moment = {.verb = VERB_WAIT, .phase = PHASE_READY, .text = "1s"};
    static const struct step usual = {.verb = VERB_SIGNAL, .phase = PHASE_CLOSE, .text = "TERM"};
    const struct scenario *scenario = drive->scenario;
    if (!scenario_has(scenario, phase) && (phase == PHASE_READY || phase == PHASE_CLOSE))
        return take_step(drive, phase == PHASE_READY ? &moment : &usual);
    for (size_t i = 0; i < scenario->step_count; i++)
        if (scenario->steps[i].phase == phase && take_step(drive, &scenario->steps[i]) < 0) return -1;
    return 0;
}
