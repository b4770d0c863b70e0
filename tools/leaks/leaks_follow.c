/* leaks_follow.c — see leaks_follow.h. The OWNER records of the ledger are read twenty times a second. The whole ledger
 * is read at the beginning, and whenever these records say that a run has ended. As long as they name no run that has
 * ended, the whole ledger is read every follow.every_ns nanoseconds. */
#include "tools/leaks/leaks_follow.h"
#include "tools/base/complain.h"
#include "tools/base/duration.h"
#include "tools/subject/live.h"
#include "tools/subject/outfile.h"
#include "tools/proc/process.h"
#include "tools/leaks/series.h"
#include "tools/base/text.h"
#include "tools/subject/writer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { LOOK_NS = 50 * 1000 * 1000, SECTIONS_MOST = 1 << 20 };
static const uint64_t WRITE_EVERY_NS = UINT64_C(5000000000), GRACE_NS = UINT64_C(1000000000);

static volatile sig_atomic_t asked_to_end;

static void end_soon(int signal) {
    (void)signal;
    asked_to_end = 1;
}

/* --- detecting the end of a run --- */

enum { OWNER_NEEDED = offsetof(struct snap_owner, adopted_by) };

static uint32_t ended_in(const struct source *source, uint64_t data, const struct snap_section *section) {
    uint32_t ended = 0;
    for (uint64_t i = 0; i < section->count; i++) {
        struct snap_owner owner; /* only the needed part: records of an older file are shorter */
        if (source_read(source, data + i * section->record_size, &owner, OWNER_NEEDED) < 0) break;
        ended += leak_run_has_ended(&owner);
    }
    return ended;
}

static uint32_t ended_runs(struct source *source) {
    uint64_t size = 0, offset = SNAP_HEADER_SIZE;
    uint32_t ended = 0;
    struct snap_section section;
    if (source_read(source, offsetof(struct snap_header, size), &size, sizeof size) < 0) return 0;
    if (size > source->size && source_refresh(source) < 0) return 0;
    for (int i = 0; i < SECTIONS_MOST && source_read(source, offset, &section, sizeof section) == 0; i++) {
        if (section.length < sizeof section || section.length > size - offset) break;
        if (section.type == SNAP_OWNER && section.record_size >= OWNER_NEEDED)
            ended += ended_in(source, offset + sizeof section, &section);
        offset += section.length;
        if (offset >= size) break;
    }
    return ended;
}

/* --- taking readings, and writing the series --- */

static int no_memory(void) {
    complain("not enough memory");
    return EXIT_UNREADABLE;
}

/* A reading that may have to be dropped. It is dropped if the process ends within GRACE_NS, because a process that is
 * about to end frees the memory that it leaks. */
struct pending {
    struct subject subject;
    bool there;
    uint64_t taken_ns;
    uint32_t ended; /* number of runs that had ended when the reading was taken */
};
static struct pending pending;

static void drop_pending(void) {
    if (pending.there) subject_close(&pending.subject);
    pending.there = false;
}

/* Makes the pending reading (if there is one) the open subject, and adds a point if it would be the first, if a run has
 * ended since the last point, or if no run has ever ended. Returns an exit code. */
static int take_pending(struct subject *subject, struct leak_sites *sites) {
    if (!pending.there) return EXIT_FINE;
    subject_close(subject);
    *subject = pending.subject;
    pending.there = false;
    if (leak_sites_read(sites, &subject->image) < 0) return no_memory();
    if (sites->point_count && sites->run_count && sites->run_count <= sites->ended) return EXIT_FINE;
    return leak_sites_point(sites, &subject->image) < 0 ? no_memory() : EXIT_FINE;
}

static int take_reading(pid_t pid, struct subject *subject, struct leak_sites *sites, uint32_t ended) {
    int code = take_pending(subject, sites);
    if (code == EXIT_FINE) code = subject_open_pid(&pending.subject, pid, false);
    if (code != EXIT_FINE) return code;
    pending.there = true;
    pending.taken_ns = duration_now();
    pending.ended = ended;
    return EXIT_FINE;
}

/* Drops the pending reading if the process ended soon after it; otherwise takes it. The first reading is always taken.
 * Called when nothing more is to be followed. Returns an exit code. */
