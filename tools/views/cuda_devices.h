/* cuda_devices.h — compares the figures of a CUDA device: live memory in the ledger, memory that the pool keeps, memory
 * in use according to the driver, and the parts of the difference.
 * In: an image. Out: text and JSON of a device, in full for `memstow report`, as one line for `memstow owners` and
 * `memstow diff`. */
#ifndef MEMSTOW_CUDA_DEVICES_H
#define MEMSTOW_CUDA_DEVICES_H

#include "tools/reader/cuda_image.h"
#include "tools/base/json.h"

/* The figures of one device. They outlive the image. */
struct cuda_line {
    uint32_t device;
    char name[64];
    uint64_t live, pool_reserved;
    struct cuda_gap gap;
    struct snap_nvml nvml; /* state 0: NVML was not asked */
};
/* The figures of the device with this index in the image. False: the process does not use that device. */
bool cuda_line_of(const struct image *image, size_t index, struct cuda_line *out);

/* Prints the heads of the columns. */
void cuda_line_head(const char *label);
/* Prints the figures of a device in these columns. */
void cuda_line_text(const char *label, const struct cuda_line *line);
/* Writes the figures of a device as JSON. */
void cuda_line_json(struct json *json, const struct cuda_line *line);

/* Print and write all figures of a device, by its index in the image. */
void cuda_device_text(const struct image *image, size_t index);
void cuda_device_json(struct json *json, const struct image *image, size_t index);

#endif
