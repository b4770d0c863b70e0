/* vram_ring.h — copies between device memory and ordinary host memory, through two pinned buffers and a stream of
 * memstow's own. Both stay for the next move, because pinning memory is slow.
 * In: addresses on both sides. Out: the copy is complete; or there is an error, and no part of the copy goes on. One
 * thread at a time, in the ring's context. */
#ifndef MEMSTOW_VRAM_RING_H
#define MEMSTOW_VRAM_RING_H

#include "preload/stow/stow_file.h"
#include "preload/vram/vram_driver.h"

#pragma GCC visibility push(hidden)

#if defined(__SANITIZE_THREAD__)
enum { VRAM_COPIERS = 1 }; /* only the caller copies, because ThreadSanitizer must see how each thread begins */
#else
enum { VRAM_COPIERS = 4 };
#endif
enum { VRAM_SLOTS = 2 };
#define VRAM_SLOT ((uint64_t)32 << 20)

struct vram_ring {
    cuda_handle context, stream;
    char *slot[VRAM_SLOTS];
    cuda_handle event[VRAM_SLOTS];
    uint64_t slot_bytes;
    uint32_t copiers;       /* threads that copy, including the caller */
    bool unsettled;         /* a failed copy may still go on */
    struct stow_file *file; /* the file that is being written */
    uint32_t refusal;       /* enum stow_refusal: why writing the file failed */
};

/* Makes everything that the ring needs: 0. After an error, the parts that exist stay for the next attempt. */
int vram_ring_begin(const struct vram_driver *driver, struct vram_ring *self);
/* Frees everything, or returns the driver's error. */
int vram_ring_end(const struct vram_driver *driver, struct vram_ring *self);

/* Copies out of the device, or into it. 0, or the driver's error. */
int vram_ring_out(const struct vram_driver *driver, struct vram_ring *self, char *to, uint64_t from, uint64_t bytes);
int vram_ring_in(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                 uint64_t bytes);
/* As vram_ring_out and vram_ring_in, for pinned memory, without the buffers. */
int vram_ring_out_pinned(const struct vram_driver *driver, struct vram_ring *self, char *to, uint64_t from,
                         uint64_t bytes);
int vram_ring_in_pinned(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                        uint64_t bytes);
enum { VRAM_UNREADABLE = -3 };
/* Copies between a device and a file. out_to_file writes to the file, on a thread without signal handlers; if a write
 * fails, *refusal (enum stow_refusal) has the reason, and the result is 0. in_from_file reads a mapping of the file. If
 * the mapping cannot be read, the result is VRAM_UNREADABLE. */
int vram_ring_out_to_file(const struct vram_driver *driver, struct vram_ring *self, struct stow_file *file,
                          uint64_t from, uint64_t bytes, uint32_t *refusal);
int vram_ring_in_from_file(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                           uint64_t bytes);
/* Compares instead of copying. An error, or 0 with *same. Unreadable content is not the same. */
int vram_ring_compare(const struct vram_driver *driver, struct vram_ring *self, const char *with, uint64_t from,
                      uint64_t bytes, bool is_file, bool *same);

#pragma GCC visibility pop

#endif
