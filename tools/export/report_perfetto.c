/* report_perfetto.c — a report over time as a trace for Perfetto; see export.h and perfetto.h.
 *
 * The trace shows counters, slices and instants. Counters have values at the times of which the file has figures: the
 * points of its history, the readings of `memstow leaks --series`, the peak, the time before and after each trigger (a
 * moment at which memory is put away), and now. Slices show triggers, and the lives of runs, nodes and models. Instants
 * show decisions, and the marks of the history.
 *
 * If the report has several files, they are snapshots of one process. The trace then has the counters of all files, and
 * the slices and instants of the last file only. */
#include "tools/base/complain.h"
#include "tools/decisions/decisions.h"
#include "tools/export/export.h"
#include "tools/export/perfetto.h"
#include "tools/leaks/series.h"
#include "tools/reader/cuda_image.h"
#include "tools/views/history.h"
#include "tools/views/roster.h"

#include <inttypes.h>
#include <stdlib.h>

/* The upper 32 bits of a track's number are one of these kinds. The lower 32 bits are the id of an owner, the index of
 * a device, the number of a lane (one of several tracks for slices that overlap), or 0. */
enum track_kind {
    TRACK_MEMORY = 2,
    TRACK_HEAP,
    TRACK_MAPPED,
    TRACK_READINGS,
    TRACK_RSS,
    TRACK_DEVICE,
    TRACK_DRIVER,
    TRACK_OWNERS,
    TRACK_OWNER,
    TRACK_OWNER_ON_DEVICES,
    TRACK_LANES, /* lanes for each kind of owner */
    TRACK_TRIGGERS = TRACK_LANES + 16,
    TRACK_DECISIONS,
    TRACK_MARKS,
};
enum { LANES_MOST = 256, OWNERS_MOST = 1000 };

struct tracing {
    const struct report *report;
    const struct image *image;
    struct perfetto perfetto;
    struct history history;
    struct roster roster; /* owners with the most memory first */
    uint8_t *counted;     /* for each owner of the image: how many counters it has, 0 to 2; the second is for devices */
    size_t slices_left_out;
};

static uint64_t track_of(enum track_kind kind, uint64_t number) { return (uint64_t)kind << 32 | (uint32_t)number; }

static size_t index_of(const struct tracing *self, const struct snap_owner *owner) {
    return (size_t)(owner - self->image->owners);
}

static struct text_line report_perfetto_owner_name(const struct tracing *self, const struct snap_owner *owner) {
    struct text_line name;
    const char *text = image_string(self->image, owner->name), *origin = image_string(self->image, owner->origin);
    snprintf(name.s, sizeof name.s, *origin ? "%s:%.500s (%.400s)" : "%s:%.500s", roster_kind(owner), text, origin);
    return name;
}

/* ---- counters of the process and of devices */

static void count_now(struct tracing *self, enum track_kind kind, uint64_t number, const char *name, uint64_t bytes) {
    uint64_t track = track_of(kind, number);
    perfetto_counter(&self->perfetto, track, PERFETTO_PROCESS, name);
    perfetto_count(&self->perfetto, track, self->perfetto.last_ns, bytes);
}

/* Writes the process's memory at its start, at its peak and at the end of the report's time. If two values have the
 * same time, the value that is written later counts. */
static void count_memory(struct tracing *self) {
    const struct snap_header *header = &self->image->header;
    uint64_t track = track_of(TRACK_MEMORY, 0);
    perfetto_counter(&self->perfetto, track, PERFETTO_PROCESS, "live bytes");
    perfetto_count(&self->perfetto, track, header->start_ns, header->inherited_bytes);
    if (header->total_peak_ns) perfetto_count(&self->perfetto, track, header->total_peak_ns, image_peak(self->image));
    perfetto_count(&self->perfetto, track, self->perfetto.last_ns,
                   self->image->host.live_bytes + self->image->mapped.live_bytes);
    if (self->image->rss) count_now(self, TRACK_RSS, 0, "resident bytes (RSS)", self->image->rss);
}

