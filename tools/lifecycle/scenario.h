/* scenario.h — the small file that says how a program is started, used and closed, for `memstow lifecycle`.
 * In: a text that is not trusted, with a "key: value" on each line. Out: a scenario, or one message with line and
 * column. */
#ifndef MEMSTOW_SCENARIO_H
#define MEMSTOW_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parts of a program's life, each with steps of its own: wait until it is ready; load something; queue work, and
 * more work behind that; finish the work or cancel it; start a child process; close the program. */
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
    VERB_WAIT,      /* TIME: do nothing for that time */
    VERB_SAYS,      /* TEXT: wait until the program has written it */
    VERB_FILE,      /* PATH: wait until it exists */
    VERB_HTTP,      /* METHOD PATH [FILE]: GET is repeated until the status is 2xx; other methods are sent once */
    VERB_RUN,       /* COMMAND: run it in the shell */
    VERB_INPUT,     /* TEXT: write it as a line to the program's standard input */
    VERB_SIGNAL,    /* NAME: send the program this signal */
    VERB_PROMPT,    /* FILE: send ComfyUI the workflow in it */
    VERB_RUNNING,   /* wait until ComfyUI runs a workflow */
    VERB_WAITING,   /* wait until a workflow is queued behind the running one */
    VERB_FINISHED,  /* wait until the workflow of the last VERB_PROMPT has ended well */
    VERB_INTERRUPT, /* interrupt ComfyUI */
    VERBS
};

struct step {
    enum verb verb;
    enum phase phase;
    const char *text; /* its arguments; "": none */
    uint64_t within_ns;
    size_t line;
};

enum { SCENARIO_STEPS_MOST = 200, SCENARIO_EXITS_MOST = 16, SCENARIO_SETS_MOST = 64 };

struct scenario {
    char *text;                   /* the whole text; the other strings are parts of it */
    const char *program, *folder; /* program: a command for the shell; folder NULL: the current one */
    int port;                     /* 0: a free port for each life of the program */
    int repeat;
    uint64_t observe_ns;
    int exits[SCENARIO_EXITS_MOST];       /* exit statuses that are accepted beside 0 */
    const char *sets[SCENARIO_SETS_MOST]; /* NAME=VALUE */
    struct step steps[SCENARIO_STEPS_MOST];
    size_t exit_count, set_count, step_count;
    char error[400];
};

/* scenario_load() and scenario_take() return 0, or -1 with error set: "NAME:LINE:COLUMN: …". Call scenario_clear() in
 * both cases. */
int scenario_load(struct scenario *scenario, const char *path);
/* Parses a text, which must be allocated and end with a NUL, and takes it over. `name`: the file's name in errors. */
int scenario_take(struct scenario *scenario, const char *name, char *text, size_t length);
void scenario_clear(struct scenario *scenario);

bool scenario_has(const struct scenario *scenario, enum phase phase);
const char *scenario_phase_name(enum phase phase);
const char *scenario_verb_name(enum verb verb);
/* The signal with that name, with or without SIG; 0: none. */
int scenario_signal(const char *name);

#endif