static int reading_settle(struct subject *subject, struct leak_sites *sites, bool is_gone) {
    bool too_late = is_gone && sites->point_count && duration_now() - pending.taken_ns < GRACE_NS;
    if (!too_late) return take_pending(subject, sites);
    drop_pending();
    return EXIT_FINE;
}

static int write_series(const struct follow *self, struct subject *subject, struct leak_sites *sites) {
    static struct new_file file;
    char error[4400];
    if (leak_entries_sort(&sites->moved, sites->count, sites->point_count) < 0 ||
        series_pack(sites, &subject->image) < 0)
        return no_memory();
    if (outfile_begin(&file, self->file, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_UNREADABLE;
    }
    if (writer_snapshot(&subject->image, file.stream) < 0) {
        complain("%s: %s", TEXT_SAFE(self->file), strerror(errno));
        new_file_end(&file, false);
        return EXIT_UNREADABLE;
    }
    if (outfile_end(&file, true, error, sizeof error) == 0) return EXIT_FINE;
    complain("%s", error);
    return EXIT_UNREADABLE;
}

/* --- following the process through its programs --- */

static bool went_on(const struct source *ledger) {
    uint32_t state = 0;
    source_read(ledger, offsetof(struct snap_header, state), &state, sizeof state);
    return state == SNAP_EXECED;
}

/* Whether it is time for a reading. `ended`: how many runs have ended. */
static bool is_due(const struct follow *self, uint32_t ended) {
    return ended > pending.ended || (!ended && duration_now() - pending.taken_ns >= self->every_ns);
}

/* Takes a reading after each run. As long as no run has ended, takes a reading from time to time. Goes on until the
 * wanted runs have ended, a signal comes, or the process has ended or become another program. Returns an exit code. */
static int go_on(const struct follow *self, struct source *ledger, struct subject *subject, struct leak_sites *sites) {
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    const struct snap_header process = pending.subject.image.header;
    uint32_t before = pending.ended, ended = before;
    uint64_t written = 0;
    while (!asked_to_end && process_wrote(&process) && !went_on(ledger) &&
           !(self->runs && ended - before >= self->runs)) {
        if (!is_due(self, ended = ended_runs(ledger))) {
            nanosleep(&pause, NULL);
            continue;
        }
        int code = take_reading(self->pid, subject, sites, ended);
        if (code != EXIT_FINE) return process_wrote(&process) ? code : reading_settle(subject, sites, true);
        if (duration_now() - written < WRITE_EVERY_NS) continue;
        if ((code = write_series(self, subject, sites)) != EXIT_FINE) return code;
        written = duration_now();
    }
    return reading_settle(subject, sites, !process_wrote(&process));
}

static int open_ledger(const struct follow *self, struct live *live) {
    char error[256];
    if (live_open(live, self->pid, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_UNREADABLE;
    }
    int result = source_map(&live->source);
    if (result < 0) complain("process %d: %s", (int)self->pid, strerror(-result));
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* Follows one program of the process. *again at the call: an exec began this program, and its ledger appears a moment
 * later. *again at the return: an exec has begun another program. */
static int follow_program(const struct follow *self, struct subject *subject, struct leak_sites *sites, bool *again) {
    static struct live live;
    const struct timespec moment = {.tv_nsec = 5 * LOOK_NS};
    if (*again) nanosleep(&moment, NULL);
    int code = open_ledger(self, &live);
    if (code != EXIT_FINE) return code;
    code = take_reading(self->pid, subject, sites, ended_runs(&live.source));
    if (code == EXIT_FINE) code = go_on(self, &live.source, subject, sites);
    *again = code == EXIT_FINE && !asked_to_end && went_on(&live.source);
    source_close(&live.source);
    return code;
}

int leaks_follow(const struct follow *self, struct subject *subject, struct leak_sites *sites) {
    char error[4400];
    struct sigaction action = {.sa_handler = end_soon};
    bool again = false;
    int code;
    if (outfile_check(self->file, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_USAGE;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    do {
        leak_sites_end(sites);
        drop_pending();
        code = follow_program(self, subject, sites, &again);
    } while (code == EXIT_FINE && again);
    drop_pending();
    return code == EXIT_FINE ? write_series(self, subject, sites) : code;
}
