/* vram_ring.h — a ring: a CUDA stream of memstow's own and four pinned buffers, which are used in turn for copies
 * between device memory and host memory. Pinned host memory is copied straight, other memory through the buffers.
 * Stream and buffers stay for the next move, because pinning is slow.
 * In: addresses on both sides. Out: copies that go on until the caller waits for them, or an error. A lane is a buffer,
 * and an event that shows when a copy is complete. Only one thread at a time may use a ring, and the ring's CUDA
 * context must be current on that thread. */
#ifndef MEMSTOW_VRAM_RING_H
#define MEMSTOW_VRAM_RING_H

#include "preload/stow/stow_file.h"
#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

#if defined(__SANITIZE_THREAD__)
enum { VRAM_COPIERS = 1 }; /* only the caller copies, because ThreadSanitizer must see how each thread begins */
#else
enum { VRAM_COPIERS = 4 };
#endif
enum { VRAM_SLOTS = 4 };
#define VRAM_SLOT ((uint64_t)16 << 20) /* the usual slot_bytes */

struct vram_ring {
    cuda_handle context, stream;
    char *slot[VRAM_SLOTS];        /* the buffer of each lane */
    cuda_handle event[VRAM_SLOTS]; /* the event of each lane */
    uint64_t slot_bytes;           /* the size of each buffer */
    uint64_t turn;          /* how many copies into the device went through buffers; the next copy uses the next lane */
    uint32_t filled;        /* a bit for each lane whose buffer a copy into the device may still read */
    uint32_t copiers;       /* threads that copy, including the caller */
    bool unsettled;         /* the device may still be copying */
    struct stow_file *file; /* the file that is being written */
    uint32_t refusal;       /* enum stow_refusal: why writing the file failed */
};

/* Makes everything that the ring needs. Returns 0 or the driver's error. After an error, the parts that exist stay for
 * the next attempt. */
int vram_ring_begin(const struct vram_driver *driver, struct vram_ring *self);
/* Frees everything. Returns 0 or the driver's error. */
int vram_ring_end(const struct vram_driver *driver, struct vram_ring *self);

/* Waits until no copy goes on. Returns 0 or the driver's error. After an error a copy may still go on, so the memory on
 * both sides must stay. */
int vram_ring_settle(const struct vram_driver *driver, struct vram_ring *self);
/* Settles the ring after an error, and returns that error. */
int vram_ring_fail(const struct vram_driver *driver, struct vram_ring *self, int error);

/* --- copies out of the device; each function returns 0 or the driver's error --- */

/* Begins to copy from the device address `from` into pinned memory at `to`, or into the lane's buffer if `to` is
 * NULL. */
int vram_ring_ask(const struct vram_driver *driver, struct vram_ring *self, uint32_t lane, char *to, uint64_t from,
                  uint64_t bytes);
/* Waits until the lane's copy is complete. */
int vram_ring_await(const struct vram_driver *driver, const struct vram_ring *self, uint32_t lane);
/* Copies the content of the lane's buffer to ordinary memory. */
void vram_ring_take(const struct vram_ring *self, uint32_t lane, char *to, uint64_t bytes);
/* Waits for all earlier copies, then copies to a file, and returns when all bytes are written. The calling thread must
 * run no signal handlers. If a write fails, *refusal (enum stow_refusal) has the reason, and the result is 0. */
int vram_ring_out_to_file(const struct vram_driver *driver, struct vram_ring *self, struct stow_file *file,
                          uint64_t from, uint64_t bytes, uint32_t *refusal);
/* Waits for all earlier copies, and then compares device memory with host memory at `with`. Sets *same to whether
 * they are equal. If `is_file` is true, `with` is a mapping of a file. If that file cannot be read, *same becomes
 * false. After an error, *same means nothing. */
int vram_ring_compare(const struct vram_driver *driver, struct vram_ring *self, const char *with, uint64_t from,
                      uint64_t bytes, bool is_file, bool *same);

/* --- copies into the device, which go on after the return; each function returns 0 or the driver's error --- */

/* Copies from ordinary memory, through the buffers. */
int vram_ring_in(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                 uint64_t bytes);
/* Copies from pinned memory. The memory must stay pinned and unchanged until the ring is settled (vram_ring_settle). */
int vram_ring_in_pinned(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                        uint64_t bytes);
enum { VRAM_UNREADABLE = -4 }; /* differs from the results of vram_quiet */
/* Copies from a mapping of a file. If the mapping cannot be read, the result is VRAM_UNREADABLE. */
int vram_ring_in_from_file(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                           uint64_t bytes);

#pragma GCC visibility pop

#endif
