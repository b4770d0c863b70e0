/* vram_ring.c — see vram_ring.h. While the device fills or empties some buffers, threads copy to or from another
 * buffer. A single thread would be slower than the bus, above all when it writes to untouched memory. */
#include "preload/copies/vram_ring.h"

#include <emmintrin.h>
#include <string.h>

#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/stow/stow_thread.h"
#include "preload/copies/vram_stock.h"

/* LINE: the bytes that streaming stores copy at a time. */
enum { LINE = 64 };
enum { NON_BLOCKING = 1, NO_TIMING = 2, PORTABLE = 1, ATTEMPTS = 3, PARALLEL = 1 << 20, PART = 16 << 10 };

int vram_ring_begin(const struct vram_driver *driver, struct vram_ring *self) {
    int error = 0;
    if (!self->stream) error = driver->cuStreamCreate(&self->stream, NON_BLOCKING);
    for (int i = 0; i < VRAM_SLOTS && !error; i++) {
        if (!self->event[i]) error = driver->cuEventCreate(&self->event[i], NO_TIMING);
        if (!error && !self->slot[i])
            error = driver->cuMemHostAlloc((void **)&self->slot[i], self->slot_bytes, PORTABLE);
        if (!error && !self->slot[i]) error = CUDA_OUT_OF_MEMORY; /* the driver reported success, but gave no memory */
    }
    return error;
}

/* --- copying by several threads --- */

struct part {
    char *to;
    const char *from;
    uint64_t bytes;
    bool streams; /* with streaming stores */
};

/* Streaming stores do not read the cache lines that they write. They also keep the data out of the caches, where it
 * would be of no use, because the device is the next to read it. They are faster only if the pages of the
 * destination are already in memory (docs/decisions/0045-copies-by-the-processor.md). */
static void copy_streaming(char *to, const char *from, uint64_t bytes) {
    uint64_t done = 0;
    for (; done + LINE <= bytes; done += LINE)
        for (int i = 0; i < LINE; i += 16)
            _mm_stream_si128((__m128i *)(to + done + i), _mm_loadu_si128((const __m128i *)(from + done + i)));
    _mm_sfence();
    memcpy(to + done, from + done, bytes - done);
}

static void copy_part(void *context) {
    struct part *self = context;
    if (self->streams)
        copy_streaming(self->to, self->from, self->bytes);
    else
        memcpy(self->to, self->from, self->bytes);
}

static void copy_in_parts(uint32_t count, struct part all) {
    struct stow_thread *threads[VRAM_COPIERS] = {NULL};
    struct part parts[VRAM_COPIERS];
    uint64_t each = os_round_up(all.bytes / count, OS_PAGE);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = i * each, end = i + 1 == count ? all.bytes : start + each;
        parts[i] = (struct part){all.to + start, all.from + start, end - start, all.streams};
        if (i) threads[i] = stow_thread_start(copy_part, &parts[i], NULL);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!threads[i]) copy_part(&parts[i]);
    for (uint32_t i = 1; i < count; i++)
        if (threads[i]) stow_thread_join(threads[i]);
}

/* Copies with several threads. Signal handlers must not run on these threads, because the threads share the caller's
 * thread-local storage. */
static void vram_ring_copy(const struct vram_ring *self, struct part all) {
    uint32_t count = self->copiers < VRAM_COPIERS ? self->copiers : VRAM_COPIERS;
    uint64_t signals = 0;
    if (all.bytes < PARALLEL || count < 2 || !lock_out_signals(&signals)) {
        copy_part(&all);
        return;
    }
    copy_in_parts(count, all);
    lock_let_signals(signals);
}

/* --- waiting for all copies of the ring, and freeing the ring --- */

/* The device must have finished with a buffer before anybody else uses the buffer, or before the memory on the other
 * side is freed. */
int vram_ring_settle(const struct vram_driver *driver, struct vram_ring *self) {
    int error = 0;
    for (int i = 0; i < ATTEMPTS && self->unsettled; i++)
        self->unsettled = (error = driver->cuStreamSynchronize(self->stream)) != 0;
    if (!self->unsettled) self->filled = 0;
    return self->unsettled ? error : 0;
}

static int vram_ring_drop(int error, void *field) {
    if (!error) *(void **)field = NULL;
    return error;
}

int vram_ring_end(const struct vram_driver *driver, struct vram_ring *self) {
    int error = vram_ring_settle(driver, self);
    for (int i = 0; i < VRAM_SLOTS && !error; i++) {
        if (self->slot[i]) error = vram_ring_drop(driver->cuMemFreeHost(self->slot[i]), &self->slot[i]);
        if (!error && self->event[i])
            error = vram_ring_drop(driver->cuEventDestroy_v2(self->event[i]), &self->event[i]);
    }
    return error || !self->stream ? error : vram_ring_drop(driver->cuStreamDestroy_v2(self->stream), &self->stream);
}

int vram_ring_fail(const struct vram_driver *driver, struct vram_ring *self, int error) {
    vram_ring_settle(driver, self);
    return error;
}

static uint64_t vram_ring_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* --- copies out of the device --- */

int vram_ring_ask(const struct vram_driver *driver, struct vram_ring *self, uint32_t lane, char *to, uint64_t from,
                  uint64_t bytes) {
    self->unsettled = true;
    int error = driver->cuMemcpyDtoHAsync_v2(to ? to : self->slot[lane], from, bytes, self->stream);
    return error ? error : driver->cuEventRecord(self->event[lane], self->stream);
}

