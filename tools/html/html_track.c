/* html_track.c — see html_track.h. */
#include "tools/html/html_track.h"
#include "tools/base/list.h"
#include "tools/base/top.h"

#include <stdlib.h>
#include <string.h>

/* If there are too many changes, items that never had more than DROPPED_FIRST bytes are dropped. If that does
 * not remove enough changes, this number of bytes is made four times as large, and so on. */
enum { DROPPED_FIRST = 4095 };
enum { DROPPED = 1, HELD = 2 /* a dropped item held something at some moment */ };

void html_track_end(struct html_track *self) {
    free(self->moved.list);
    free(self->last);
    free(self->dropped);
    *self = (struct html_track){0};
}

/* ---- adding moments */

static int track_grow(struct html_track *self, size_t count) {
    if (count <= self->count) return 0;
    size_t more = count - self->count;
    if (!list_grow(&self->last, sizeof *self->last, self->count, more, &self->capacity) ||
        !list_grow(&self->dropped, sizeof *self->dropped, self->count, more, &self->dropped_capacity))
        return -1;
    memset(self->last + self->count, 0, more * sizeof *self->last);
    memset(self->dropped + self->count, 0, more * sizeof *self->dropped);
    self->count = count;
    return 0;
}

/* Returns the most bytes that each item had, or NULL if there is no memory. Adds up each item's changes, which are in
 * the order of time. */
static uint64_t *track_most(const struct html_track *self) {
    uint64_t *now = calloc(self->count + 1, sizeof *now), *most = calloc(self->count + 1, sizeof *most);
    for (size_t i = 0; now && most && i < self->moved.count; i++) {
        const struct leak_entry *entry = &self->moved.list[i];
        now[entry->site] += (uint64_t)entry->change.bytes;
        if (now[entry->site] > most[entry->site]) most[entry->site] = now[entry->site];
    }
    if (!now) free(most);
    uint64_t *result = now ? most : NULL;
    free(now);
    return result;
}

static size_t track_mark_small(struct html_track *self, const uint64_t *most, uint64_t small) {
    size_t left = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint8_t held = most[i] ? HELD : self->dropped[i] & HELD;
        self->dropped[i] = most[i] <= small ? DROPPED | held : 0;
    }
    for (size_t i = 0; i < self->moved.count; i++) left += !self->dropped[self->moved.list[i].site];
    self->small = small;
    return left;
}

/* Drops the smallest items, until at most half of the changes are left. */
static int track_drop_small(struct html_track *self) {
    uint64_t *most = track_most(self), small = DROPPED_FIRST;
    if (!most) return -1;
    /* The loop ends at the latest when all bits of `small` are set, because then every item is dropped. */
    while (track_mark_small(self, most, small) > LEAK_CHANGES_MOST / 2) small = small << 2 | 3;
    size_t kept = 0;
    for (size_t i = 0; i < self->moved.count; i++)
        if (!self->dropped[self->moved.list[i].site]) self->moved.list[kept++] = self->moved.list[i];
    self->moved.count = kept;
    free(most);
    return 0;
}

size_t html_track_dropped(const struct html_track *self) {
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++) count += self->dropped[i] == (DROPPED | HELD);
    return count;
}

/* Notes the bytes of an item. Returns the change, or 0 if the item is dropped and still small. */
static int64_t track_change(struct html_track *self, size_t item, uint64_t bytes) {
    uint64_t before = self->dropped[item] ? 0 : self->last[item];
    self->last[item] = bytes;
    if (self->dropped[item] && bytes <= self->small) {
        if (bytes) self->dropped[item] |= HELD;
        return 0;
    }
    self->dropped[item] = 0;
    return (int64_t)(bytes - before);
}

int html_track_add(struct html_track *self, const uint64_t *bytes, size_t count, uint32_t moment) {
    if (track_grow(self, count) < 0) return -1;
    for (size_t i = 0; i < count; i++) {
        struct leak_change change = {.point = moment, .bytes = track_change(self, i, bytes[i])};
        if (!change.bytes) continue;
        if (leak_entries_add(&self->moved, (uint32_t)i, change) < 0) return -1;
        if (self->moved.count >= LEAK_CHANGES_MOST && track_drop_small(self) < 0) return -1;
    }
    return 0;
}

/* ---- choosing items */

/* The weight of an item: the most bytes that it had, plus the difference between the most and the least. */
static double track_weigh(const struct leak_entries *moved, size_t first, size_t end, uint32_t moments) {
    int64_t now = 0, most = 0, least = INT64_MAX;
    for (size_t i = first; i < end; i++) {
        const struct leak_change *change = &moved->list[i].change;
        if (i == first && change->point) least = 0;
        now = leak_sum(now, change->bytes);
        if (now > most) most = now;
        if (now < least) least = now;
    }
    return moments ? (double)most + ((double)most - (double)least) : 0;
}

static int track_by_weight(const void *left, const void *right, void *context) {
    const struct html_chosen_item *a = left, *b = right;
    (void)context;
    if (a->weight > b->weight || a->weight < b->weight) return a->weight > b->weight ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

int html_track_choose(struct html_chosen *chosen, struct leak_entries *moved, size_t items, uint32_t moments,
                      size_t most) {
    *chosen = (struct html_chosen){0};
    if (leak_entries_sort(moved, items, moments) < 0) return -1;
    chosen->list = calloc((moved->count < items ? moved->count : items) + 1, sizeof *chosen->list);
    if (!chosen->list) return -1;
    for (size_t first = 0, end; first < moved->count; first = end) {
        for (end = first + 1; end < moved->count && moved->list[end].site == moved->list[first].site;) end++;
        chosen->list[chosen->count++] =
            (struct html_chosen_item){moved->list[first].site, track_weigh(moved, first, end, moments), first, end};
    }
    top_sort(chosen->list, chosen->count, sizeof *chosen->list, most, track_by_weight, NULL);
    if (chosen->count <= most) return 0;
    chosen->left_out = chosen->count - most;
    chosen->count = most;
    return 0;
}

void html_track_bytes(const struct leak_entries *moved, const struct html_chosen_item *item, uint64_t *to,
                      size_t moments) {
    int64_t now = 0;
    for (size_t moment = 0, i = item->first; moment < moments; moment++) {
        for (; i < item->end && moved->list[i].change.point <= moment; i++)
            now = leak_sum(now, moved->list[i].change.bytes);
        to[moment] = now > 0 ? (uint64_t)now : 0;
    }
}
