/* cupti_image.h — what CUPTI, NVIDIA's profiling interface, reports about CUDA memory, and where the ledger differs
 * from it.
 * In: the sections of a file, which is treated as hostile. Out: the record of the comparison, the listed blocks that
 * differ, and a sentence that says what CUPTI reported. */
#ifndef MEMSTOW_CUPTI_IMAGE_H
#define MEMSTOW_CUPTI_IMAGE_H

#include "tools/image/image.h"

struct reader;

/* Loads CUPTI's report into the image. Returns 0 or -1. */
int cupti_image_load(struct reader *reader);

/* The listed blocks that only CUPTI saw, summed by the library that requested them, most bytes first. The caller frees
 * the array. NULL: no memory. */
struct cupti_source {
    const char *path; /* "": not known */
    uint64_t blocks, bytes;
};
struct cupti_source *cupti_sources(const struct cupti_image *cupti, size_t *count);

/* Writes the predicate of a sentence about CUPTI, without full stop: what it reported, or why it reported nothing.
 * Returns `text`. */
enum { CUPTI_SENTENCE = 1200 };
const char *cupti_sentence(const struct image *image, char text[CUPTI_SENTENCE]);

#endif