int vram_ring_await(const struct vram_driver *driver, const struct vram_ring *self, uint32_t lane) {
    return driver->cuEventSynchronize(self->event[lane]);
}

void vram_ring_take(const struct vram_ring *self, uint32_t lane, char *to, uint64_t bytes) {
    vram_ring_copy(self, (struct part){to, self->slot[lane], bytes, false});
}

/* Uses the content of a filled buffer: compares it with host memory at `at`, or writes it to the file. Returns false
 * if the rest of the device memory need not be read. */
typedef bool take(struct vram_ring *self, char *at, const char *buffer, uint64_t bytes);

static bool take_comparison(struct vram_ring *self, char *at, const char *buffer, uint64_t bytes) {
    (void)self;
    return !memcmp(at, buffer, bytes);
}

static bool take_comparison_with_file(struct vram_ring *self, char *at, const char *buffer, uint64_t bytes) {
    char part[PART];
    bool same = true;
    (void)self;
    for (uint64_t done = 0; done < bytes && same; done += sizeof part) {
        uint64_t length = vram_ring_least(sizeof part, bytes - done);
        same = os_peek(part, at + done, length) && !memcmp(part, buffer + done, length);
    }
    return same;
}

static bool take_for_file(struct vram_ring *self, char *at, const char *buffer, uint64_t bytes) {
    (void)at;
    self->refusal = stow_file_write(self->file, buffer, bytes);
    self->file->used += bytes;
    return !self->refusal;
}

static int vram_ring_read_all(const struct vram_driver *driver, struct vram_ring *self, char *at, uint64_t from,
                              uint64_t bytes, take *take_one, bool *complete) {
    const uint64_t unit = self->slot_bytes;
    uint64_t asked = 0, done = 0;
    int error = vram_ring_settle(driver, self);
    *complete = true;
    while (done < bytes && !error && *complete) {
        for (; asked < bytes && asked < done + VRAM_SLOTS * unit && !error; asked += unit)
            error = vram_ring_ask(driver, self, asked / unit % VRAM_SLOTS, NULL, from + asked,
                                  vram_ring_least(unit, bytes - asked));
        uint32_t slot = done / unit % VRAM_SLOTS;
        if (!error) error = vram_ring_await(driver, self, slot);
        if (!error) *complete = take_one(self, at + done, self->slot[slot], vram_ring_least(unit, bytes - done));
        done += unit;
    }
    if (error || !*complete) return vram_ring_fail(driver, self, error);
    self->unsettled = false;
    return 0;
}

int vram_ring_compare(const struct vram_driver *driver, struct vram_ring *self, const char *with, uint64_t from,
                      uint64_t bytes, bool is_file, bool *same) {
    take *take_one = is_file ? take_comparison_with_file : take_comparison;
    return vram_ring_read_all(driver, self, (char *)with, from, bytes, take_one, same);
}

int vram_ring_out_to_file(const struct vram_driver *driver, struct vram_ring *self, struct stow_file *file,
                          uint64_t from, uint64_t bytes, uint32_t *refusal) {
    bool complete;
    self->file = file;
    int error = vram_ring_read_all(driver, self, NULL, from, bytes, take_for_file, &complete);
    *refusal = complete ? 0 : self->refusal;
    return error;
}

/* --- copies into the device --- */

int vram_ring_in_pinned(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                        uint64_t bytes) {
    int error = 0;
    self->unsettled = true;
    for (uint64_t done = 0, length; done < bytes && !error; done += length) {
        length = vram_stock_whole(from + done, bytes - done);
        error = driver->cuMemcpyHtoDAsync_v2(to + done, from + done, length, self->stream);
    }
    return error ? vram_ring_fail(driver, self, error) : 0;
}

/* Fills a buffer. False: `from` cannot be read. */
typedef bool give(const struct vram_ring *self, char *buffer, const char *from, uint64_t bytes);

static bool give_copy(const struct vram_ring *self, char *buffer, const char *from, uint64_t bytes) {
    vram_ring_copy(self, (struct part){buffer, from, bytes, true});
    return true;
}

/* The kernel reads the mapping. If the disk fails, os_peek fails, and no signal kills the process. */
static bool give_from_file(const struct vram_ring *self, char *buffer, const char *from, uint64_t bytes) {
    (void)self;
    return os_peek(buffer, from, bytes);
}

static int write_slot(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                      uint64_t bytes, give *give_one) {
    uint32_t lane = self->turn++ % VRAM_SLOTS;
    int error = self->filled >> lane & 1 ? driver->cuEventSynchronize(self->event[lane]) : 0;
    if (error) return error;
    if (!give_one(self, self->slot[lane], from, bytes)) return VRAM_UNREADABLE;
    self->unsettled = true;
    self->filled |= 1u << lane;
    error = driver->cuMemcpyHtoDAsync_v2(to, self->slot[lane], bytes, self->stream);
    return error ? error : driver->cuEventRecord(self->event[lane], self->stream);
}

static int write_all(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                     uint64_t bytes, give *give_one) {
    int error = 0;
    for (uint64_t done = 0; done < bytes && !error; done += self->slot_bytes)
        error =
            write_slot(driver, self, to + done, from + done, vram_ring_least(self->slot_bytes, bytes - done), give_one);
    return error ? vram_ring_fail(driver, self, error) : 0;
}

int vram_ring_in(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                 uint64_t bytes) {
    return write_all(driver, self, to, from, bytes, give_copy);
}

int vram_ring_in_from_file(const struct vram_driver *driver, struct vram_ring *self, uint64_t to, const char *from,
                           uint64_t bytes) {
    return write_all(driver, self, to, from, bytes, give_from_file);
}
