/* start.h — starts a program under memstow: the common part of `run`, `watch` and `lifecycle`.
 * In: options, and a command. Out: the started program, whose environment tells the library the options. All refusals
 * come before the program starts. */
#ifndef MEMSTOW_START_H
#define MEMSTOW_START_H

#include "tools/launch/launch.h"
#include "tools/base/program.h"
#include "tools/base/template.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

enum start_option {
    START_STACKS = 256,
    START_ALLOCATOR,
    START_FOLLOW,
    START_PYTHON_OBJECTS,
    START_STACK_MEMORY,
    START_PRESSURE,
    START_IDLE,
    START_OTHERS /* options that only one command has begin here */
};
enum { START_NOT_EXECUTABLE = 126, START_NOT_FOUND = 127 };

/* Entries for the table of getopt_long. */
#define START_OPTIONS                                                                                                  \
    {"output", required_argument, NULL, 'o'}, {"stacks", required_argument, NULL, START_STACKS},                       \
        {"stack-memory", required_argument, NULL, START_STACK_MEMORY},                                                 \
        {"allocator", required_argument, NULL, START_ALLOCATOR}, {"follow", required_argument, NULL, START_FOLLOW},    \
        {"python-objects", no_argument, NULL, START_PYTHON_OBJECTS},                                                   \
        {"pressure", required_argument, NULL, START_PRESSURE}, {                                                       \
        "idle", required_argument, NULL, START_IDLE                                                                    \
    }
/* The help for START_OPTIONS, in lines of at most 80 columns. */
extern const char start_help[];

struct start {
    const char *subcommand; /* name in error messages */
    const char *output, *stacks, *allocator, *follow, *pressure, *idle;
    uint64_t stack_memory; /* 0: not given */
    enum program_verdict verdict;
    bool untrackable, python_objects;
    bool verify, from_cupti; /* --verify-with-cupti, --cupti */
    bool injection_given_up; /* CUDA_INJECTION64_PATH names another library already */
    char **argv;
    char library[4096], cupti[4096], command[4096]; /* command: path of `memstow`, for memstow_snapshot */
    struct template template;
    char sample[32];
    uint8_t run_id[16];
    void (*also)(void *context); /* called in the program's process before its environment is set; may be NULL */
    void *also_context;
};

/* Takes an option of START_OPTIONS, or complains about an unknown one. Returns 0, or an exit code. */
int start_option(struct start *start, int option, char **argv);
/* Checks the command, and the path of its ledger. Returns EXIT_FINE, or an exit code after an error message. */
int start_prepare(struct start *start, char **argv);
/* Starts the command. Returns EXIT_FINE, or an exit code after an error message. */
int start_launch(struct start *start, struct launch *launch);
/* Replaces this process by the command (exec). Returns an exit code after an error message if exec failed. */
int start_become(struct start *start);
/* After the end: writes to the ledger how the program ended. If not `quiet`, prints the summary on standard error. */
void start_sum_up(const struct start *start, const struct launch *launch, bool quiet);

#endif
