/* status.c — the live one-line status of `memstow run` on a terminal; see status.h. */
#include "status.h"
#include "live.h"
#include "reader.h"
#include "text.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void status_begin(struct status *status, pid_t pid) { *status = (struct status){.pid = pid, .start_ns = now_ns()}; }

static void forget(struct status *status) {
    if (status->found) source_close(&status->source);
    status->found = false;
}

static bool look(struct status *status, struct snap_header *header) {
    static struct live live;
    char error[256];
    if (status->found && source_read(&status->source, 0, header, sizeof *header) == 0 && header->state != SNAP_EXECED)
        return true;
    forget(status); /* after an exec there is another ledger */
    if (live_open(&live, status->pid, error, sizeof error) < 0) return false;
    status->source = live.source;
    status->found = true;
    return source_read(&status->source, 0, header, sizeof *header) == 0;
}

static uint64_t not_negative(int64_t value) { return value > 0 ? (uint64_t)value : 0; }

/* In the background the terminal belongs to somebody else. */
static bool in_foreground(void) { return tcgetpgrp(STDERR_FILENO) == getpgrp(); }

void status_tick(void *context) {
    struct status *status = context;
    struct snap_header header;
    if (!in_foreground() || !look(status, &header)) return;
    uint64_t live = not_negative(header.host_live) + not_negative(header.mapped_live);
    uint64_t peak = header.total_peak > live ? header.total_peak : live;
    fprintf(stderr, "\r\033[Kmemstow: %s, %s live, peak %s", text_duration(now_ns() - status->start_ns).s,
            text_estimate(live).s, text_estimate(peak).s);
    fflush(stderr);
    status->shown = true;
}

void status_end(struct status *status) {
    forget(status);
    if (status->shown && in_foreground()) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    status->shown = false;
}
