/* main.c — memstow: finds the subcommand, and calls it. */
#include "tools/base/complain.h"
#include "tools/launch/file_limit.h"
#include "tools/cmd/commands.h"
#include "tools/base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command commands[] = {
    {"run", cmd_run, "run a program and keep a ledger of its memory"},
    {"watch", cmd_watch, "run a program and say what is left of it at its end"},
    {"report", cmd_report, "what a process holds, and what is left of it"},
    {"diff", cmd_diff, "what grew from one file to another"},
    {"leaks", cmd_leaks, "what grows from run to run, and what gone owners left behind"},
    {"check", cmd_check, "fail a build when a program holds more than a baseline says"},
    {"decisions", cmd_decisions, "why models were kept, put away or freed"},
    {"snapshot", cmd_snapshot, "copy the ledger of a running process"},
    {"top", cmd_top, "watch running processes in the terminal"},
    {"ps", cmd_ps, "which processes are tracked now"},
    {"owners", cmd_owners, "which models, nodes and runs are registered, and what each holds"},
    {"metrics", cmd_metrics, "figures of running processes for Prometheus"},
    {"push", cmd_push, "send profiles of running processes to Pyroscope or Parca"},
    {"stow", cmd_stow, "move an owner's memory out to disk, in a running process"},
    {"restore", cmd_restore, "bring stowed memory back"},
    {"release", cmd_release, "return an owner's unused memory to the system"},
    {"trigger", cmd_trigger, "apply the policies of a running process now"},
    {"lifecycle", cmd_lifecycle, "start, use and close a program, and see that nothing is left"},
    {"reap", cmd_reap, "find and end processes that a program left running"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int main_unknown(const char *word) {
    complain("unknown command '%s' (see 'memstow --help')", TEXT_SAFE(word));
    return EXIT_USAGE;
}

static const struct command *command_find(const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    return NULL;
}

static const char usage[] = "usage: memstow COMMAND [ARGUMENT...]\n"
                            "       memstow help [COMMAND]\n"
                            "       memstow --version\n";

static int main_help(void) {
    printf("%s\nAn exact ledger of a program's memory.\n\n", usage);
    for (int i = 0; i < COMMANDS; i++) printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    puts("\n'memstow COMMAND --help' tells more. Start with:\n"
         "\n"
         "  memstow run -- python3 train.py");
    return complain_finish(EXIT_FINE);
}

static int no_command(void) {
    complain("no command given (see 'memstow --help')");
    fputs(usage, stderr);
    return EXIT_USAGE;
}

/* `memstow help COMMAND` does the same as `memstow COMMAND --help`. */
static int help_on(char *name) {
    char *words[] = {name, "--help", NULL};
    const struct command *command = command_find(name);
    return command ? command->run(2, words) : main_unknown(name);
}

/* Fills the numbers of standard streams that are closed. Otherwise a file or a socket of ours would get such a number,
 * and messages would go into it. The numbers are filled with O_PATH descriptors, because these refuse reads and writes,
 * as a closed descriptor does. A program that we start does not get them. */
static void hold_streams(void) {
    int fd;
    do fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
    hold_streams();
    file_limit_begin();
    if (argc < 2) return no_command();
    if (strcmp(argv[1], "help") == 0 && argc > 2) return help_on(argv[2]);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return main_help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) return cmd_version(argc, argv);
    const struct command *command = command_find(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : main_unknown(argv[1]);
}
