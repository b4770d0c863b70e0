/* cmd_owners.c — memstow owners: lists the registered owners, their policies, and the memory of each. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/views/cuda_devices.h"
#include "tools/reader/nvml_image.h"
#include "tools/report/owners_json.h"
#include "tools/report/report.h"
#include "tools/views/roster.h"
#include "tools/subject/subject.h"
#include "tools/base/text.h"
#include "tools/views/vbars.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BEFORE_NAME = 67, CUDA_COLUMN = 13, NAME_LEAST = 12, WHOLE_NAME = 1000 };

static int cmd_owners_help(void) {
    puts("usage: memstow owners FILE|PID [--json]\n"
         "\n"
         "Lists the owners that a program has registered: models, nodes, runs and others,\n"
         "each with its policy, its priority, and its memory: live, stowed, and being\n"
         "moved. The largest come first. Owners that are gone and hold nothing are only\n"
         "counted.\n"
         "\n"
         "  --json   one JSON document with all of them, sizes in bytes\n"
         "\n"
         "A number is a PID; for a file of that name write ./NUMBER.\n"
         "Exit code: 0 fine, 2 wrong usage, 3 unreadable or damaged input.");
    return complain_finish(EXIT_FINE);
}

static double cmd_owners_share(const struct roster *roster, const struct roster_row *row) {
    return roster->live_bytes ? 100.0 * (double)row->live_bytes / (double)roster->live_bytes : 0;
}

static struct vbars vbars; /* comfy-aimdo's ranges in the file that is shown */

/* --- the owners as text --- */

static bool cmd_owners_is_shown(const struct roster_row *row) {
    return row->live_bytes || row->cuda_bytes || !roster_is_retired(row->owner);
}

/* Prints the figures of a row. `cuda`: the process uses devices, so there is a column for them. */
static void print_figures(const struct roster *roster, const struct roster_row *row, bool cuda) {
    printf("%11s %9s %5.1f %%  ", text_size(row->live_bytes).s, text_count(row->live_blocks).s,
           cmd_owners_share(roster, row));
    if (cuda) printf("%11s  ", text_size(row->cuda_bytes).s);
}

/* Adds the progress of the owner's move, if a move is under way. */
static void add_moving(char *more, size_t size, const struct image *image, const struct snap_owner *owner) {
    const struct roster_moving is = roster_moving(image, owner);
    if (is.wanted)
        snprintf(more, size, ", %s %s of %s", is.out ? "stowing" : "restoring", text_size(is.moved).s,
                 text_size(is.wanted).s);
    else if (is.now)
        snprintf(more, size, ", %s", is.out ? "stowing" : "restoring");
}

static void cmd_owners_print_row(const struct roster *roster, const struct roster_row *row, const struct image *image,
                                 int columns) {
    const struct snap_owner *owner = row->owner;
    const char *policy = roster_policy(owner), *origin = image_string(image, owner->origin);
    struct text_line named;
    snprintf(named.s, sizeof named.s, "%.500s  (%.500s)", image_string(image, owner->name), origin);
    printf("%7u %-6s %-7s %-6s %5d ", owner->id, roster_kind(owner), roster_state(owner), policy ? policy : "-",
           owner->priority);
    print_figures(roster, row, image->cuda.used);
    const struct roster_stowed is = roster_stowed(owner, row->live_bytes, row->cuda_bytes);
    const struct vbars_share managed = vbars_of(&vbars, owner->id);
    char more[240] = "";
    add_moving(more, sizeof more, image, owner);
    if (is.in_files + is.of_devices)
        snprintf(more + strlen(more), sizeof more - strlen(more), ", %s stowed",
                 text_size(is.in_files + is.of_devices).s);
    if (roster_outcome(owner)) snprintf(more + strlen(more), sizeof more - strlen(more), ", %s", roster_outcome(owner));
    if (managed.bytes)
        snprintf(more + strlen(more), sizeof more - strlen(more), ", %s of %s resident in comfy-aimdo's VBARs",
                 text_size(managed.resident_bytes).s, text_size(managed.bytes).s);
    int left = columns - (int)strlen(more);
    fputs(text_fit(*origin ? named.s : image_string(image, owner->name), left < NAME_LEAST ? NAME_LEAST : left).s,
          stdout);
    fputs(more, stdout);
    putchar('\n');
}

static void print_devices(const struct image *image) {
    struct cuda_line line;
    if (!image->cuda.used) return;
    cuda_line_head("");
    for (size_t i = 0; i < image->cuda.device_count; i++)
        if (cuda_line_of(image, i, &line)) cuda_line_text("", &line);
    putchar('\n');
}

static void cmd_owners_print_head(const struct roster *roster, const struct image *image) {
    char head[512], devices[64] = "";
    if (image->cuda.used)
        snprintf(devices, sizeof devices, ", and %s on CUDA devices", text_size(roster->cuda_bytes).s);
    snprintf(head, sizeof head, "%.64s[%u], %.200s: %s live in %s%s", TEXT_SAFE(image->header.name), image->header.pid,
             report_state(image).s, text_size(roster->live_bytes).s,
             text_block_count(image->host.live_blocks + image->mapped.live_blocks).s, devices);
    text_wrap(stdout, head, 0, 4);
    putchar('\n');
}

static void print_text(const struct roster *roster, const struct image *image) {
    int columns = isatty(STDOUT_FILENO) ? text_width() - BEFORE_NAME : WHOLE_NAME; /* for a pipe the name is not cut */
    size_t left_out = 0;
    bool cuda = image->cuda.used;
    if (cuda) columns -= CUDA_COLUMN;
    cmd_owners_print_head(roster, image);
    print_devices(image);
    if (!roster->count) {
        puts("no owner was ever registered");
        return;
    }
    printf("%7s %-6s %-7s %-6s %5s %11s %9s %7s  %s%s\n", "id", "kind", "state", "policy", "prio", "live", "blocks",
           "share", cuda ? "       CUDA  " : "", "name");
    for (size_t i = 0; i < roster->count; i++)
        if (cmd_owners_is_shown(&roster->rows[i]))
            cmd_owners_print_row(roster, &roster->rows[i], image, columns < NAME_LEAST ? NAME_LEAST : columns);
        else
            left_out++;
    printf("%35s ", "");
    print_figures(roster, &roster->untagged, cuda);
    puts("untagged");
    if (left_out) printf("\n%s retired owner%s nothing\n", text_count(left_out).s, left_out == 1 ? " holds" : "s hold");
}

static int owners_show(const char *argument, bool as_json) {
    static struct subject subject;
    struct roster roster;
    int code = subject_open(&subject, argument, false);
    if (code != EXIT_FINE) return code;
    if (nvml_image_ask(&subject.image, subject.pid) < 0 || roster_make(&roster, &subject.image) < 0) {
        complain("not enough memory");
        subject_close(&subject);
        return EXIT_UNREADABLE;
    }
    vbars_find(&subject.image, &vbars);
    if (as_json)
        owners_json(&roster, &subject.image, stdout);
    else
        print_text(&roster, &subject.image);
    roster_clear(&roster);
    subject_close(&subject);
    return complain_finish(EXIT_FINE);
}

int cmd_owners(int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool as_json = false;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_owners_help();
        if (option != 'j') return complain_option("owners", option, argv);
        as_json = true;
    }
    if (argc - optind != 1) return complain_usage("owners", "one FILE or PID is needed");
    return owners_show(argv[optind], as_json);
}
