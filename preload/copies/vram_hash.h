/* vram_hash.h — hashes of device memory, computed on the device by a kernel of memstow's own (vram_hash_text.h). Equal
 * hashes say that memory has not changed, so that nothing has to be copied.
 * In: ranges of device memory. Each stays mapped, and nobody writes to it, until its hash is there. Out: a hash of 128
 * bits for each range, or an error. A driver that does not load the kernel gives no hashes. Only one thread at a time
 * may call, and the context of vram_hash_begin must be current on that thread.
 *
 * The two seeds are random, and differ in each process. Contents that differ in one word always have different hashes.
 * Contents that differ in more words have the same hash with a probability of 2^-128, if the hash is taken for a random
 * function. */
#ifndef MEMSTOW_VRAM_HASH_H
#define MEMSTOW_VRAM_HASH_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

enum { VRAM_HASHES = 16 }; /* the most hashes that are computed at once */
enum { VRAM_HASH_LATE = -4, VRAM_HASH_WRONG = -5 };

struct vram_hash_value {
    uint64_t words[2];
};

struct vram_hash {
    cuda_handle context, stream, event, module, function;
    char *sheets;                /* pinned memory, to which the kernels write */
    cuda_handle without;         /* the latest context in which the driver did not load the kernel; NULL: none */
    uint32_t count;              /* how many hashes were asked for */
    uint64_t units[VRAM_HASHES]; /* the size of the memory of each hash, in units of 16 bytes */
    bool unsettled;              /* a kernel may still read the memory */
};

/* Makes, in the current context, everything that hashing needs, and forgets all earlier hashes. `context` is the
 * current context. If an earlier call was made in another context, vram_hash_end must have been called since.
 * Returns 0 or an error. */
int vram_hash_begin(const struct vram_driver *driver, struct vram_hash *self, cuda_handle context);
/* Frees everything, in the context of vram_hash_begin. What the driver does not free ends with the context. Returns
 * 0 or an error. After an error nothing was freed, because a kernel may still read the memory. */
int vram_hash_end(const struct vram_driver *driver, struct vram_hash *self);

/* Begins to compute a hash. `bytes` is a multiple of a granule. Returns 0 or an error. Call it at most VRAM_HASHES
 * times after vram_hash_begin. */
int vram_hash_ask(const struct vram_driver *driver, struct vram_hash *self, uint64_t at, uint64_t bytes);
/* Waits until all hashes are there, but no longer than `milliseconds`. Returns 0 or an error. After an error the memory
 * must stay mapped, because a kernel may still read it (`unsettled`). */
int vram_hash_wait(const struct vram_driver *driver, struct vram_hash *self, uint32_t milliseconds);
/* Stores the hash of the `i`-th call of vram_hash_ask (from 0 on) in *out. Returns false if the kernel has not
 * hashed all of the memory. */
bool vram_hash_result(const struct vram_hash *self, uint32_t i, struct vram_hash_value *out);

static inline bool vram_hash_same(const struct vram_hash_value *a, const struct vram_hash_value *b) {
    return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

#pragma GCC visibility pop

#endif
