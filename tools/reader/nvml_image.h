/* nvml_image.h — what NVML says of the devices that an image's process uses: how much of each is in use, and by whom.
 * In: a snapshot's sections, hostile as all of it; or NVML itself, by nvml.h, of a process that runs. Out: a record for
 * each device, beside those of the ledger. */
#ifndef MEMSTOW_NVML_IMAGE_H
#define MEMSTOW_NVML_IMAGE_H

#include "tools/image/image.h"

#include <sys/types.h>

struct reader;

/* 0 or -1. */
int nvml_image_load(struct reader *reader);
void nvml_image_clear(struct nvml_image *nvml);

/* Asks for the devices of an image whose process runs under this pid; nothing for one without CUDA. Where there is no
 * NVML the records say so. 0, or -1: no memory. */
int nvml_image_ask(struct image *image, pid_t pid);

/* Of a device by its ordinal; NULL: NVML was not asked. */
const struct snap_nvml *nvml_of(const struct image *image, uint32_t device);
/* Why nothing is known of it, as part of a sentence: "no libnvidia-ml.so.1". */
struct nvml_words {
    char s[96];
};
struct nvml_words nvml_why_not(const struct snap_nvml *nvml);

#endif
