/* cupti_image.h — what CUPTI said of a process's CUDA memory, and how it differs from the ledger.
 * In: the sections of a file, hostile as all of it. Out: the record, the differences that are named, and one sentence.
 */
#ifndef MEMSTOW_CUPTI_IMAGE_H
#define MEMSTOW_CUPTI_IMAGE_H

#include "tools/image/image.h"

struct reader;

/* 0 or -1. */
int cupti_image_load(struct reader *reader);

/* The blocks that only CUPTI saw, as far as they are named, by the library that asked for them: the most bytes first.
 * NULL: no memory. */
struct cupti_source {
    const char *path; /* "": not known */
    uint64_t blocks, bytes;
};
struct cupti_source *cupti_sources(const struct cupti_image *cupti, size_t *count);

/* What came of it, without a full stop. Returns `text`. */
enum { CUPTI_SENTENCE = 1200 };
const char *cupti_sentence(const struct image *image, char text[CUPTI_SENTENCE]);

#endif