static void count_history(struct tracing *self) {
    const struct history *history = &self->history;
    struct perfetto *to = &self->perfetto;
    uint64_t memory = track_of(TRACK_MEMORY, 0), heap = track_of(TRACK_HEAP, 0), mapped = track_of(TRACK_MAPPED, 0);
    if (history->point_count) {
        perfetto_counter(to, heap, PERFETTO_PROCESS, "live bytes of the heap");
        perfetto_counter(to, mapped, PERFETTO_PROCESS, "live bytes of mappings");
    }
    for (size_t i = 0; i < history->point_count; i++) {
        const struct snap_point *point = &history->points[i];
        perfetto_count(to, memory, point->time_ns, history_bytes(point));
        perfetto_count(to, heap, point->time_ns, point->host);
        perfetto_count(to, mapped, point->time_ns, point->mapped);
    }
    for (size_t i = 0; i < self->image->cuda_point_count; i++)
        for (size_t k = 0; k < SNAP_POINT_DEVICES && k < self->image->cuda.device_count; k++)
            if (self->image->cuda.devices[k].used)
                perfetto_count(to, track_of(TRACK_DEVICE, k), self->image->cuda_points[i].time_ns,
                               self->image->cuda_points[i].live[k]);
}

/* Writes the resident memory that the marks of the history give. A mark whose `rss` is 0 gives none. */
static void count_resident(struct tracing *self) {
    uint64_t track = track_of(TRACK_RSS, 0);
    bool declared = self->image->rss != 0;
    for (size_t i = 0; i < self->history.mark_count; i++) {
        const struct snap_mark *mark = &self->history.marks[i];
        if (!mark->rss) continue;
        if (!declared) perfetto_counter(&self->perfetto, track, PERFETTO_PROCESS, "resident bytes (RSS)");
        declared = true;
        perfetto_count(&self->perfetto, track, mark->time_ns, mark->rss);
    }
}

static void count_devices(struct tracing *self) {
    const struct cuda_image *cuda = &self->image->cuda;
    char name[128];
    for (size_t i = 0; i < cuda->device_count; i++) {
        const struct snap_cuda_device *device = &cuda->devices[i];
        if (!device->used) continue;
        snprintf(name, sizeof name, "CUDA device %zu: live bytes", i);
        count_now(self, TRACK_DEVICE, i, name, device->live > 0 ? (uint64_t)device->live : 0);
        struct cuda_gap gap = cuda_gap(device);
        if (!gap.known) continue;
        snprintf(name, sizeof name, "CUDA device %zu: in use, by the driver", i);
        perfetto_counter(&self->perfetto, track_of(TRACK_DRIVER, i), PERFETTO_PROCESS, name);
        perfetto_count(&self->perfetto, track_of(TRACK_DRIVER, i), device->figures_ns, gap.used);
    }
}

/* Writes the live bytes at the readings of a series: host and devices together. */
static int count_readings(struct tracing *self) {
    static struct leak_sites readings;
    uint64_t track = track_of(TRACK_READINGS, 0);
    leak_sites_begin(&readings);
    int result = series_unpack(&readings, self->image);
    if (result == 0 && readings.point_count)
        perfetto_counter(&self->perfetto, track, PERFETTO_PROCESS, "live bytes after each run");
    for (uint32_t i = 0; result == 0 && i < readings.point_count; i++)
        perfetto_count(&self->perfetto, track, readings.points[i].taken_ns, readings.points[i].live_bytes);
    leak_sites_end(&readings);
    return result;
}

/* ---- counters of owners; a run has a counter only if it holds memory now */

static bool wants_counter(const struct roster_row *row) {
    return row->owner->kind != SNAP_OWNER_RUN || row->live_bytes || row->cuda_bytes;
}

