/* html_segments.c — see html_segments.h. */
#include "tools/html/html_segments.h"
#include "tools/base/list.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_lines(const uint32_t *lines, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) hash = (hash ^ lines[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static size_t segment_begin(const struct html_segments *self, size_t segment) {
    return segment ? self->end[segment - 1] : 0;
}

static bool segment_is(const struct html_segments *self, uint32_t segment, const uint32_t *lines, size_t count) {
    size_t first = segment_begin(self, segment);
    return self->end[segment] - first == count && memcmp(self->words + first, lines, count * sizeof *lines) == 0;
}

static bool segments_grow(struct html_segments *self) {
    if (!LIST_GROW(self->end, self->count, self->capacity) || !slots_renew(&self->slots, self->capacity)) return false;
    for (size_t i = 0; i < self->count; i++) {
        size_t first = segment_begin(self, i);
        slots_enter(&self->slots, hash_lines(self->words + first, self->end[i] - first), i);
    }
    return true;
}

bool html_segments_number(struct html_segments *self, const uint32_t *lines, size_t count, uint32_t *number) {
    if ((self->count == self->slots.count / 2 && !segments_grow(self)) ||
        !list_grow(&self->words, sizeof *self->words, self->word_count, count, &self->word_capacity))
        return false;
    size_t slot = slots_first(&self->slots, hash_lines(lines, count));
    for (; (*number = self->slots.list[slot]); slot = slots_next(&self->slots, slot))
        if (segment_is(self, --*number, lines, count)) return true;
    if (count) memcpy(self->words + self->word_count, lines, count * sizeof *lines);
    self->word_count += count;
    *number = (uint32_t)self->count;
    self->end[self->count++] = (uint32_t)self->word_count;
    self->slots.list[slot] = (uint32_t)self->count;
    return true;
}

void html_segments_clear(struct html_segments *self) {
    free(self->slots.list);
    self->slots = (struct slots){0};
    self->count = self->word_count = 0;
}

void html_segments_end(struct html_segments *self) {
    html_segments_clear(self);
    free(self->end);
    free(self->words);
}

static void write_lengths(const struct html_segments *self, struct html_out *out) {
    html_column_begin(out, "segments", "length", "numbers", self->count);
    for (size_t i = 0; i < self->count; i++) html_column_put(out, self->end[i] - segment_begin(self, i));
    html_column_end(out);
}

/* Writes the lines of all segments. A line B that comes after a line A is written as 0 if B also came after A the last
 * time that A was written. Otherwise B is written as 1 + its number. For the very first line, A is line 0. */
static int write_words(const struct html_segments *self, size_t line_count, struct html_out *out) {
    uint32_t *followers = calloc(line_count + 1, sizeof *followers), before = 0;
    html_column_begin(out, "segments", "lines", "followers", self->word_count);
    for (size_t i = 0; followers && i < self->word_count; i++) {
        uint32_t line = self->words[i];
        html_column_put(out, followers[before] == line ? 0 : line + UINT64_C(1));
        followers[before] = line;
        before = line;
    }
    html_column_end(out);
    free(followers);
    return followers ? 0 : -1;
}

int html_segments_write(const struct html_segments *self, size_t line_count, struct html_out *out) {
    write_lengths(self, out);
    return write_words(self, line_count, out);
}
