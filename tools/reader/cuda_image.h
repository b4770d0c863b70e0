/* cuda_image.h — the CUDA memory of an image: what was allocated at each site, the blocks, the devices.
 * In: the sections of a file, hostile as all of it. Out: tables and sums beside those of host memory, which know
 * nothing of them. */
#ifndef MEMSTOW_CUDA_IMAGE_H
#define MEMSTOW_CUDA_IMAGE_H

#include "tools/image/image.h"

struct reader;

/* Between the totals of a ledger being named and its stacks being unfolded: adds the totals of CUDA memory to the
 * others for as long as that takes, because their stacks are numbered anew with them. 0 or -1. */
int cuda_image_lend(struct reader *reader);
/* Takes them back, and loads the rest, but for the blocks, which are slots like others. */
int cuda_image_load(struct reader *reader);

/* "device", "pool", "managed" … */
const char *cuda_kind_name(uint32_t kind);
/* Kinds have a line or a member in the order of their numbers; those that only keep books have none. */
bool cuda_kind_is_shown(uint32_t kind);

/* The tag that a block is counted under; the untagged one where its site is not there. */
uint32_t cuda_block_tag(const struct cuda_image *cuda, const struct snap_cuda_block *block);

/* An image whose totals are those of device memory, for all that shows sites and stacks: to be let go by
 * cuda_view_end, and not to be cleared. totals NULL: no memory. */
struct image cuda_view(const struct image *image);
void cuda_view_end(struct image *view);

/* The totals of host memory and mappings, and then those of CUDA memory that an owner may leave behind: of devices
 * (class SNAP_ON_CUDA), and pinned host memory (SNAP_HOST). False: there is none at this index. */
size_t cuda_every_count(const struct image *image);
bool cuda_every_total(const struct image *image, size_t index, struct total *out);

/* What an owner has on devices, and in pinned host memory. */
struct cuda_share {
    uint64_t device_bytes, device_blocks, pinned_bytes;
};
/* By the index of the owner in the image; one more at the end for what is nobody's. NULL: no memory. */
struct cuda_share *cuda_shares(const struct image *image);

/* What the driver counts as used of a device beyond the ledger, and what it is, as of when it was asked last. */
struct cuda_gap {
    bool known;
    uint64_t used, live, pool_idle, graphs;
    int64_t rest; /* contexts, modules, fragments, other processes */
};
struct cuda_gap cuda_gap(const struct snap_cuda_device *device);

/* The most that was live on all devices together; of a process that was killed, no less than what is. */
uint64_t cuda_peak(const struct image *image);

#endif
