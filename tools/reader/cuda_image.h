/* cuda_image.h — the CUDA memory of an image: allocations by site, blocks, devices.
 * In: the sections of a file, which is treated as hostile. Out: tables and sums beside those of host memory, which do
 * not include CUDA memory. */
#ifndef MEMSTOW_CUDA_IMAGE_H
#define MEMSTOW_CUDA_IMAGE_H

#include "tools/image/image.h"

struct reader;

/* Adds the totals of CUDA memory to the other totals while stacks are unfolded. So the stacks of all totals are
 * renumbered. Call it after the totals of a ledger have names. Returns 0 or -1. */
int cuda_image_lend(struct reader *reader);
/* Takes the totals back, and loads all the rest except for the blocks, which slots.h loads. */
int cuda_image_load(struct reader *reader);

/* "device", "pool", "managed" … */
const char *cuda_kind_name(uint32_t kind);
/* Whether reports show this kind, as a line or as a JSON member. They show kinds in the order of their numbers, and
 * leave out kinds for bookkeeping. */
bool cuda_kind_is_shown(uint32_t kind);

/* The tag that the block is counted under; the untagged one if its site is missing. */
uint32_t cuda_block_tag(const struct cuda_image *cuda, const struct snap_cuda_block *block);

/* An image whose totals are those of device memory, for views of sites and stacks. End it with cuda_view_end; do not
 * clear it. totals NULL: no memory. */
struct image cuda_view(const struct image *image);
void cuda_view_end(struct image *view);

/* All totals that an owner may leave behind: those of host memory and mappings, then CUDA memory of devices (class
 * SNAP_ON_CUDA), and pinned host memory (SNAP_HOST). False: no total has this index. */
size_t cuda_every_count(const struct image *image);
bool cuda_every_total(const struct image *image, size_t index, struct total *out);

/* The memory of an owner on devices, and its pinned host memory. */
struct cuda_share {
    uint64_t device_bytes, device_blocks, pinned_bytes;
};
/* One for each owner, by its index in the image, and a last one for memory without owner. NULL: no memory. */
struct cuda_share *cuda_shares(const struct image *image);

/* The difference between the memory in use according to the driver and the ledger, as of the last request to the
 * driver. */
struct cuda_gap {
    bool known;
    uint64_t used, live, pool_idle, graphs;
    uint64_t spare; /* freed by the program, and kept by memstow for its next requests */
    int64_t rest;   /* contexts, modules, fragments, other processes */
};
struct cuda_gap cuda_gap(const struct snap_cuda_device *device);

/* Peak of live memory on all devices together. For a killed process it is at least what is live. */
uint64_t cuda_peak(const struct image *image);

#endif
