/* html_owners.c — see html_owners.h. */
#include "tools/html/html_owners.h"

#include <stdlib.h>

void html_owners_end(struct html_owners *self) {
    free(self->hidden);
    free(self->tag_of);
    *self = (struct html_owners){0};
}

bool html_owners_hides(const struct html_owners *self, const struct snap_owner *owner) {
    return self->hidden[owner - self->image->owners];
}

uint32_t html_owners_id(const struct html_owners *self, uint32_t id) {
    const struct snap_owner *owner = id && self->count ? image_owner(self->image, id) : NULL;
    return owner && html_owners_hides(self, owner) ? self->stand_in : id;
}

uint32_t html_owners_tag(const struct html_owners *self, uint32_t tag) {
    return self->tag_of && tag < self->image->tag_count ? self->tag_of[tag] : tag;
}

/* ---- which owners are hidden */

static bool is_gone(const struct roster_row *row) {
    return roster_is_retired(row->owner) && !row->live_bytes && !row->cuda_bytes;
}

static void hide_owner(struct html_owners *self, const struct snap_owner *owner) {
    if (self->hidden[owner - self->image->owners]) return;
    self->hidden[owner - self->image->owners] = 1;
    if (!self->stand_in) self->stand_in = owner->id;
    self->count++;
}

/* Hides owners of two kinds:
 * - owners after the first `most` of the roster
 * - owners that are gone; but the latest HTML_OWNERS_GONE of these are not hidden
 * The roster has owners without memory last, sorted by id. So the loop, which starts at the end, meets the latest of
 * these owners first. */
static void hide_owners(struct html_owners *self, const struct roster *roster, size_t most) {
    size_t gone = 0;
    for (size_t i = roster->count; i-- > 0;) {
        const struct roster_row *row = &roster->rows[i];
        gone += is_gone(row);
        if (i >= most || (is_gone(row) && gone > HTML_OWNERS_GONE)) hide_owner(self, row->owner);
    }
}

/* ---- tags that are the same on the page */

static const struct html_owners *sorting; /* for qsort, which passes no context */

static int compare_ids(uint32_t a, uint32_t b) { return a < b ? -1 : a > b; }

static int html_owners_by_tag(const void *left, const void *right) {
    const struct snap_tag *tags = sorting->image->tags;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = compare_ids(html_owners_id(sorting, tags[a].model), html_owners_id(sorting, tags[b].model));
    if (!order) order = compare_ids(html_owners_id(sorting, tags[a].node), html_owners_id(sorting, tags[b].node));
    return order ? order : compare_ids(html_owners_id(sorting, tags[a].run), html_owners_id(sorting, tags[b].run));
}

static int find_same_tags(struct html_owners *self) {
    size_t count = self->image->tag_count;
    uint32_t *order = calloc(count + 1, sizeof *order);
    self->tag_of = calloc(count + 1, sizeof *self->tag_of);
    if (order && self->tag_of) {
        for (uint32_t i = 0; i < count; i++) order[i] = i;
        sorting = self;
        qsort(order, count, sizeof *order, html_owners_by_tag);
        for (size_t first = 0, next; first < count; first = next) {
            uint32_t least = order[first];
            for (next = first; next < count && !html_owners_by_tag(&order[first], &order[next]); next++)
                if (order[next] < least) least = order[next];
            for (size_t i = first; i < next; i++) self->tag_of[order[i]] = least;
        }
    }
    free(order);
    return order && self->tag_of ? 0 : -1;
}

int html_owners_begin(struct html_owners *self, const struct image *image, const struct roster *roster, size_t most) {
    *self = (struct html_owners){.image = image, .hidden = calloc(image->owner_count + 1, 1)};
    if (!self->hidden) return -1;
    hide_owners(self, roster, most);
    return self->count ? find_same_tags(self) : 0;
}
