/* template.h — names of output files: %n name, %p pid, %x exec generation, %% a percent sign. */
#ifndef MEMSTOW_TEMPLATE_H
#define MEMSTOW_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

struct template {
    char text[4096]; /* absolute, for the library to expand */
    bool named;      /* exactly one file: it holds no conversion */
};

/* file: as given with -o, or NULL for the default. 0, or -1 with why in error. */
int template_make(struct template *template, const char *file, char *error, size_t error_size);
/* False when it holds %p and pid is 0: the name is not known yet. */
bool template_expand(const struct template *template, const char *name, long pid, char *path, size_t size);
/* The directory part, expanded; all files of a run are looked for there. */
bool template_directory(const struct template *template, const char *name, long pid, char *path, size_t size);

#endif
