/* html_owners.h — the owners that a page leaves out. Owners that are gone and hold nothing are left out, except for the
 * latest of them. If there is no room, owners with the least memory are left out, too.
 * In: an image and its roster. Out: which owners are hidden, and the tags without them. In the tags, one hidden owner
 * takes the place of all hidden owners. So sites can be merged if their tags differ only in hidden owners. */
#ifndef MEMSTOW_HTML_OWNERS_H
#define MEMSTOW_HTML_OWNERS_H

#include "tools/views/roster.h"

enum { HTML_OWNERS_GONE = 1000 /* limit for owners that are gone and hold nothing; the page has the latest of them */ };

struct html_owners {
    const struct image *image;
    uint8_t *hidden;   /* by index of image->owners */
    uint32_t *tag_of;  /* by tag: the first tag with the same owners */
    uint32_t stand_in; /* the id that takes the place of all hidden owners; 0: none is hidden */
    size_t count;      /* how many are hidden */
};

/* `most`: how many owners the page may have; those with the most memory come first. Returns 0, or -1: no memory. Call
 * html_owners_end() whatever the result is. */
int html_owners_begin(struct html_owners *self, const struct image *image, const struct roster *roster, size_t most);
void html_owners_end(struct html_owners *self);

bool html_owners_hides(const struct html_owners *self, const struct snap_owner *owner);
/* The id that the page has for an owner's id. */
uint32_t html_owners_id(const struct html_owners *self, uint32_t id);
/* The tag that the page has for a tag of the image. */
uint32_t html_owners_tag(const struct html_owners *self, uint32_t tag);

#endif
