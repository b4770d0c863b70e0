/* scenario.c — see scenario.h. */
#include "tools/lifecycle/scenario.h"
#include "tools/base/duration.h"
#include "tools/base/size.h"
#include "preload/shared/utf8.h"
#include "tools/base/text.h"
#include "tools/base/whole_file.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FILE_MIB = 1, REPEAT_MOST = 10000, STEP_PATIENCE_S = 60, READY_PATIENCE_S = 120, OBSERVE_S = 60, REPEAT = 3 };

static const char *const phases[PHASES] = {"ready", "load", "queue", "behind", "finish", "cancel", "child", "close"};

static const struct {
    const char *name;
    bool takes; /* true: a text must follow the verb; false: none may */
} verbs[VERBS] = {{"wait", true},     {"says", true},     {"file", true},      {"http", true},
                  {"run", true},      {"input", true},    {"signal", true},    {"prompt", true},
                  {"running", false}, {"waiting", false}, {"finished", false}, {"interrupt", false}};

const char *scenario_phase_name(enum phase phase) { return phases[phase]; }

const char *scenario_verb_name(enum verb verb) { return verbs[verb].name; }

int scenario_signal(const char *name) {
    if (strncasecmp(name, "SIG", 3) == 0) name += 3;
    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcasecmp(known, name) == 0) return number;
    }
    return 0;
}

/* --- parsing one line --- */

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

static char *skip_blanks(char *text) { return text + strspn(text, " \t"); }

static void cut_end(char *text) {
    for (size_t length = strlen(text); length && strchr(" \t\r", text[length - 1]); length--) text[length - 1] = 0;
}

/* Takes "within 90s" off the end of a step, if it is there, and sets *within_ns. Returns 0, or -1 with an error. */
static int take_within(const struct line *line, char *text, uint64_t *within_ns) {
    char *last = NULL;
    for (char *found = text; (found = strstr(found, "within ")); found++)
        if (found == text || isblank((unsigned char)found[-1])) last = found;
    if (!last) return 0;
    /* Without a time, "within" belongs to the step's text. */
    if (!duration_parse(skip_blanks(last + 7), within_ns)) return 0;
    if (!*within_ns) return line_fault(line, last, "the time to wait is 0");
    *last = 0;
    cut_end(text);
    return 0;
}

