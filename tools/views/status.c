/* status.c — see status.h. */
#include "tools/views/status.h"
#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"
#include "tools/subject/live.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_WIDTH = 80 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void status_begin(struct status *status, pid_t pid) { *status = (struct status){.pid = pid, .start_ns = now_ns()}; }

static void status_forget(struct status *status) {
    if (status->found) source_close(&status->source);
    status->found = false;
}

static bool header_look(struct status *status, struct snap_header *header) {
    static struct live live;
    char error[256];
    if (status->found && source_read(&status->source, 0, header, sizeof *header) == 0 && header->state != SNAP_EXECED)
        return true;
    status_forget(status); /* the program may have another ledger after an exec */
    if (live_open(&live, status->pid, error, sizeof error) < 0) return false;
    status->source = live.source;
    status->found = true;
    return source_read(&status->source, 0, header, sizeof *header) == 0;
}

/* Whether memstow is in the foreground. If not, the terminal belongs to another program. */
static bool in_foreground(void) { return tcgetpgrp(STDERR_FILENO) == getpgrp(); }

static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL_WIDTH;
}

/* Writes the text at the right end of the line, and puts the cursor back. `width`: columns of the text; `erased`:
 * columns of the old text. The last column stays free, because terminals differ in how they treat it. */
static void status_draw(const char *text, int width, int erased) {
    int columns = terminal_width();
    int column = columns - (width > erased ? width : erased);
    fprintf(stderr, "\0337\033[%dG\033[K\033[%dG%s\0338", column > 1 ? column : 1,
            columns - width > 1 ? columns - width : 1, text);
    fflush(stderr);
}

void status_tick(void *context) {
    struct status *status = context;
    struct snap_header header;
    char text[128];
    if (!in_foreground() || !header_look(status, &header)) return;
    uint64_t live = os_not_negative(header.host_live) + os_not_negative(header.mapped_live);
    uint64_t peak = header.total_peak > live ? header.total_peak : live;
    snprintf(text, sizeof text, "memstow: %s, %s live, peak %s", text_duration(now_ns() - status->start_ns).s,
             text_estimate(live).s, text_estimate(peak).s);
    struct text_line fitted = text_fit(text, terminal_width() - 1);
    int width = text_columns(fitted.s);
    status_draw(fitted.s, width, status->width);
    status->width = width;
}

void status_end(struct status *status) {
    status_forget(status);
    if (status->width && in_foreground()) status_draw("", 0, status->width);
    status->width = 0;
}
