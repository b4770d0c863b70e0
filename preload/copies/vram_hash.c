/* vram_hash.c — see vram_hash.h. The kernels run on a stream of their own, beside the copies of a move. They write
 * their results to pinned memory, because the device may have no free memory when blocks are taken off it. */
#include "preload/copies/vram_hash.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/forked.h"
#include "preload/base/seal.h"
#include "preload/copies/vram_hash_text.h"
#include "preload/shared/os.h"

enum { NON_BLOCKING = 1, NO_TIMING = 2, PORTABLE = 1, NOT_READY = 600, NOT_SUPPORTED = 801 };
/* BLOCKS: a kernel has at most this many blocks of threads. EACH: how many units of UNIT bytes a thread hashes at
 * least, if the range has enough of them. SHEET: the bytes of the results of one kernel. */
enum { UNIT = 16, THREADS = 256, BLOCKS = 512, EACH = 8, RESULT = 32, SHEET = BLOCKS * RESULT };
enum { QUERY_NS = 20000, ATTEMPTS = 3, SETTLE_MS = 1000 };

static uint64_t seeds[2];

/* Chooses the seeds, once. If the kernel gives no random numbers, the seeds are made from the clock and an address. */
static void choose_seeds(void) {
    if (seeds[0]) return;
    if (seal_is_set() || os_call(SYS_getrandom, seeds, sizeof seeds, 1 /* GRND_NONBLOCK */) != sizeof seeds) {
        seeds[0] = os_now() * 0x9e3779b97f4a7c15u;
        seeds[1] = (seeds[0] ^ (uintptr_t)&seeds) * 0xbf58476d1ce4e5b9u;
    }
    seeds[0] |= 1;
}

static bool has_kernels(const struct vram_driver *driver) {
    return driver->cuModuleLoadData && driver->cuModuleUnload && driver->cuModuleGetFunction && driver->cuLaunchKernel;
}

static int load(const struct vram_driver *driver, struct vram_hash *self) {
    int error = has_kernels(driver) ? 0 : NOT_SUPPORTED;
    if (!error && !self->module) error = driver->cuModuleLoadData(&self->module, VRAM_HASH_TEXT);
    if (!error) error = driver->cuModuleGetFunction(&self->function, self->module, "memstow_hash");
    return error;
}

static int vram_hash_make(const struct vram_driver *driver, struct vram_hash *self) {
    int error = self->function ? 0 : load(driver, self);
    if (!error && !self->stream) error = driver->cuStreamCreate(&self->stream, NON_BLOCKING);
    if (!error && !self->event) error = driver->cuEventCreate(&self->event, NO_TIMING);
    if (!error && !self->sheets) error = driver->cuMemHostAlloc((void **)&self->sheets, VRAM_HASHES * SHEET, PORTABLE);
    if (!error && !self->sheets) error = CUDA_OUT_OF_MEMORY; /* the driver reported success, but gave no memory */
    return error;
}

/* If the driver could not load the kernel in this context before, the call fails at once: another attempt would take
 * long, because the driver translates the kernel's text. Only the latest context without the kernel is remembered
 * (`without`). */
int vram_hash_begin(const struct vram_driver *driver, struct vram_hash *self, cuda_handle context) {
    if (self->without == context || (self->context && self->context != context)) return NOT_SUPPORTED;
    int error = self->unsettled ? vram_hash_wait(driver, self, SETTLE_MS) : 0;
    if (error) return error;
    choose_seeds();
    self->count = 0;
    self->context = context;
    error = vram_hash_make(driver, self);
    if (error && !self->function) self->without = context;
    return error;
}

/* An error of the driver while it frees changes nothing here: whatever it does not free ends with the context. */
int vram_hash_end(const struct vram_driver *driver, struct vram_hash *self) {
    int error = self->unsettled ? vram_hash_wait(driver, self, SETTLE_MS) : 0;
    if (error) return error;
    if (self->event) driver->cuEventDestroy_v2(self->event);
    if (self->stream) driver->cuStreamDestroy_v2(self->stream);
    if (self->sheets) driver->cuMemFreeHost(self->sheets);
    if (self->module) driver->cuModuleUnload(self->module);
    *self = (struct vram_hash){.without = self->without};
    return 0;
}

static uint64_t blocks_for(uint64_t units) {
    uint64_t blocks = units / (THREADS * EACH);
    return blocks > BLOCKS ? BLOCKS : blocks ? blocks : 1;
}

int vram_hash_ask(const struct vram_driver *driver, struct vram_hash *self, uint64_t at, uint64_t bytes) {
    char *sheet = self->sheets + (uint64_t)self->count * SHEET;
    uint64_t units = bytes / UNIT;
    void *arguments[] = {&at, &units, &seeds[0], &seeds[1], &sheet};
    memset(sheet, 0, SHEET); /* if no kernel writes there, the result shows that nothing was hashed */
    self->units[self->count++] = units;
    self->unsettled = true;
    return driver->cuLaunchKernel(self->function, (unsigned)blocks_for(units), 1, 1, THREADS, 1, 1, 0, self->stream,
                                  arguments, NULL);
}

/* Work of the program may keep the device busy, so that the kernel does not begin. The driver's own wait would have no
 * end then, so the event is queried again and again. */
static int wait_until(const struct vram_driver *driver, const struct vram_hash *self, uint64_t end) {
    const struct timespec pause = {.tv_nsec = QUERY_NS};
    int error = driver->cuEventRecord(self->event, self->stream);
    if (error) return error;
    while ((error = driver->cuEventQuery(self->event)) == NOT_READY && os_now() < end)
        os_call(SYS_nanosleep, &pause, NULL);
    return error;
}

int vram_hash_wait(const struct vram_driver *driver, struct vram_hash *self, uint32_t milliseconds) {
    uint64_t end = os_now() + milliseconds * (uint64_t)1000000;
    int error = wait_until(driver, self, end);
    for (int i = 1; error && error != NOT_READY && i < ATTEMPTS; i++) error = wait_until(driver, self, end);
    self->unsettled = error != 0;
    return error == NOT_READY ? VRAM_HASH_LATE : error;
}

bool vram_hash_result(const struct vram_hash *self, uint32_t i, struct vram_hash_value *out) {
    uint64_t hashed = 0;
    *out = (struct vram_hash_value){0};
    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint64_t words[3];
        memcpy(words, self->sheets + (uint64_t)i * SHEET + (uint64_t)block * RESULT, sizeof words);
        out->words[0] += words[0];
        out->words[1] += words[1];
        hashed += words[2];
    }
    return hashed == self->units[i];
}

static void vram_hash_abandon(void) { seeds[0] = seeds[1] = 0; }
FORKED(vram_hash_abandon);
