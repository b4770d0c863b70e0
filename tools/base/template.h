/* template.h — names of output files: %n name, %p pid, %x exec generation, %% a percent sign.
 * In: FILE as the user gave it. Out: an absolute path with these conversions, or the path with the conversions
 * replaced. */
#ifndef MEMSTOW_TEMPLATE_H
#define MEMSTOW_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

struct template {
    char text[4096]; /* an absolute path, which the library expands */
    bool named;      /* FILE has no conversion, so it names exactly one file */
};

/* Makes a template of `file`: as given with -o, or NULL for the default. Returns 0, or -1 with the reason in error. */
int template_make(struct template *template, const char *file, char *error, size_t error_size);
/* Replaces the conversions; a pid of 0 means that the pid is not known yet. False: the template has %p and the pid is
 * not known, or the path is too long. */
bool template_expand(const struct template *template, const char *name, long pid, char *path, size_t size);
/* The directory part, with its conversions replaced. All files of a run are searched for there. */
bool template_directory(const struct template *template, const char *name, long pid, char *path, size_t size);

#endif
