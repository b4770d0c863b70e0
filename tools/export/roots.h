/* roots.h — the outermost frames of a profile: the owners of its stacks, such as "model:UNET (x.safetensors)".
 * In: an image, and the view that a report asks for. Out: a name for each tag. */
#ifndef MEMSTOW_ROOTS_H
#define MEMSTOW_ROOTS_H

#include "tools/report/report.h"

/* The names of the roots. of_tag[tag] is the index of the tag's root in `names`. Owners of the same name and origin
 * share a root. If the user asked for no view by model, node or run, there is only one root, and its name is NULL. */
struct roots {
    char **names;
    uint32_t *of_tag;
    size_t count, tags;
};

/* Makes the names for the tags of the report's image. Returns 0, or -1: no memory. */
int roots_make(struct roots *roots, const struct report *report);
void roots_clear(struct roots *roots);
uint32_t roots_of(const struct roots *roots, uint32_t tag);

#endif
