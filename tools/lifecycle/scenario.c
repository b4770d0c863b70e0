/* scenario.c — see scenario.h. */
#include "tools/lifecycle/scenario.h"
#include "tools/base/duration.h"
#include "preload/shared/jsontext.h"
#include "tools/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPEAT_MOST = 10000, STEP_PATIENCE_S = 60, READY_PATIENCE_S = 120, OBSERVE_S = 60, REPEAT = 3 };

static const char *const phases[PHASES] = {"ready", "load", "queue", "behind", "finish", "cancel", "child", "close"};

static const struct {
    const char *name;
    bool takes; /* a value is required */
} verbs[VERBS] = {{"wait", true},     {"says", true},     {"file", true},      {"http", true},
                  {"run", true},      {"input", true},    {"signal", true},    {"prompt", true},
                  {"running", false}, {"waiting", false}, {"finished", false}, {"interrupt", false}};

const char *phase_name(enum phase phase) { return phases[phase]; }

const char *verb_name(enum verb verb) { return verbs[verb].name; }

int scenario_signal(const char *name) {
    if (strncasecmp(name, "SIG", 3) == 0) name += 3;
    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcasecmp(known, name) == 0) return number;
    }
    return 0;
}

/* --- one line --- */

struct line {
    struct scenario *scenario;
    const char *name;
    char *text, *key, *value; /* parts of text, each ended by NUL */
    size_t number;
};

static int line_fault(const struct line *line, const char *at, const char *why) {
    snprintf(line->scenario->error, sizeof line->scenario->error, "%.200s:%zu:%zu: %s",
             text_fit_path(line->name, 150).s, line->number, (size_t)(at - line->text) + 1, why);
    return -1;
}

static int line_no_memory(const struct line *line) { return line_fault(line, line->text, "not enough memory"); }

static char *skip_blanks(char *text) { return text + strspn(text, " \t"); }

static void cut_end(char *text) {
    for (size_t length = strlen(text); length && strchr(" \t\r", text[length - 1]); length--) text[length - 1] = 0;
}

/* Takes "within 90s" from the end of a step. */
static int take_within(const struct line *line, char *text, uint64_t *within_ns) {
    char *last = NULL;
    for (char *found = text; (found = strstr(found, "within ")); found++)
        if (found == text || isblank((unsigned char)found[-1])) last = found;
    if (!last) return 0;
    if (!duration_parse(skip_blanks(last + 7), within_ns)) return 0; /* the text itself ends with that word */
    if (!*within_ns) return line_fault(line, last, "no time at all to wait");
    *last = 0;
    cut_end(text);
    return 0;
}

static int check_step(const struct line *line, const struct step *step, const char *at) {
    uint64_t time;
    char why[96];
    if (verbs[step->verb].takes != (step->text[0] != 0)) {
        snprintf(why, sizeof why, verbs[step->verb].takes ? "'%s' says nothing more" : "nothing may follow '%s'",
                 verbs[step->verb].name);
        return line_fault(line, at, why);
    }
    if (step->verb == VERB_WAIT && !duration_parse(step->text, &time))
        return line_fault(line, at, "not a time like 2s, 500ms or 1m");
    if (step->verb == VERB_SIGNAL && !scenario_signal(step->text)) return line_fault(line, at, "no such signal");
    if (step->verb == VERB_HTTP && !strstr(step->text, " /")) return line_fault(line, at, "not METHOD /PATH [FILE]");
    return 0;
}

static int take_step(struct line *line, enum phase phase) {
    struct scenario *scenario = line->scenario;
    struct step step = {.phase = phase, .line = line->number};
    size_t length = strcspn(line->value, " \t");
    step.within_ns = (phase == PHASE_READY ? READY_PATIENCE_S : STEP_PATIENCE_S) * SECOND_NS;
    for (step.verb = 0; step.verb < VERBS; step.verb++)
        if (strlen(verbs[step.verb].name) == length && strncmp(verbs[step.verb].name, line->value, length) == 0) break;
    if (step.verb == VERBS)
        return line_fault(
            line, line->value,
            "not one of wait, says, file, http, run, input, signal, prompt, running, finished, interrupt");
    if (scenario->step_count == SCENARIO_STEPS_MOST) return line_fault(line, line->key, "more steps than can be");
    char *rest = skip_blanks(line->value + length);
    if (take_within(line, rest, &step.within_ns) < 0) return -1;
    step.text = rest;
    if (check_step(line, &step, rest) < 0) return -1;
    if (!(step.text = strdup(rest))) return line_no_memory(line);
    scenario->steps[scenario->step_count++] = step;
    return 0;
}

static int take_text(struct line *line, char **to) {
    if (*to) return line_fault(line, line->key, "said twice");
    return (*to = strdup(line->value)) ? 0 : line_no_memory(line);
}

static bool whole_number(const char *text, unsigned long most, unsigned long *number) {
    if (!*text || strlen(text) > 9 || strspn(text, "0123456789") != strlen(text)) return false;
    *number = strtoul(text, NULL, 10);
    return *number <= most;
}

static int take_set(struct line *line) {
    struct scenario *scenario = line->scenario;
    if (line->value[0] == '=' || !strchr(line->value, '=')) return line_fault(line, line->value, "not NAME=VALUE");
    if (scenario->set_count == SCENARIO_SETS_MOST) return line_fault(line, line->key, "more variables than can be");
    if (!(scenario->sets[scenario->set_count] = strdup(line->value))) return line_no_memory(line);
    scenario->set_count++;
    return 0;
}

