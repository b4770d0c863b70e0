/* cmd_ps.c — memstow ps: lists the processes that are tracked now. Nothing else lists them, so it looks at every
 * process. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/base/json.h"
#include "tools/subject/tracked.h"
#include "tools/base/text.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEFORE_FILE = 64, WHOLE_NAME = 1000 };

static int cmd_ps_help(void) {
    puts("usage: memstow ps [--json]\n"
         "\n"
         "Lists the processes that memstow tracks now and that you may look at.\n"
         "\n"
         "  --json   one JSON document, sizes in bytes\n"
         "\n"
         "Live memory and peak are exact to 1 MiB.\n"
         "Exit code: 0 fine (also when there are none), 2 wrong usage, 3 processes\n"
         "cannot be looked at.");
    return complain_finish(EXIT_FINE);
}

static void print_text(const struct tracked_list *list) {
    if (!list->count) {
        puts("no process is tracked by memstow now");
        return;
    }
    int columns = isatty(STDOUT_FILENO) ? text_width() - BEFORE_FILE : WHOLE_NAME; /* for a pipe the name is not cut */
    printf("%8s %-16s %12s %11s %11s  %s\n", "pid", "name", "elapsed", "live", "peak", "file");
    for (size_t i = 0; i < list->count; i++) {
        const struct tracked *tracked = &list->items[i];
        printf("%8d %s %12s %11s %11s  %s\n", (int)tracked->pid, text_left(tracked->name, 16).s,
               text_duration(tracked->elapsed_ns).s, text_estimate(tracked->live).s, text_estimate(tracked->peak).s,
               text_fit_path(*tracked->path ? tracked->path : "(in memory)", columns).s);
    }
}

static void print_json(const struct tracked_list *list) {
    static struct json json;
    json_begin(&json, stdout, "memstow-ps");
    json_array(&json, "processes");
    for (size_t i = 0; i < list->count; i++) {
        const struct tracked *tracked = &list->items[i];
        json_object(&json, NULL);
        json_number(&json, "pid", (uint64_t)tracked->pid);
        json_string(&json, "name", tracked->name);
        json_real(&json, "elapsed_seconds", (double)tracked->elapsed_ns / 1e9);
        json_number(&json, "live_bytes", tracked->live);
        json_number(&json, "peak_bytes", tracked->peak);
        json_string(&json, "file", *tracked->path ? tracked->path : NULL);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_finish(&json);
}

int cmd_ps(int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct tracked_list list = {0};
    char error[256];
    bool as_json = false;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_ps_help();
        if (option != 'j') return complain_option("ps", option, argv);
        as_json = true;
    }
    if (optind != argc) return complain_usage("ps", "no argument is needed");
    if (tracked_collect(&list, error, sizeof error) < 0) {
        complain("%s", error);
        free(list.items);
        return EXIT_UNREADABLE;
    }
    if (as_json)
        print_json(&list);
    else
        print_text(&list);
    free(list.items);
    return complain_finish(EXIT_FINE);
}
