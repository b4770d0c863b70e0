/* extent.c — free pieces of a range of numbers. The pieces are in order, and no two of them touch. The first piece that
 * is large enough is taken, so that freed pieces are soon used again. */
#include "sim.h"

#include <stdlib.h>

static void insert(struct extent **link, uint64_t start, uint64_t size) {
    struct extent *extent = malloc(sizeof *extent);
    if (!extent) abort();
    *extent = (struct extent){*link, start, size};
    *link = extent;
}

static void drop(struct extent **link) {
    struct extent *extent = *link;
    *link = extent->next;
    free(extent);
}

void extents_give(struct extents *self, uint64_t start, uint64_t size) {
    struct extent **link = &self->first, *before = NULL;
    while (*link && (*link)->start < start) {
        before = *link;
        link = &before->next;
    }
    if (before && before->start + before->size == start)
        before->size += size;
    else {
        insert(link, start, size);
        before = *link;
        link = &before->next;
    }
    if (*link && before->start + before->size == (*link)->start) {
        before->size += (*link)->size;
        drop(link);
    }
}

/* Takes [start, start + size) out of the piece that contains it. */
static void cut(struct extent **link, uint64_t start, uint64_t size) {
    struct extent *extent = *link;
    uint64_t front = start - extent->start, back = extent->size - front - size;
    if (back) insert(&extent->next, start + size, back);
    extent->size = front;
    if (!front) drop(link);
}

bool extents_take(struct extents *self, uint64_t size, uint64_t align, uint64_t *start) {
    for (struct extent **link = &self->first; *link; link = &(*link)->next) {
        uint64_t at = round_up((*link)->start, align);
        if (at + size > (*link)->start + (*link)->size) continue;
        cut(link, at, size);
        *start = at;
        return true;
    }
    return false;
}

bool extents_take_at(struct extents *self, uint64_t start, uint64_t size) {
    for (struct extent **link = &self->first; *link; link = &(*link)->next) {
        if (start < (*link)->start || start + size > (*link)->start + (*link)->size) continue;
        cut(link, start, size);
        return true;
    }
    return false;
}

void extents_clear(struct extents *self) {
    while (self->first) drop(&self->first);
}
