/* vbars.h — comfy-aimdo's ranges of device memory, as the program's Python module noted them last.
 * In: the trace of a file, which is not trusted. Out: whose each range is, and what of it was resident. */
#ifndef MEMSTOW_VBARS_H
#define MEMSTOW_VBARS_H

#include "tools/image/image.h"

enum { VBARS_MOST = 64 };

struct vbar {
    uint64_t owner, device, address, bytes, resident_bytes, pinned_bytes;
};

struct vbars {
    bool known; /* somebody looked */
    size_t count;
    uint64_t omitted; /* that the line had no room for */
    struct vbar at[VBARS_MOST];
};

/* Those of the last line of the trace that says so. */
void vbars_find(const struct image *image, struct vbars *out);

/* What an owner has in them: the bytes of the ranges, and those that were resident. */
struct vbars_share {
    uint64_t bytes, resident_bytes;
};
struct vbars_share vbars_of(const struct vbars *vbars, uint32_t owner);

#endif
