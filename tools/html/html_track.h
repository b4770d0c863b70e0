/* html_track.h — the bytes of many items, such as sites, at several moments.
 * In: the bytes of all items, moment by moment. Out: the items that held or changed most, with their bytes at each
 * moment. Only changes are kept, and their number is bounded. */
#ifndef MEMSTOW_HTML_TRACK_H
#define MEMSTOW_HTML_TRACK_H

#include "tools/leaks/leak_sites.h"

struct html_track {
    struct leak_entries moved; /* changes; an entry's `site` is the item, its `point` the moment */
    uint64_t *last;            /* by item: its bytes at the latest moment */
    uint8_t *dropped;          /* by item: two bits. DROPPED: it is too small to be followed. HELD: it once had bytes */
    uint64_t small;            /* the latest drop took all items that never had more bytes than this; 0: no drop yet */
    size_t count, capacity, dropped_capacity;
};

/* Adds a moment. `bytes` has the bytes of each item; new items come last. If there are too many changes, small items
 * are dropped. A dropped item that grows beyond `small` bytes is followed again, but it has 0 bytes at all earlier
 * moments. Returns 0, or -1 if there is no memory. */
int html_track_add(struct html_track *self, const uint64_t *bytes, size_t count, uint32_t moment);
/* How many items are dropped now, and held something at some moment. */
size_t html_track_dropped(const struct html_track *self);
void html_track_end(struct html_track *self);

/* The items that held or changed most, sorted by weight, largest first. */
struct html_chosen {
    struct html_chosen_item {
        uint32_t item;
        double weight;
        size_t first, end; /* its changes in `moved` */
    } * list;
    size_t count, left_out; /* left_out: how many other items have changes; dropped items have none */
};

/* Chooses at most `most` items. Sorts the changes, so no moment can be added after this call. Returns 0, or -1 if
 * there is no memory. The caller frees the list. */
int html_track_choose(struct html_chosen *chosen, struct leak_entries *moved, size_t items, uint32_t moments,
                      size_t most);
/* Writes the bytes of an item at each moment to `to`. */
void html_track_bytes(const struct leak_entries *moved, const struct html_chosen_item *item, uint64_t *to,
                      size_t moments);

#endif
