/* cmd_decisions.c — memstow decisions: shows why models were kept, stowed or freed, and checks the trace for faults. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/decisions/decisions.h"
#include "tools/subject/subject.h"
#include "tools/base/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_JSON = 256, OPTION_CHECK };

struct choice {
    bool json, check;
};

static int cmd_decisions_help(void) {
    puts("usage: memstow decisions FILE|PID [--json] [--check]\n"
         "\n"
         "Shows why models and other owners were kept, stowed or freed: each trigger with\n"
         "its decisions, their policies, and the outcome.\n"
         "\n"
         "  --json    one JSON document: the lines of the trace, and its faults\n"
         "  --check   exit 1 if there is a fault: a policy was set for one id and read for\n"
         "            another; a policy was set and not found; an outcome is wrong; a kept\n"
         "            model is gone; counts do not add up\n"
         "\n"
         "A number is a PID; for a file of that name write ./NUMBER.\n"
         "Exit code: 0 fine, 1 a fault (with --check), 2 wrong usage, 3 unreadable or\n"
         "damaged input.");
    return complain_finish(EXIT_FINE);
}

static void print_faults(const struct decisions *decisions, bool check) {
    if (decisions->fault_count) puts("\nFaults");
    for (size_t i = 0; i < decisions->fault_count; i++) {
        const struct fault *fault = &decisions->faults[i];
        char line[400];
        snprintf(line, sizeof line, "line %" PRIu64 ", owner %" PRIu64 ": %s: %s", fault->n, fault->owner,
                 decisions_fault_name(fault->kind), fault->text);
        fputs("  ", stdout);
        text_wrap(stdout, line, 2, 4);
    }
    if (check && !decisions->fault_count)
        printf("\nNo fault in %zu line%s.\n", decisions->event_count, decisions->event_count == 1 ? "" : "s");
}

static void print_text(const struct decisions *decisions, const struct image *image, bool check) {
    if (!decisions->event_count) puts("no decisions: no policy was set, and no trigger tripped");
    if (decisions_lines_before(decisions))
        printf("%s earlier lines are gone: the trace keeps 1 MiB\n", text_count(decisions_lines_before(decisions)).s);
    if (image->header.lost[SNAP_LOST_TRACE])
        printf("%s lines could not be written\n", text_count(image->header.lost[SNAP_LOST_TRACE]).s);
    decisions_print(decisions, image, stdout);
    print_faults(decisions, check);
}

static int decisions_show(const char *argument, const struct choice *choice) {
    static struct subject subject;
    struct decisions decisions;
    int code = subject_open(&subject, argument, false);
    if (code != EXIT_FINE) return code;
    int result = decisions_load(&decisions, &subject.image);
    if (result < 0)
        complain("not enough memory");
    else if (choice->json)
        decisions_json(&decisions, &subject.image, stdout);
    else
        print_text(&decisions, &subject.image, choice->check);
    bool fault = choice->check && decisions.fault_count;
    decisions_clear(&decisions);
    subject_close(&subject);
    return complain_finish(result < 0 ? EXIT_UNREADABLE : fault ? EXIT_OVER : EXIT_FINE);
}

int cmd_decisions(int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"check", no_argument, NULL, OPTION_CHECK},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct choice choice = {0};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_decisions_help();
        if (option != OPTION_JSON && option != OPTION_CHECK) return complain_option("decisions", option, argv);
        choice.json |= option == OPTION_JSON;
        choice.check |= option == OPTION_CHECK;
    }
    if (argc - optind != 1) return complain_usage("decisions", "one FILE or PID is needed");
    return decisions_show(argv[optind], &choice);
}
