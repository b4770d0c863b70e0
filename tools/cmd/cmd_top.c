/* cmd_top.c — memstow top: shows in the terminal the memory of running programs, and reads it again each second. */
#include "tools/base/complain.h"
#include "tools/base/text.h"
#include "tools/cmd/commands.h"
#include "tools/proc/process.h"
#include "tools/top/loop.h"

#include <getopt.h>
#include <stdio.h>

static int cmd_top_help(void) {
    puts("usage: memstow top [PID]\n"
         "\n"
         "Shows in the terminal what a running program holds, and looks again each second:\n"
         "by model, node, run, call site, module or thread, with what each gains a second.\n"
         "Without PID it begins with a list of the tracked processes. The program pays\n"
         "nothing: its ledger is read from outside.\n"
         "\n"
         "The key ? lists the keys, q ends it. It needs a terminal of 60 columns and 12\n"
         "lines.\n"
         "\n"
         "Exit code: 0 fine; 2 wrong usage, no terminal, or built without ncurses; 3 no\n"
         "such process, not tracked, or its ledger cannot be read.");
    return complain_finish(EXIT_FINE);
}

static int cmd_top_run(pid_t pid) {
#ifdef MEMSTOW_NCURSES
    return loop_run(pid);
#else
    (void)pid;
    complain("top: this memstow was built without ncurses, which top needs");
    return EXIT_USAGE;
#endif
}

int cmd_top(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    pid_t pid = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_top_help();
        return complain_option("top", option, argv);
    }
    if (argc - optind > 1) return complain_usage("top", "only one PID can be watched");
    if (optind < argc && !(pid = process_parse(argv[optind])))
        return complain_usage("top", "%s is not a PID", TEXT_SAFE(argv[optind]));
    return cmd_top_run(pid);
}
