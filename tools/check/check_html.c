/* check_html.c — a verdict as a page, together with the report of the last run; see check.h.
 * In: the ledgers of the last run. Out: one file. If the run had several processes, the report is of the process with
 * the highest peak. */
#include "tools/check/check.h"
#include "tools/base/complain.h"
#include "tools/proc/process.h"
#include "tools/reader/reader.h"
#include "tools/report/report.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 1 + the peak in the ledger, in bytes; 0: the file is not a ledger, or cannot be read. */
static uint64_t peak_of(const char *path) {
    struct source source;
    struct snap_header header;
    char why[160];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || source_file(&source, fd) < 0) return 0;
    uint64_t peak = reader_header(&header, &source, why, sizeof why) == 0 ? header.total_peak + 1 : 0;
    source_close(&source);
    return peak;
}

static bool find_highest(const char *folder, char *path, size_t size) {
    char candidate[5300];
    uint64_t most = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        snprintf(candidate, sizeof candidate, "%s/%s", folder, entry->d_name);
        uint64_t peak = peak_of(candidate);
        if (peak <= most) continue;
        most = peak;
        snprintf(path, size, "%s", candidate);
    }
    if (directory) closedir(directory);
    return most;
}

static bool find_ledger(const struct check *check, char *path, size_t size) {
    char folder[5000];
    if (check->comfy) snprintf(path, size, "%s/run-%04u.mst", check->folder, check->runs);
    if (check->comfy) return true;
    snprintf(folder, sizeof folder, "%s/run-%u", check->folder, check->runs_done);
    return find_highest(folder, path, size);
}

static int write_page(const struct check *check, struct subject *subject, const struct report_tab *tab) {
    struct report report = {.top = SIZE_MAX, .page = check->page, .tab = tab};
    report.measure = check->now.peak ? MEASURE_PEAK : MEASURE_LIVE;
    int code = EXIT_UNREADABLE;
    if (report_begin(&report, subject) == 0)
        code = report_html(&report);
    else
        complain("not enough memory");
    report_end(&report);
    return code;
}

int check_html(const struct check *check) {
    static struct subject subject;
    char path[5300];
    struct report_tab tab = {.name = "check", .in_front = true};
    if (!find_ledger(check, path, sizeof path)) {
        complain("the last run left no ledger: there is nothing to make a page of");
        return EXIT_UNREADABLE;
    }
    int code = subject_open(&subject, path, false);
    if (code != EXIT_FINE) return code;
    FILE *to = open_memstream(&tab.text, &tab.length);
    if (to) check_json(check, to);
    if (!to || fclose(to) != 0) {
        complain("not enough memory");
        code = EXIT_UNREADABLE;
    }
    if (code == EXIT_FINE) code = write_page(check, &subject, &tab);
    subject_close(&subject);
    free(tab.text);
    return code;
}