/* The index of the owner's first mark, or of the place where it would be: marks are sorted by owner. */
static size_t first_mark_of(const struct history *history, uint32_t owner) {
    size_t low = 0, high = history->owner_mark_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history->owner_marks[middle].owner < owner)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool was_on_devices(const struct tracing *self, const struct roster_row *row) {
    const struct snap_owner_mark *marks = self->history.owner_marks;
    size_t i = first_mark_of(&self->history, row->owner->id), end = self->history.owner_mark_count;
    for (; i < end && marks[i].owner == row->owner->id; i++)
        if (marks[i].on_devices) return true;
    return row->cuda_bytes;
}

static void count_owner(struct tracing *self, const struct roster_row *row) {
    const struct snap_owner *owner = row->owner;
    struct text_line name = report_perfetto_owner_name(self, owner), on_devices;
    uint64_t track = track_of(TRACK_OWNER, owner->id), device = track_of(TRACK_OWNER_ON_DEVICES, owner->id);
    self->counted[index_of(self, owner)] = 1;
    perfetto_counter(&self->perfetto, track, track_of(TRACK_OWNERS, 0), name.s);
    perfetto_count(&self->perfetto, track, owner->begin_ns, 0);
    if (!was_on_devices(self, row)) return;
    self->counted[index_of(self, owner)] = 2;
    snprintf(on_devices.s, sizeof on_devices.s, "%.900s on CUDA devices", name.s);
    perfetto_counter(&self->perfetto, device, track_of(TRACK_OWNERS, 0), on_devices.s);
    perfetto_count(&self->perfetto, device, owner->begin_ns, 0);
}

static void count_owners(struct tracing *self) {
    size_t most = self->report->top == SIZE_MAX ? OWNERS_MOST : self->report->top, shown = 0, more = 0;
    if (self->roster.count) perfetto_track(&self->perfetto, track_of(TRACK_OWNERS, 0), PERFETTO_PROCESS, "owners");
    for (size_t i = 0; i < self->roster.count; i++) {
        if (!wants_counter(&self->roster.rows[i])) continue;
        if (shown == most) {
            more++;
            continue;
        }
        count_owner(self, &self->roster.rows[i]);
        shown++;
    }
    if (more)
        complain("%s owner%s no counter (--top=N: N have one)", text_count(more).s,
                 more == 1 ? " that holds least has" : "s that hold least have");
}

/* Writes what owners had at the marks of the history. */
static void count_owner_marks(struct tracing *self) {
    for (size_t i = 0; i < self->history.owner_mark_count; i++) {
        const struct snap_owner_mark *mark = &self->history.owner_marks[i];
        const struct snap_owner *owner = image_owner(self->image, mark->owner);
        uint8_t counted = owner ? self->counted[index_of(self, owner)] : 0;
        if (counted) perfetto_count(&self->perfetto, track_of(TRACK_OWNER, owner->id), mark->time_ns, mark->live);
        if (counted == 2)
            perfetto_count(&self->perfetto, track_of(TRACK_OWNER_ON_DEVICES, owner->id), mark->time_ns,
                           mark->on_devices);
    }
}

/* Writes the bytes that owners have at the end of the report's time. Call this last, because the values from triggers
 * have earlier times. */
static void count_owners_now(struct tracing *self) {
    for (size_t i = 0; i < self->roster.count; i++) {
        const struct roster_row *row = &self->roster.rows[i];
        uint8_t counted = self->counted[index_of(self, row->owner)];
        uint64_t now = self->perfetto.last_ns;
        if (counted) perfetto_count(&self->perfetto, track_of(TRACK_OWNER, row->owner->id), now, row->live_bytes);
        if (counted == 2)
            perfetto_count(&self->perfetto, track_of(TRACK_OWNER_ON_DEVICES, row->owner->id), now, row->cuda_bytes);
    }
}

/* ---- slices of owners; slices that overlap go to different lanes, because slices of one track must not overlap */

