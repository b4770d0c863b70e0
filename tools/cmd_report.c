/* cmd_report.c — memstow report: what a process holds, and what is left of it. */
#include "at_peak.h"
#include "commands.h"
#include "report.h"
#include "text.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPTION_BY = 256, OPTION_TOP, OPTION_JSON, OPTION_LATER, TOP_DEFAULT = 10 };

struct choice {
    enum view view;
    bool view_given, json;
    size_t top;
    bool top_given;
};

static int help(void) {
    puts("usage: memstow report FILE|PID [--by=VIEW] [--top=N] [--json]\n"
         "\n"
         "What a process holds: live bytes and blocks, the peak, who allocated them, and\n"
         "where its resident memory is.\n"
         "\n"
         "  --by=VIEW   model, node, run, site, module or thread\n"
         "              (default: model where there are owners, else module)\n"
         "  --top=N     show N rows of each list (default 10; with --json: all)\n"
         "  --json      one JSON document, sizes in bytes\n"
         "\n"
         "A number is a PID; for a file of that name write ./NUMBER.\n"
         "Exit code: 0 fine, 2 wrong usage, 3 unreadable or damaged input.");
    return finish_output(EXIT_FINE);
}

static bool parse_top(const char *string, size_t *top) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(string, &end, 10);
    if (errno || *end || string[0] < '0' || string[0] > '9') return false;
    *top = value;
    return true;
}

static int show(const char *argument, const struct choice *choice) {
    static struct subject subject;
    int code = subject_open(&subject, argument, true);
    if (code != EXIT_FINE) return code;
    struct report report = {.image = &subject.image, .subject = &subject, .view = choice->view};
    if (!choice->view_given) report.view = image_has_tags(&subject.image) ? BY_MODEL : BY_MODULE;
    report.top = choice->top_given ? choice->top : choice->json ? SIZE_MAX : TOP_DEFAULT;
    at_peak_choose(&subject.image);
    int result = resident_split(&report.resident, &subject.image);
    if (result == 0) result = choice->json ? report_json(&report) : report_text(&report);
    if (result < 0) complain("not enough memory");
    resident_clear(&report.resident);
    subject_close(&subject);
    return finish_output(result < 0 ? EXIT_UNREADABLE : EXIT_FINE);
}

int cmd_report(int argc, char **argv) {
    static const struct option options[] = {
        {"by", required_argument, NULL, OPTION_BY},
        {"top", required_argument, NULL, OPTION_TOP},
        {"json", no_argument, NULL, OPTION_JSON},
        {"folded", no_argument, NULL, OPTION_LATER},
        {"pprof", no_argument, NULL, OPTION_LATER},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct choice choice = {0};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return help();
        if (option == OPTION_LATER) return usage_error("report", "%s is not in this version", argv[optind - 1]);
        if (option == OPTION_BY) {
            if (!view_parse(optarg, &choice.view))
                return usage_error("report", "--by=%s: not model, node, run, site, module or thread",
                                   TEXT_SAFE(optarg));
            choice.view_given = true;
        } else if (option == OPTION_TOP) {
            if (!parse_top(optarg, &choice.top))
                return usage_error("report", "--top=%s: not a number", TEXT_SAFE(optarg));
            choice.top_given = true;
        } else if (option == OPTION_JSON) {
            choice.json = true;
        } else {
            return option_error("report", option, argv);
        }
    }
    if (argc - optind != 1) return usage_error("report", "one FILE or PID is needed");
    return show(argv[optind], &choice);
}
