/* roots.h — the outermost frames of a profile: the owners of its stacks, "model:UNET (wan.safetensors)".
 * In: an image, and what a report asks for. Out: a name for each tag. */
#ifndef MEMSTOW_ROOTS_H
#define MEMSTOW_ROOTS_H

#include "tools/report/report.h"

/* The number of each tag's root. Owners of the same name and origin share a root. Unless model, node or run was asked
 * for, there is only one root, whose name is NULL. */
struct roots {
    char **names;
    uint32_t *of_tag;
    size_t count, tags;
};

/* Returns 0, or -1: no memory. */
int roots_make(struct roots *roots, const struct report *report);
void roots_clear(struct roots *roots);
uint32_t roots_of(const struct roots *roots, uint32_t tag);

#endif
