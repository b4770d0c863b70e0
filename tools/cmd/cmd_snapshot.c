/* cmd_snapshot.c — memstow snapshot: copies the ledger of a running process, which goes on running. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/reader/nvml_image.h"
#include "tools/subject/outfile.h"
#include "tools/proc/process.h"
#include "tools/subject/subject.h"
#include "tools/base/text.h"
#include "tools/subject/writer.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int cmd_snapshot_help(void) {
    puts("usage: memstow snapshot PID [-o FILE]\n"
         "\n"
         "Copies the ledger of a running process into a file that 'memstow report' and\n"
         "'memstow diff' read. The process is not paused. Prints the name of the file.\n"
         "\n"
         "  -o FILE   write FILE (default memstow.NAME.PID.DATE-TIME.mst); an earlier\n"
         "            memstow file of yours is replaced, anything else is refused\n"
         "\n"
         "Exit code: 0 fine, 2 wrong usage, 3 no such process, not tracked or not written.");
    return complain_finish(EXIT_FINE);
}

static void default_name(const struct snap_header *header, pid_t pid, char *name, size_t size) {
    char when[32] = "";
    struct tm tm;
    time_t now = time(NULL);
    if (localtime_r(&now, &tm)) strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
    snprintf(name, size, "memstow.%s.%d.%s.mst", header->name, (int)pid, when);
    for (char *c = name; *c; c++) /* no slash or control character of the program's name stays */
        if (*c == '/' || (unsigned char)*c < 0x20) *c = '_';
}

static int write_snapshot(struct image *image, const char *path) {
    char error[4400];
    static struct new_file file;
    if (outfile_begin(&file, path, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_UNREADABLE;
    }
    if (writer_snapshot(image, file.stream) < 0) {
        int failed = errno;
        new_file_end(&file, false);
        complain("%s: %s", TEXT_SAFE(path), strerror(failed));
        return EXIT_UNREADABLE;
    }
    if (outfile_end(&file, true, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_UNREADABLE;
    }
    return EXIT_FINE;
}

static int snapshot_take(pid_t pid, const char *output) {
    static struct subject subject;
    char name[128], error[4400];
    if (output && outfile_check(output, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_USAGE;
    }
    int code = subject_open_pid(&subject, pid, true);
    if (code != EXIT_FINE) return code;
    if (!output) default_name(&subject.image.header, pid, name, sizeof name);
    /* if NVML's figures cannot be had, the snapshot does without them */
    if (nvml_image_ask(&subject.image, pid) < 0) nvml_image_clear(&subject.image.nvml);
    code = write_snapshot(&subject.image, output ? output : name);
    subject_close(&subject);
    if (code != EXIT_FINE) return code;
    puts(output ? output : name);
    return complain_finish(EXIT_FINE);
}

int cmd_snapshot(int argc, char **argv) {
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *output = NULL;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
        if (option == 'h') return cmd_snapshot_help();
        if (option != 'o') return complain_option("snapshot", option, argv);
        output = optarg;
    }
    if (argc - optind != 1) return complain_usage("snapshot", "one PID is needed");
    pid_t pid = process_parse(argv[optind]);
    if (!pid) return complain_usage("snapshot", "%s is not a PID", TEXT_SAFE(argv[optind]));
    return snapshot_take(pid, output);
}
