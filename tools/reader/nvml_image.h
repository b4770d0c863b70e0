/* nvml_image.h — NVML's report about the devices that an image's process uses: how much memory of each is in use, and
 * by which processes.
 * In: the sections of a snapshot, which is treated as hostile; or, for a running process, NVML itself (nvml.h). Out: a
 * record for each device. */
#ifndef MEMSTOW_NVML_IMAGE_H
#define MEMSTOW_NVML_IMAGE_H

#include "tools/image/image.h"

#include <sys/types.h>

struct reader;

/* Loads NVML's records from a snapshot into the image. Returns 0 or -1. */
int nvml_image_load(struct reader *reader);
void nvml_image_clear(struct nvml_image *nvml);

/* Asks NVML about the devices of an image whose process runs under this pid. Asks nothing if the process does not use
 * CUDA. If there is no NVML, the records say so. Returns 0, or -1: no memory. */
int nvml_image_ask(struct image *image, pid_t pid);

/* The record of a device, by its ordinal. NULL: NVML was not asked about it. */
const struct snap_nvml *nvml_of(const struct image *image, uint32_t device);
/* The reason why NVML gave no answer, as part of a sentence: "no libnvidia-ml.so.1". */
struct nvml_words {
    char s[96];
};
struct nvml_words nvml_why_not(const struct snap_nvml *nvml);

#endif