static int by_begin(const void *left, const void *right) {
    const struct snap_owner *a = *(const struct snap_owner *const *)left, *b = *(const struct snap_owner *const *)right;
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static uint64_t end_of(const struct tracing *self, const struct snap_owner *owner) {
    uint64_t end = roster_is_retired(owner) && owner->end_ns ? owner->end_ns : self->perfetto.last_ns;
    return end > owner->begin_ns ? end : owner->begin_ns;
}

static void put_slice(struct tracing *self, uint64_t track, const struct snap_owner *owner) {
    const char *outcome = roster_outcome(owner), *policy = roster_policy(owner);
    struct perfetto_note notes[PERFETTO_NOTES] = {{"owner", NULL, owner->id}, {"state", roster_state(owner), 0}};
    int count = 2;
    if (outcome) notes[count++] = (struct perfetto_note){"outcome", outcome, 0};
    if (policy) notes[count++] = (struct perfetto_note){"policy", policy, 0};
    perfetto_begin(&self->perfetto, track, owner->begin_ns, report_perfetto_owner_name(self, owner).s, notes, count);
    perfetto_end(&self->perfetto, track, end_of(self, owner));
}

/* The first lane that is free at the time `begin`. If all are in use, it is `lanes`, the number of a new lane. */
static size_t find_lane(const uint64_t *ends, size_t lanes, uint64_t begin) {
    size_t lane = 0;
    while (lane < lanes && ends[lane] > begin) lane++;
    return lane;
}

static void put_lanes(struct tracing *self, const struct snap_owner **owners, size_t count, const char *name) {
    uint64_t ends[LANES_MOST];
    size_t lanes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t lane = find_lane(ends, lanes, owners[i]->begin_ns);
        uint64_t track = track_of((enum track_kind)(TRACK_LANES + owners[i]->kind), lane);
        if (lane == LANES_MOST) {
            self->slices_left_out++;
            continue;
        }
        if (lane == lanes) {
            perfetto_track(&self->perfetto, track, PERFETTO_PROCESS, name);
            lanes++;
        }
        ends[lane] = end_of(self, owners[i]);
        put_slice(self, track, owners[i]);
    }
}

static int put_owners(struct tracing *self) {
    static const char *const names[] = {NULL, "models", "nodes", "runs", "customs", "states"};
    const struct snap_owner **owners = calloc(self->image->owner_count + 1, sizeof *owners);
    for (uint32_t kind = 1; owners && kind < sizeof names / sizeof *names; kind++) {
        size_t count = 0;
        for (size_t i = 0; i < self->image->owner_count; i++)
            if (self->image->owners[i].kind == kind && self->image->owners[i].begin_ns)
                owners[count++] = &self->image->owners[i];
        qsort(owners, count, sizeof *owners, by_begin);
        put_lanes(self, owners, count, names[kind]);
    }
    free(owners);
    if (self->slices_left_out)
        complain("%s owners have no slice: more than %d live at the same time", text_count(self->slices_left_out).s,
                 LANES_MOST);
    return owners ? 0 : -1;
}

/* ---- triggers and decisions */

static bool report_perfetto_has(const struct event *event, enum event_number number) {
    return event->given >> number & 1;
}

static const struct snap_owner *owner_of(const struct tracing *self, const struct event *event) {
    uint64_t id = event->numbers[NUMBER_OWNER];
    return id <= UINT32_MAX ? image_owner(self->image, (uint32_t)id) : NULL;
}

static void count_event(struct tracing *self, const struct event *event, enum event_number host,
                        enum event_number device) {
    const struct snap_owner *owner = owner_of(self, event);
    uint8_t counted = owner ? self->counted[index_of(self, owner)] : 0;
    if (counted && report_perfetto_has(event, host))
        perfetto_count(&self->perfetto, track_of(TRACK_OWNER, owner->id), event->t, event->numbers[host]);
    if (counted == 2)
        perfetto_count(&self->perfetto, track_of(TRACK_OWNER_ON_DEVICES, owner->id), event->t, event->numbers[device]);
}

