/* diff_blocks.h — the large blocks, the mappings, and the blocks on devices of two files, for the page of a comparison.
 * In: both images, one after the other; for each total of an image (the figures of a call site), its row in the
 * comparison. Out: one list, in which a block that is in both files is one item; sums; and columns of a page.
 * A block is the same in both files if they are of one process, and its address and the time of its allocation are the
 * same: an address is used again, but not at the same nanosecond. In files of two processes no blocks are the same. */
#ifndef MEMSTOW_DIFF_BLOCKS_H
#define MEMSTOW_DIFF_BLOCKS_H

#include "tools/html/html_out.h"
#include "tools/image/image.h"

/* Where a block is. DIFF_BLOCK_UNCLEAR: only in the file that was taken later, although the block is older than the
 * other file. There are two reasons: a mapping was cut or moved; or the other file has no record of the block, for
 * example because the block came while that file was written. */
enum diff_block_place { DIFF_BLOCK_IN_A, DIFF_BLOCK_IN_B, DIFF_BLOCK_IN_BOTH, DIFF_BLOCK_UNCLEAR, DIFF_BLOCK_PLACES };

struct diff_block {
    uint64_t address, birth_ns;
    uint64_t size[2], resident[2]; /* by side: A, B */
    uint64_t age_ns;               /* in B, or in A if B does not have the block */
    uint32_t row;                  /* 1 + the index of the comparison's row for the block's call site; 0: none. If
                                    * both files have the block, this is the row of its site in B, or of its site in
                                    * A if the site in B has no row. Host and device memory have separate rows */
    uint32_t device;               /* 0: memory of the host; else 1 + the device */
    uint8_t kind;                  /* as in the page of a report: see HTML_KIND_ON_DEVICE */
    uint8_t side, place;           /* side: 0 if only A has it, else 1; place: enum diff_block_place */
};

struct diff_blocks {
    struct diff_block *list;
    size_t count, capacity;
    size_t shown;         /* how many blocks fit into the page: those with the largest weight */
    uint64_t taken_ns[2]; /* when the file was taken; UINT64_MAX: at the end of a killed process */
    uint64_t start_ns[2];
    bool measured[2]; /* whether resident bytes are known */
    /* The sums of all live memory, including blocks that do not fit into the page. sums[0]: on the host; sums[1]: on
     * devices. */
    struct diff_blocks_sum {
        uint64_t blocks, bytes[2];
    } sums[2][DIFF_BLOCK_PLACES];
    uint64_t not_live; /* how many mappings of files and of reserved addresses there are */
};

void diff_blocks_end(struct diff_blocks *self);
/* Adds the host's blocks of a side. `row_of`: for each total of the image, 1 + the index of the total's row. Returns 0,
 * or -1 if there is no memory. */
int diff_blocks_add(struct diff_blocks *self, const struct image *image, const uint32_t *row_of, int side);
/* Adds the blocks that a side has on devices. `row_of`: as above, but for each total of cuda_view(image). Returns 0, or
 * -1 if there is no memory. */
int diff_blocks_add_on_devices(struct diff_blocks *self, const struct image *image, const uint32_t *row_of, int side);
/* Finds out for each block in which files it is (enum diff_block_place). `same`: the files are of one process. */
void diff_blocks_match(struct diff_blocks *self, bool same);
/* Returns the side whose file was taken later, or B if both files were taken at the same time. */
uint8_t diff_blocks_later(const struct diff_blocks *self);

/* Chooses how many blocks the page shows. The shown blocks take at most a third of *limit bytes. Subtracts from *limit
 * what they take. Returns 0, or -1 if there is no memory. */
int diff_blocks_fit(struct diff_blocks *self, size_t *limit);
/* Writes the group "blocks". host_entries and device_entries have a number for each row of the comparison: 1 + the
 * number of this row on the page, or 0 if the row is not on the page. */
void diff_blocks_write(const struct diff_blocks *self, struct html_out *out, const uint32_t *host_entries,
                       const uint32_t *device_entries);
/* Writes the document "blocks": the times at which both files were taken, and the sums of the blocks. Returns 0, or -1
 * if there is no memory. */
int diff_blocks_write_sums(const struct diff_blocks *self, struct html_out *out);

#endif
