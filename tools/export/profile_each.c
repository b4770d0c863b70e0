/* profile_each.c — writes each stack by itself; see profile.h. */
#include "tools/export/profile.h"
#include "tools/symbols/innermost.h"
#include "tools/views/stacks.h"

#include <stdio.h>

bool profile_each_skips(const struct profile *profile, uint32_t frame) {
    return profile->python && !innermost_is_python(profile->image, frame);
}

static void push_frame(const struct profile *profile, struct profile_sink *sink, uint32_t id) {
    if (profile_each_skips(profile, id)) return;
    const struct named_frame *frame = symbols_frame(profile->symbols, id);
    for (uint32_t i = frame->count; i--;) sink->push_function(sink, frame, &frame->symbols[i]);
}

static void put_part(const struct profile *profile, struct profile_sink *sink, const struct profile_part *part) {
    size_t count;
    const uint32_t *frames = stack_all(profile->image, part->stack, &count);
    const char *root = profile->roots[part->root];
    sink->used = 0;
    if (root) sink->push(sink, root);
    size_t before = sink->used;
    for (size_t i = count; i--;) push_frame(profile, sink, frames[i]);
    if (sink->used == before) sink->push(sink, part->nowhere);
    if (part->amounts[0] | part->amounts[1]) sink->put(sink, part->amounts);
}

static void profile_each_put_rest(const struct profile *profile, struct profile_sink *sink, size_t shown,
                                  struct profile_merged *merged) {
    uint64_t amounts[2] = {0, 0};
    char name[64];
    merged->more_count = profile->part_count - shown;
    for (size_t i = shown; i < profile->part_count; i++)
        for (int side = 0; side < 2; side++) amounts[side] += profile->parts[i].amounts[side];
    merged->more = amounts[0] + amounts[1];
    snprintf(name, sizeof name, "(%zu more)", merged->more_count);
    sink->used = 0;
    sink->push(sink, name);
    if (merged->more) sink->put(sink, amounts);
}

int profile_each(const struct profile *profile, struct profile_sink *sink, size_t shown,
                 struct profile_merged *merged) {
    *merged = (struct profile_merged){0};
    if (shown > profile->part_count) shown = profile->part_count;
    for (size_t i = 0; i < shown && !sink->failed; i++) put_part(profile, sink, &profile->parts[i]);
    if (shown < profile->part_count) profile_each_put_rest(profile, sink, shown, merged);
    return sink->failed ? -1 : 0;
}
