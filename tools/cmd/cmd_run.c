/* cmd_run.c — memstow run: starts a program with the library preloaded, and prints a summary at its end. All refusals
 * come before the program starts. From then on the program runs as it would without memstow. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/launch/start.h"
#include "tools/views/status.h"

#include <stdio.h>
#include <unistd.h>

enum { OPTION_QUIET = START_OTHERS, OPTION_VERIFY, OPTION_CUPTI, OPTION_EXEC };

static int cmd_run_help(void) {
    printf("usage: memstow run [OPTION...] [--] CMD [ARG...]\n"
           "\n"
           "Runs CMD and keeps a ledger of its memory, and of each of its children, in a\n"
           "file.\n"
           "\n"
           "%s"
           "  --verify-with-cupti     let NVIDIA's CUPTI list the CUDA memory, too, and\n"
           "                          report the differences; meanwhile no other profiler\n"
           "                          can use CUPTI in the program\n"
           "  --cupti                 preload nothing: a ledger of CUDA memory alone, from\n"
           "                          NVIDIA's CUPTI, for programs that cannot be preloaded\n"
           "  --exec                  become CMD, as exec does: the process, its signals and\n"
           "                          its exit status are CMD's, and nothing waits for it\n"
           "  --quiet                 no status line and no summary, as with --exec\n"
           "\n"
           "Exit code: that of CMD; 128+N when signal N killed it; 127 not found;\n"
           "126 not executable; 2 wrong usage.\n",
           start_help);
    return complain_finish(EXIT_FINE);
}

static int cmd_run_execute(struct start *start, bool quiet) {
    struct launch launch = {0};
    struct status status;
    int code = start_launch(start, &launch);
    if (code != EXIT_FINE) return code;
    bool shown = !quiet && isatty(STDERR_FILENO);
    status_begin(&status, launch.pid);
    launch_wait(&launch, shown ? status_tick : NULL, &status);
    status_end(&status);
    start_sum_up(start, &launch, quiet);
    return launch_exit_code(&launch);
}

int cmd_run(int argc, char **argv) {
    static const struct option options[] = {START_OPTIONS,
                                            {"verify-with-cupti", no_argument, NULL, OPTION_VERIFY},
                                            {"cupti", no_argument, NULL, OPTION_CUPTI},
                                            {"exec", no_argument, NULL, OPTION_EXEC},
                                            {"quiet", no_argument, NULL, OPTION_QUIET},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct start start = {.subcommand = "run"};
    bool quiet = false, becomes = false;
    opterr = 0;
    /* '+': the first word that is not an option is the command. The words after it belong to the command. */
    for (int option; (option = getopt_long(argc, argv, "+:ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_run_help();
        if (option == OPTION_QUIET || option == OPTION_EXEC) {
            quiet |= option == OPTION_QUIET;
            becomes |= option == OPTION_EXEC;
            continue;
        }
        if (option == OPTION_VERIFY || option == OPTION_CUPTI) {
            start.verify |= option == OPTION_VERIFY;
            start.from_cupti |= option == OPTION_CUPTI;
            continue;
        }
        int code = start_option(&start, option, argv);
        if (code != EXIT_FINE) return code;
    }
    if (start.verify && start.from_cupti)
        return complain_usage("run", "--cupti and --verify-with-cupti exclude each other");
    if (optind == argc) return complain_usage("run", "no command given");
    int code = start_prepare(&start, argv + optind);
    if (code != EXIT_FINE) return code;
    return becomes ? start_become(&start) : cmd_run_execute(&start, quiet);
}
