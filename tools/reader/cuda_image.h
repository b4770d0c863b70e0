/* cuda_image.h — the CUDA memory of an image: allocations by site, blocks, devices.
 * In: the sections of a file, which is treated as hostile. Out: tables and sums of CUDA memory. The tables and sums of
 * host memory do not include it. */
#ifndef MEMSTOW_CUDA_IMAGE_H
#define MEMSTOW_CUDA_IMAGE_H

#include "tools/image/image.h"

struct reader;

/* Adds the totals of CUDA memory to the totals of the image. Returns 0 or -1. Call it before the call stacks are read.
 * When they are read, they get new numbers, and only the totals of the image are given these numbers. For a ledger,
 * call it after counters_name_sites. */
int cuda_image_lend(struct reader *reader);
/* Takes the totals of cuda_image_lend out of the image, and loads CUDA's other tables, except the blocks, which
 * slots.h loads. Returns 0 or -1. */
int cuda_image_load(struct reader *reader);

/* "device", "pool", "managed" … */
const char *cuda_kind_name(uint32_t kind);
/* Whether reports show memory of this kind, as a line or as a JSON member. False for kinds of bookkeeping. */
bool cuda_kind_is_shown(uint32_t kind);

/* Whether `block` is a whole block on a device. A part of a block (SNAP_CUDA_PART) is not, because the whole block
 * contains the same bytes. */
bool cuda_block_is_whole(const struct snap_cuda_block *block);
/* The total under which the block is counted. NULL: its site is missing. */
const struct total *cuda_block_total(const struct cuda_image *cuda, const struct snap_cuda_block *block);
/* The tag under which the block is counted. 0: no tag, or the block's site is missing. */
uint32_t cuda_block_tag(const struct cuda_image *cuda, const struct snap_cuda_block *block);

/* An image whose totals are those of device memory, for views of sites and stacks. End it with cuda_view_end, not with
 * image_clear, because it shares its other tables with `image`. If the totals cannot be allocated, they are NULL. */
struct image cuda_view(const struct image *image);
void cuda_view_end(struct image *view);
/* Returns an array with one entry for each CUDA site. The entry is 1 + the index of the site's total in
 * cuda_view(image), or 0 if the site's memory is not on a device. The caller frees the array. Returns NULL if there is
 * no memory. */
uint32_t *cuda_view_indices(const struct image *image);

/* For a walk over all memory that an owner can leave behind. There is one total for each index below cuda_every_count.
 * The totals of host memory and mappings come first, and those of CUDA memory follow. cuda_every_total stores the total
 * at an index in *out. In *out, the class of device memory is SNAP_ON_CUDA, and the class of pinned host memory is
 * SNAP_HOST. Returns false if the total is of another kind of CUDA memory, which the caller must leave out. */
size_t cuda_every_count(const struct image *image);
bool cuda_every_total(const struct image *image, size_t index, struct total *out);

/* An owner's memory on devices, and its pinned host memory. */
struct cuda_share {
    uint64_t device_bytes, device_blocks, pinned_bytes;
};
/* Returns an array with one share for each owner, at the owner's index in the image. One more share at the end of the
 * array is for memory without owner. The caller frees the array. Returns NULL if there is no memory. */
struct cuda_share *cuda_shares(const struct image *image);

/* `used` is a device's used memory, which the driver told when it was last asked. The other figures are parts of it.
 * `live` is the live memory in the ledger, `pool_idle` is the unused part of what the driver's pool reserved, and
 * `graphs` is reserved by graphs. `known` is false if the driver was never asked, or if its figures make no sense. */
struct cuda_gap {
    bool known;
    uint64_t used, live, pool_idle, graphs;
    uint64_t spare; /* freed by the program, and kept by memstow for the program's next requests */
    int64_t rest;   /* the used memory that nothing above explains: contexts, modules, fragments, other processes */
};
struct cuda_gap cuda_gap(const struct snap_cuda_device *device);

/* The peak of live memory on all devices together. It is never less than the live memory, although a killed process may
 * have recorded a lower peak. */
uint64_t cuda_peak(const struct image *image);

#endif