static int check_step(const struct line *line, const struct step *step, const char *at) {
    uint64_t time;
    char why[96];
    if (verbs[step->verb].takes != (step->text[0] != 0)) {
        snprintf(why, sizeof why, verbs[step->verb].takes ? "something must follow '%s'" : "nothing may follow '%s'",
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
            "not one of wait, says, file, http, run, input, signal, prompt, running, waiting, finished, interrupt");
    if (scenario->step_count == SCENARIO_STEPS_MOST) return line_fault(line, line->key, "too many steps");
    char *rest = skip_blanks(line->value + length);
    if (take_within(line, rest, &step.within_ns) < 0) return -1;
    step.text = rest;
    if (check_step(line, &step, rest) < 0) return -1;
    scenario->steps[scenario->step_count++] = step;
    return 0;
}

static int take_text(struct line *line, const char **to) {
    if (*to) return line_fault(line, line->key, "said twice");
    *to = line->value;
    return 0;
}

static int take_program(struct line *line) { return take_text(line, &line->scenario->program); }

static int take_folder(struct line *line) { return take_text(line, &line->scenario->folder); }

static int take_observe(struct line *line) {
    if (duration_parse(line->value, &line->scenario->observe_ns)) return 0;
    return line_fault(line, line->value, "not a time like 60s or 2m, a day at most");
}

/* Parses a number from `least` to `most`. Returns it, or -1 with the error `why`. */
static int take_number(const struct line *line, const char *word, unsigned long least, unsigned long most,
                       const char *why) {
    unsigned long number;
    return size_parse_count(word, least, most, &number) ? (int)number : line_fault(line, word, why);
}

static int take_repeat(struct line *line) {
    line->scenario->repeat = take_number(line, line->value, 1, REPEAT_MOST, "not a number from 1 to 10000");
    return line->scenario->repeat < 0 ? -1 : 0;
}

static int take_port(struct line *line) {
    line->scenario->port = take_number(line, line->value, 0, UINT16_MAX, "not a port");
    return line->scenario->port < 0 ? -1 : 0;
}

static int take_set(struct line *line) {
    struct scenario *scenario = line->scenario;
    if (line->value[0] == '=' || !strchr(line->value, '=')) return line_fault(line, line->value, "not NAME=VALUE");
    if (scenario->set_count == SCENARIO_SETS_MOST) return line_fault(line, line->key, "too many variables");
    scenario->sets[scenario->set_count++] = line->value;
    return 0;
}

static int take_exits(struct line *line) {
    struct scenario *scenario = line->scenario;
    char *rest = NULL;
    for (char *word = strtok_r(line->value, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest)) {
        int status = take_number(line, word, 0, 255, "not an exit status, 0 to 255");
        if (status < 0) return -1;
        if (scenario->exit_count == SCENARIO_EXITS_MOST) return line_fault(line, word, "too many exit statuses");
        scenario->exits[scenario->exit_count++] = status;
    }
    return 0;
}

static int take_key(struct line *line) {
    static const struct {
        const char *name;
        int (*take)(struct line *line);
    } keys[] = {{"program", take_program}, {"folder", take_folder},   {"set", take_set},   {"port", take_port},
                {"repeat", take_repeat},   {"observe", take_observe}, {"exit", take_exits}};
    for (int phase = 0; phase < PHASES; phase++)
        if (strcmp(line->key, phases[phase]) == 0) return take_step(line, (enum phase)phase);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(line->key, keys[i].name) == 0) return keys[i].take(line);
    return line_fault(line, line->key,
                      "not one of program, folder, set, port, repeat, observe, exit, ready, load, queue, behind, "
                      "finish, cancel, child, close");
}

/* Refuses control characters and bytes that are not UTF-8, which a terminal or a shell could misread. */
static int check_bytes(const struct line *line) {
    for (const char *at = line->text; *at;) {
        size_t size = utf8_size(at, strlen(at));
        if (!size || ((unsigned char)*at < 0x20 && *at != '\t' && *at != '\r'))
            return line_fault(line, at, "a byte that is not text");
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

/* --- parsing the whole scenario --- */

static int take_lines(struct scenario *scenario, const char *name, char *text, size_t length) {
    struct line line = {.scenario = scenario, .name = name, .number = 1};
    for (char *rest = text, *end = text + length; rest && rest < end; line.number++) {
        line.text = strsep(&rest, "\n");
        const char *stop = line.text + strlen(line.text);
        if (!rest && stop < end) return line_fault(&line, stop, "a byte that is not text"); /* a NUL in the text */
        if (take_line(&line) < 0) return -1;
    }
    line.text = "";
    return scenario->program ? 0 : line_fault(&line, line.text, "'program' is missing");
}

int scenario_take(struct scenario *scenario, const char *name, char *text, size_t length) {
    *scenario = (struct scenario){.text = text, .repeat = REPEAT, .observe_ns = OBSERVE_S * SECOND_NS};
    return take_lines(scenario, name, text, length);
}

int scenario_load(struct scenario *scenario, const char *path) {
    struct whole_file file;
    if (whole_file_read(&file, path, FILE_MIB) == 0) return scenario_take(scenario, path, file.text, file.length);
    *scenario = (struct scenario){0};
    snprintf(scenario->error, sizeof scenario->error, "%.200s: %s", text_fit_path(path, 150).s, file.why);
    return -1;
}

void scenario_clear(struct scenario *scenario) {
    free(scenario->text);
    scenario->text = NULL;
}

bool scenario_has(const struct scenario *scenario, enum phase phase) {
    for (size_t i = 0; i < scenario->step_count; i++)
        if (scenario->steps[i].phase == phase) return true;
    return false;
}
