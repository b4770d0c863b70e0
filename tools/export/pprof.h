/* pprof.h — writes a compressed profile for pprof and similar programs.
 * In: samples with call stacks of one image or two. Out: a profile on a stream. Each string, function, location and
 * sample is written at once, as a small profile of its own, so a million stacks need no memory. Readers merge these
 * small profiles: when protocol buffers follow each other, their repeated fields are joined. */
#ifndef MEMSTOW_PPROF_H
#define MEMSTOW_PPROF_H

#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

#include <stdio.h>
#include <zlib.h>

enum { PPROF_VALUES = 4, PPROF_SIDES = 2, PPROF_LABELS = 4 };

/* A kind of value: {"inuse_space", "bytes"}. */
struct pprof_type {
    const char *name, *unit;
};

/* A sample. A stack without frames gets the location `nowhere`. */
struct pprof_sample {
    int side;                 /* index in pprof.sides: the image that has the stack and the module */
    uint32_t stack;           /* 0: none */
    uint32_t module;          /* 1 + id of the module of `nowhere`; 0: none */
    const char *inner, *root; /* innermost and outermost locations that are only names; NULL: none */
    const char *nowhere;
    const char *labels[PPROF_LABELS]; /* by PPROF_MODEL and so on; NULL: none */
    int64_t values[PPROF_VALUES];
};
/* Labels of a sample: the names of its model, node and run; and pprof's own label, which marks samples that are
 * subtracted (diff_pprof.c). */
enum pprof_label { PPROF_MODEL, PPROF_NODE, PPROF_RUN, PPROF_BASE };

/* One image of a profile. `located` has a byte for each frame: whether the frame's location was written already. The
 * numbers of the image's locations begin at first_location, and those of its mappings at first_mapping. Both follow the
 * numbers of the previous image. */
struct pprof_side {
    const struct image *image;
    struct symbols *symbols;
    uint8_t *located;
    uint64_t first_location, first_mapping;
};

struct pprof_text; /* a text and its number */
struct pprof {
    struct pprof_side sides[PPROF_SIDES];
    bool python; /* true: native frames and Python's import machinery are left out */
    int value_count;
    FILE *to;
    z_stream stream;
    struct pprof_text *strings, *functions, *names;
    int64_t string_count, function_count, name_count;
    uint64_t first_name; /* number of the location of names[0]; the locations of frames have lower numbers */
    uint8_t *packed;
    size_t packed_capacity;
    uint64_t *locations; /* of the sample that is being written */
    bool failed;         /* no memory */
};

/* The head of a profile. The profile has call stacks of at most two images; missing images are NULL. */
struct pprof_head {
    const struct snap_header *header; /* of the profiled process */
    uint64_t now;                     /* the end of its time, as image_now gives it */
    const struct image *images[PPROF_SIDES];
    struct symbols *symbols[PPROF_SIDES];
    const struct pprof_type *types;
    int type_count, chosen; /* chosen: index of the type that is shown first */
    const char *comment;    /* NULL: none */
    bool python;
    FILE *to;
};
/* Writes the head of a profile, and its mappings. Returns 0, or -1: no memory. */
int pprof_begin(struct pprof *pprof, const struct pprof_head *head);
void pprof_put(struct pprof *pprof, const struct pprof_sample *sample);
/* Writes the end, and frees everything. Returns 0; -1: no memory, so the profile is not complete. */
int pprof_end(struct pprof *pprof);

#endif