static void put_decision(struct tracing *self, const struct event *event) {
    const char *action = decisions_policy(event->words[WORD_ACTION]);
    const struct snap_owner *owner = owner_of(self, event);
    char why[64];
    struct text_line name;
    decisions_text(event, "why", why, sizeof why);
    snprintf(name.s, sizeof name.s, "%s %.900s", action,
             owner ? report_perfetto_owner_name(self, owner).s : "(unknown owner)");
    const struct perfetto_note notes[] = {{"policy", decisions_policy(event->words[WORD_POLICY]), 0},
                                          {"why", why, 0},
                                          {"bytes", NULL, event->numbers[NUMBER_BYTES]},
                                          {"device_bytes", NULL, event->numbers[NUMBER_DEVICE_BYTES]}};
    perfetto_instant(&self->perfetto, track_of(TRACK_DECISIONS, 0), event->t, name.s, notes, 4);
}

/* Writes a trigger as a slice. The slice does not begin before the time `before`, the end of the previous slice.
 * Returns the time at which the slice ends. */
static uint64_t put_trigger(struct tracing *self, const struct decisions *decisions, const struct trigger *trigger,
                            uint64_t before) {
    const struct event *event = &decisions->events[trigger->event];
    const struct event *act = trigger->act ? &decisions->events[trigger->act] : event;
    uint64_t track = track_of(TRACK_TRIGGERS, 0);
    uint64_t begin = report_perfetto_has(event, NUMBER_BEGAN) ? event->numbers[NUMBER_BEGAN] : event->t;
    if (begin < before) begin = before;
    uint64_t end = act->t > begin ? act->t : begin;
    char reason[64], text[256];
    decisions_text(event, "reason", reason, sizeof reason);
    decisions_text(event, "text", text, sizeof text);
    const struct perfetto_note notes[] = {{"text", text, 0},
                                          {"owners", NULL, event->numbers[NUMBER_OWNERS]},
                                          {"before_bytes", NULL, event->numbers[NUMBER_BEFORE]},
                                          {"after_bytes", NULL, act->numbers[NUMBER_AFTER]},
                                          {"finished", trigger->act ? "yes" : "no", 0}};
    perfetto_begin(&self->perfetto, track, begin, *reason ? reason : "trigger", notes, 5);
    perfetto_end(&self->perfetto, track, end);
    return end;
}

static void put_events(struct tracing *self, const struct decisions *decisions) {
    for (size_t i = 0; i < decisions->event_count; i++) {
        const struct event *event = &decisions->events[i];
        if (event->foreign) continue;
        if (event->kind == EVENT_DECISION) {
            put_decision(self, event);
            count_event(self, event, NUMBER_BYTES, NUMBER_DEVICE_BYTES);
        }
        if (event->kind == EVENT_CATEGORY) count_event(self, event, NUMBER_AFTER, NUMBER_DEVICE_AFTER);
    }
}

static int put_trace(struct tracing *self) {
    struct decisions decisions;
    uint64_t before = 0;
    int result = decisions_load(&decisions, self->image);
    if (result == 0 && decisions.trigger_count) {
        perfetto_track(&self->perfetto, track_of(TRACK_TRIGGERS, 0), PERFETTO_PROCESS, "triggers");
        perfetto_track(&self->perfetto, track_of(TRACK_DECISIONS, 0), PERFETTO_PROCESS, "decisions");
        for (size_t i = 0; i < decisions.trigger_count; i++)
            before = put_trigger(self, &decisions, &decisions.triggers[i], before);
        put_events(self, &decisions);
    }
    decisions_clear(&decisions);
    return result;
}

/* Whether the mark is a trigger or a decision. Triggers and decisions have tracks of their own. */
static bool is_decision(const struct snap_mark *mark) {
    return mark->kind == SNAP_MARK_TRIGGER || mark->kind == SNAP_MARK_KEPT || mark->kind == SNAP_MARK_BLOCKED;
}

