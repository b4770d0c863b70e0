/* perfetto.c — see perfetto.h. Timestamps are of CLOCK_MONOTONIC. A viewer shows them unchanged, because the trace has
 * no other clock. */
#include "tools/export/perfetto.h"
#include "perfetto.pb-c.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEQUENCE = 1, TEXT_COLUMNS = 200 };

static void put_packet(struct perfetto *perfetto, Perfetto__TracePacket *packet) {
    Perfetto__Trace trace = PERFETTO__TRACE__INIT;
    trace.n_packet = 1;
    trace.packet = &packet;
    packet->has_trusted_packet_sequence_id = true;
    packet->trusted_packet_sequence_id = SEQUENCE;
    uint8_t *bytes = malloc(perfetto__trace__get_packed_size(&trace));
    perfetto->failed |= !bytes;
    if (bytes) fwrite(bytes, 1, perfetto__trace__pack(&trace, bytes), stdout);
    free(bytes);
}

/* ---- writing tracks */

static void put_track(struct perfetto *perfetto, Perfetto__TrackDescriptor *track) {
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.track_descriptor = track;
    track->has_uuid = true;
    put_packet(perfetto, &packet);
}

void perfetto_process(struct perfetto *perfetto, uint32_t pid, const char *name) {
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
    struct text_line safe = text_fit(name, TEXT_COLUMNS);
    process.has_pid = true;
    process.pid = (int32_t)pid;
    process.process_name = safe.s;
    track.uuid = PERFETTO_PROCESS;
    track.process = &process;
    put_track(perfetto, &track);
}

static void put_named(struct perfetto *perfetto, uint64_t number, uint64_t parent, const char *name,
                      Perfetto__CounterDescriptor *counter) {
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    struct text_line safe = text_fit(name, TEXT_COLUMNS);
    track.uuid = number;
    track.has_parent_uuid = true;
    track.parent_uuid = parent;
    track.name = safe.s;
    track.counter = counter;
    put_track(perfetto, &track);
}

void perfetto_track(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name) {
    put_named(perfetto, track, parent, name, NULL);
}

void perfetto_counter(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name) {
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    counter.has_unit = true;
    counter.unit = PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES;
    put_named(perfetto, track, parent, name, &counter);
}

/* ---- writing events */

static void put_event(struct perfetto *perfetto, uint64_t ns, uint64_t track, Perfetto__TrackEvent__Type type,
                      Perfetto__TrackEvent *event) {
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.has_timestamp = true;
    packet.timestamp = ns < perfetto->first_ns ? perfetto->first_ns : ns > perfetto->last_ns ? perfetto->last_ns : ns;
    packet.track_event = event;
    event->has_type = event->has_track_uuid = true;
    event->type = type;
    event->track_uuid = track;
    put_packet(perfetto, &packet);
}

void perfetto_count(struct perfetto *perfetto, uint64_t track, uint64_t ns, uint64_t bytes) {
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    event.has_counter_value = true;
    event.counter_value = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
    put_event(perfetto, ns, track, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER, &event);
}

static void put_noted(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                      const struct perfetto_note *notes, int count, Perfetto__TrackEvent__Type type) {
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    Perfetto__DebugAnnotation list[PERFETTO_NOTES], *all[PERFETTO_NOTES];
    struct text_line safe = text_fit(name, TEXT_COLUMNS), texts[PERFETTO_NOTES];
    for (int i = 0; i < count; i++) {
        all[i] = &list[i];
        perfetto__debug_annotation__init(all[i]);
        list[i].name = (char *)notes[i].name;
        list[i].has_uint_value = !notes[i].text;
        list[i].uint_value = notes[i].number;
        if (!notes[i].text) continue;
        texts[i] = text_fit(notes[i].text, TEXT_COLUMNS);
        list[i].string_value = texts[i].s;
    }
    event.name = safe.s;
    event.n_debug_annotations = (size_t)count;
    event.debug_annotations = all;
    put_event(perfetto, ns, track, type, &event);
}

void perfetto_begin(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                    const struct perfetto_note *notes, int count) {
    put_noted(perfetto, track, ns, name, notes, count, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN);
}

void perfetto_end(struct perfetto *perfetto, uint64_t track, uint64_t ns) {
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    put_event(perfetto, ns, track, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, &event);
}

void perfetto_instant(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                      const struct perfetto_note *notes, int count) {
    put_noted(perfetto, track, ns, name, notes, count, PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT);
}