static int take_exits(struct line *line) {
    struct scenario *scenario = line->scenario;
    char *rest = NULL;
    for (char *word = strtok_r(line->value, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest)) {
        unsigned long status;
        if (!whole_number(word, 255, &status)) return line_fault(line, word, "not an exit status, 0 to 255");
        if (scenario->exit_count == SCENARIO_EXITS_MOST) return line_fault(line, word, "more statuses than can be");
        scenario->exits[scenario->exit_count++] = (int)status;
    }
    return 0;
}

static int take_key(struct line *line) {
    struct scenario *scenario = line->scenario;
    unsigned long number;
    for (int phase = 0; phase < PHASES; phase++)
        if (strcmp(line->key, phases[phase]) == 0) return take_step(line, (enum phase)phase);
    if (strcmp(line->key, "program") == 0) return take_text(line, &scenario->program);
    if (strcmp(line->key, "folder") == 0) return take_text(line, &scenario->folder);
    if (strcmp(line->key, "set") == 0) return take_set(line);
    if (strcmp(line->key, "exit") == 0) return take_exits(line);
    if (strcmp(line->key, "observe") == 0)
        return duration_parse(line->value, &scenario->observe_ns)
                   ? 0
                   : line_fault(line, line->value, "not a time like 60s or 2m, a day at most");
    if (strcmp(line->key, "repeat") == 0) {
        if (!whole_number(line->value, REPEAT_MOST, &number) || !number)
            return line_fault(line, line->value, "not a number from 1 to 10000");
        scenario->repeat = (unsigned)number;
        return 0;
    }
    if (strcmp(line->key, "port") == 0) {
        if (!whole_number(line->value, UINT16_MAX, &number)) return line_fault(line, line->value, "not a port");
        scenario->port = (uint16_t)number;
        return 0;
    }
    return line_fault(
        line, line->key,
        "not one of program, folder, set, port, repeat, observe, exit, ready, load, queue, finish, cancel, "
        "child, close");
}

/* Refuses characters that a terminal or a shell could misread. */
static int check_bytes(const struct line *line) {
    for (const char *at = line->text; *at;) {
        size_t size = jsontext_character(at, strlen(at));
        if (!size || ((unsigned char)*at < 0x20 && *at != '\t' && *at != '\r'))
            return line_fault(line, at, "a byte that is no text");
        at += size;
    }
    return 0;
}

static int take_line(struct line *line) {
    if (check_bytes(line) < 0) return -1;
    line->key = skip_blanks(line->text);
    if (!*line->key || *line->key == '#' || *line->key == '\r') return 0;
    char *colon = strchr(line->key, ':');
    if (!colon) return line_fault(line, line->key, "not 'key: value'");
    line->value = skip_blanks(colon + 1);
    *colon = 0;
    cut_end(line->key);
    cut_end(line->value);
    if (!*line->value) return line_fault(line, line->value, "nothing follows the colon");
    return take_key(line);
}

/* --- the whole scenario --- */

static int check_whole(struct scenario *scenario, const char *name, size_t lines) {
    struct line end = {.scenario = scenario, .name = name, .text = "", .number = lines};
    if (!scenario->program) return line_fault(&end, end.text, "'program' is missing");
    return 0;
}

static int take_lines(struct scenario *scenario, const char *name, char *text, size_t length) {
    size_t number = 1;
    for (char *at = text, *end = text + length; at < end; number++) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        struct line line = {.scenario = scenario, .name = name, .text = at, .number = number};
        if (!stop) stop = end;
        if (memchr(at, 0, (size_t)(stop - at))) return line_fault(&line, at + strlen(at), "a byte that is no text");
        *stop = 0;
        if (take_line(&line) < 0) return -1;
        at = stop + 1;
    }
    return check_whole(scenario, name, number);
}

int scenario_parse(struct scenario *scenario, const char *name, const char *text, size_t length) {
    *scenario = (struct scenario){.repeat = REPEAT, .observe_ns = OBSERVE_S * SECOND_NS};
    char *copy = malloc(length + 1);
    if (!copy) {
        snprintf(scenario->error, sizeof scenario->error, "not enough memory");
        return -1;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    int result = take_lines(scenario, name, copy, length);
    free(copy);
    return result;
}

int scenario_load(struct scenario *scenario, const char *path) {
    struct stat st;
    char *text = NULL;
    ssize_t got = -1;
    const char *why = NULL;
    *scenario = (struct scenario){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "not a regular file";
    else if (st.st_size > SCENARIO_BYTES_MOST)
        why = "longer than 1 MiB";
    else if (!(text = malloc((size_t)st.st_size + 1)))
        why = "not enough memory";
    else if ((got = pread(fd, text, (size_t)st.st_size, 0)) < 0)
        why = strerror(errno);
    if (fd >= 0) close(fd);
    if (why) snprintf(scenario->error, sizeof scenario->error, "%.200s: %s", text_fit_path(path, 150).s, why);
    int result = why ? -1 : scenario_parse(scenario, path, text, (size_t)got);
    free(text);
    return result;
}

void scenario_clear(struct scenario *scenario) {
    free(scenario->program);
    free(scenario->folder);
    for (size_t i = 0; i < scenario->set_count; i++) free(scenario->sets[i]);
    for (size_t i = 0; i < scenario->step_count; i++) free(scenario->steps[i].text);
    scenario->set_count = scenario->step_count = 0;
    scenario->program = scenario->folder = NULL;
}

bool scenario_has(const struct scenario *scenario, enum phase phase) {
    for (size_t i = 0; i < scenario->step_count; i++)
        if (scenario->steps[i].phase == phase) return true;
    return false;
}