static void put_mark(struct tracing *self, const struct snap_mark *mark) {
    struct perfetto_note notes[PERFETTO_NOTES];
    const char *detail = history_detail(mark);
    int count = 0;
    if (mark->owner) notes[count++] = (struct perfetto_note){"owner", NULL, mark->owner};
    if (mark->bytes) notes[count++] = (struct perfetto_note){"bytes", NULL, mark->bytes};
    if (detail) notes[count++] = (struct perfetto_note){"detail", detail, 0};
    if (mark->kind == SNAP_MARK_OUT_OF_MEMORY) notes[count++] = (struct perfetto_note){"device", NULL, mark->detail};
    perfetto_instant(&self->perfetto, track_of(TRACK_MARKS, 0), mark->time_ns, history_words(&self->history, mark).s,
                     notes, count);
}

static void put_marks(struct tracing *self) {
    const struct snap_header *header = &self->image->header;
    uint64_t track = track_of(TRACK_MARKS, 0);
    perfetto_track(&self->perfetto, track, PERFETTO_PROCESS, "marks");
    perfetto_instant(&self->perfetto, track, header->start_ns, "memstow begins", NULL, 0);
    for (size_t i = 0; i < self->history.mark_count; i++)
        if (!is_decision(&self->history.marks[i])) put_mark(self, &self->history.marks[i]);
    perfetto_instant(&self->perfetto, track, self->perfetto.last_ns, report_state(self->image).s, NULL, 0);
}

/* ---- the whole trace */

static int write_counters(struct tracing *self) {
    perfetto_process(&self->perfetto, self->image->header.pid, self->image->header.name);
    count_memory(self);
    count_devices(self);
    if (!self->report->more) {
        count_history(self);
        count_resident(self);
    }
    count_owners(self);
    if (!self->report->more) count_owner_marks(self);
    return count_readings(self);
}

static int write_slices(struct tracing *self) {
    put_marks(self);
    int result = put_owners(self);
    return result == 0 ? put_trace(self) : result;
}

static uint64_t report_perfetto_later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The end of the report's time. The ledger of a killed process does not say when the process ended. For such a ledger
 * the latest known time is taken: that of the peak, an owner, a point, a mark or a line of the trace. */
static uint64_t last_known(const struct image *image) {
    uint64_t last = report_perfetto_later(image_now(image), image->header.start_ns);
    struct decisions decisions;
    if (image_knows_now(image)) return last;
    for (size_t i = 0; i < image->owner_count; i++)
        last = report_perfetto_later(last, report_perfetto_later(image->owners[i].begin_ns, image->owners[i].end_ns));
    if (image->point_count) last = report_perfetto_later(last, image->points[image->point_count - 1].time_ns);
    if (image->mark_count) last = report_perfetto_later(last, image->marks[image->mark_count - 1].time_ns);
    if (decisions_load(&decisions, image) == 0)
        for (size_t i = 0; i < decisions.event_count; i++) last = report_perfetto_later(last, decisions.events[i].t);
    decisions_clear(&decisions);
    return last;
}

int report_perfetto(const struct report *report) {
    struct tracing self = {.report = report, .image = report->image};
    self.perfetto = (struct perfetto){.first_ns = report->image->header.start_ns, .last_ns = last_known(report->image)};
    self.counted = calloc(report->image->owner_count + 1, 1);
    int result = self.counted ? roster_make(&self.roster, report->image) : -1;
    if (result == 0) result = history_make(&self.history, report->image);
    if (result == 0) result = write_counters(&self);
    if (result == 0 && !report->more) result = write_slices(&self);
    if (result == 0) count_owners_now(&self);
    if (result == -2) complain("damaged: a series that does not add up");
    roster_clear(&self.roster);
    history_clear(&self.history);
    free(self.counted);
    if (result == -2) return EXIT_UNREADABLE;
    return self.perfetto.failed ? -1 : result;
}
