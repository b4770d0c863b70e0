/* subject.c — see subject.h. */
#include "tools/subject/subject.h"
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/subject/live.h"
#include "tools/subject/measure.h"
#include "tools/proc/process.h"
#include "tools/reader/image_load.h"
#include "tools/reader/reader.h"
#include "tools/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int subject_unreadable(const char *what, const char *why) {
    complain("%s: %s", TEXT_SAFE(what), why);
    return EXIT_UNREADABLE;
}

typedef int loader(struct image *image, struct source *source, bool live);

/* Loads the image from the source, and closes the source. */
static int subject_load(struct subject *subject, loader *load, struct source *source, const char *what, bool live) {
    int result = load(&subject->image, source, live);
    source_close(source);
    return result < 0 ? subject_unreadable(what, subject->image.error) : EXIT_FINE;
}

static int open_running(struct subject *subject, loader *load, pid_t pid, bool with_residency) {
    static struct live live;
    char error[256];
    memset(subject, 0, sizeof *subject);
    if (live_open(&live, pid, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_UNREADABLE;
    }
    char what[32];
    snprintf(what, sizeof what, "process %d", (int)pid);
    snprintf(subject->file, sizeof subject->file, "%s", live.path);
    subject->pid = pid;
    int result = source_map(&live.source);
    if (result < 0) return subject_unreadable(what, strerror(-result));
    int code = subject_load(subject, load, &live.source, what, true);
    if (code == EXIT_FINE && with_residency) measure_residency(&subject->image, pid);
    return code;
}

int subject_open_pid(struct subject *subject, pid_t pid, bool with_residency) {
    return open_running(subject, image_load, pid, with_residency);
}

int subject_open_figures(struct subject *subject, pid_t pid) {
    return open_running(subject, image_load_figures, pid, true);
}

static bool still_written(const struct source *source) {
    struct snap_header header;
    char error[160];
    return reader_header(&header, source, error, sizeof error) == 0 && header.kind == SNAP_LEDGER &&
           header.state == SNAP_RUNNING && process_wrote(&header);
}

/* Opens a file. A ledger that a process is writing is mapped, so that its words are read whole. Any other file is read,
 * because a mapping would fail if the file were cut short meanwhile. */
static int open_file(struct subject *subject, const char *path, bool with_residency) {
    struct source source;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return subject_unreadable(path, strerror(errno));
    int result = source_file(&source, fd);
    if (result < 0) return subject_unreadable(path, result == -EINVAL ? "not a regular file" : strerror(-result));
    bool live = still_written(&source);
    if (live) {
        result = source_map(&source);
        if (result < 0) return subject_unreadable(path, strerror(-result));
    }
    snprintf(subject->file, sizeof subject->file, "%s", path);
    int code = subject_load(subject, image_load, &source, path, live);
    if (code == EXIT_FINE && live) {
        subject->pid = (pid_t)subject->image.header.pid;
        if (with_residency) measure_residency(&subject->image, subject->pid);
    }
    return code;
}

int subject_open(struct subject *subject, const char *argument, bool with_residency) {
    pid_t pid = process_parse(argument);
    memset(subject, 0, sizeof *subject);
    if (!*argument) return subject_unreadable("''", "not a file name, and no PID");
    progress_say("reading %s", argument);
    return pid ? subject_open_pid(subject, pid, with_residency) : open_file(subject, argument, with_residency);
}

int subject_check_order(const char *command, const struct subject *subject, const char *argument,
                        struct subject_before *before) {
    uint64_t now = image_now(&subject->image);
    if (before->taken_ns && !image_same_process(&subject->image.header, &before->header))
        return complain_usage(command, "%s is of another process than the file before it", TEXT_SAFE(argument));
    if (!image_knows_now(&subject->image) && now < before->taken_ns) now = before->taken_ns;
    if (now < before->taken_ns)
        return complain_usage(command, "%s was taken earlier than the file before it", TEXT_SAFE(argument));
    before->header = subject->image.header;
    before->taken_ns = now;
    return EXIT_FINE;
}

void subject_close(struct subject *subject) { image_clear(&subject->image); }
