/* scenario.h — the small file that says how a program is started, used and closed, for `memstow lifecycle`.
 * In: a text that nobody vouches for, "key: value" a line. Out: a scenario, or one message with line and column. */
#ifndef MEMSTOW_SCENARIO_H
#define MEMSTOW_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum phase {
    PHASE_READY,
    PHASE_LOAD,
    PHASE_QUEUE,
    PHASE_BEHIND,
    PHASE_FINISH,
    PHASE_CANCEL,
    PHASE_CHILD,
    PHASE_CLOSE,
    PHASES
};

enum verb {
    VERB_WAIT,      /* TIME */
    VERB_SAYS,      /* TEXT: until the program has written it */
    VERB_FILE,      /* PATH: until it is there */
    VERB_HTTP,      /* METHOD PATH [FILE]: until it is answered with 2xx (GET), or once */
    VERB_RUN,       /* COMMAND of the shell */
    VERB_INPUT,     /* TEXT: a line for the program's standard input */
    VERB_SIGNAL,    /* NAME */
    VERB_PROMPT,    /* FILE: a workflow for ComfyUI */
    VERB_RUNNING,   /* until ComfyUI runs one */
    VERB_WAITING,   /* until one waits behind it */
    VERB_FINISHED,  /* until the last one has ended well */
    VERB_INTERRUPT, /* ComfyUI's */
    VERBS
};

struct step {
    enum verb verb;
    enum phase phase;
    char *text; /* its arguments; "" when it has none */
    uint64_t within_ns;
    size_t line;
};

enum { SCENARIO_STEPS_MOST = 200, SCENARIO_EXITS_MOST = 16, SCENARIO_SETS_MOST = 64, SCENARIO_BYTES_MOST = 1 << 20 };

struct scenario {
    char *program, *folder; /* of the shell; NULL: where we are */
    uint16_t port;          /* 0: a free one each time */
    unsigned repeat;
    uint64_t observe_ns;
    int exits[SCENARIO_EXITS_MOST]; /* statuses that are fine beside 0 */
    char *sets[SCENARIO_SETS_MOST]; /* NAME=VALUE */
    struct step steps[SCENARIO_STEPS_MOST];
    size_t exit_count, set_count, step_count;
    char error[400];
};

/* 0, or -1 with error set: "NAME:LINE:COLUMN: …". */
int scenario_parse(struct scenario *scenario, const char *name, const char *text, size_t length);
int scenario_load(struct scenario *scenario, const char *path);
void scenario_clear(struct scenario *scenario);

bool scenario_has(const struct scenario *scenario, enum phase phase);
const char *phase_name(enum phase phase);
const char *verb_name(enum verb verb);
/* The signal of that name, with or without SIG; 0: none. */
int scenario_signal(const char *name);

#endif
