/* vbars.h — comfy-aimdo's ranges of device memory (VBARs), as memstow's Python module last noted them in the trace.
 * In: the trace of a file, which is not trusted. Out: the owner of each range, and how much of it was resident. */
#ifndef MEMSTOW_VBARS_H
#define MEMSTOW_VBARS_H

#include "tools/image/image.h"

enum { VBARS_MOST = 64 };

struct vbar {
    uint64_t owner, device, address, bytes, resident_bytes, pinned_bytes;
};

struct vbars {
    bool known; /* the trace has a line about ranges */
    size_t count;
    uint64_t omitted; /* number of ranges that did not fit into the line */
    struct vbar at[VBARS_MOST];
};

/* Reads the newest line about ranges in the trace. */
void vbars_find(const struct image *image, struct vbars *out);

/* The bytes of all ranges of an owner, and how many of these bytes were resident. */
struct vbars_share {
    uint64_t bytes, resident_bytes;
};
struct vbars_share vbars_of(const struct vbars *vbars, uint32_t owner);

#endif
