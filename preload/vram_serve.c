/* vram_serve.c — see vram_serve.h. What cannot be served is asked of the driver, whose answer is the program's. */
#include "vram_serve.h"

#include <errno.h>

#include "cuda_captures.h"
#include "cuda_device.h"
#include "cuda_scope.h"
#include "line.h"
#include "os.h"
#include "site.h"
#include "stow_cuda.h"
#include "tags.h"

enum { WAIT_MS = 5000 };
enum { USED_HIGH = CUDA_POOL_USED + 1 };

bool vram_serves;
static uint64_t threshold;

static uint64_t size_of(const char *text) {
    uint64_t n = 0;
    for (; *text >= '0' && *text <= '9'; text++) n = n * 10 + (uint64_t)(*text - '0');
    return *text == 'K' ? n << 10 : *text == 'M' ? n << 20 : *text == 'G' ? n << 30 : n;
}

/* Nothing below the granule: it would take the whole of one. */
__attribute__((constructor)) static void read_wish(void) {
    threshold = size_of(os_variable("MEMSTOW_CUDA_MOVES"));
    vram_serves = threshold != 0;
    if (threshold < VRAM_GRANULE) threshold = VRAM_GRANULE;
}

/* --- the driver that is there --- */

static uint32_t asked; /* 1 + the generation of the code that was looked at */
static bool possible;
static cuda_handle primary;
static int (*device_count)(int *), (*device_pool)(cuda_handle *, int), (*default_pool)(cuda_handle *, int);

static void *found(const char *name) { return cuda_scope_any(name, NULL); }

/* The context that a reset of the device ends. It is asked for while it is there, which makes none. */
static void learn_primary(void) {
    int (*state)(int, unsigned *, int *) = (int (*)(int, unsigned *, int *))found("cuDevicePrimaryCtxGetState");
    int (*retain)(cuda_handle *, int) = (int (*)(cuda_handle *, int))found("cuDevicePrimaryCtxRetain");
    int (*release)(int) = (int (*)(int))found("cuDevicePrimaryCtxRelease_v2");
    unsigned flags;
    int active = 0;
    if (!state || !retain || !release || state(0, &flags, &active) || !active || retain(&primary, 0)) return;
    release(0);
}

/* One device, whose peers need not be mirrored; and no other manager of addresses that patches the driver. */
static bool look(void) {
    int devices = 0;
    device_count = (int (*)(int *))found("cuDeviceGetCount");
    device_pool = (int (*)(cuda_handle *, int))found("cuDeviceGetMemPool");
    default_pool = (int (*)(cuda_handle *, int))found("cuDeviceGetDefaultMemPool");
    if (!device_count || !device_pool || !default_pool || found("vbar_allocate")) return false;
    return !device_count(&devices) && devices == 1 && (stow_cuda_is_on() || stow_cuda_begin(found));
}

static bool is_possible(void) {
    uint32_t now = __atomic_load_n(&site_code_generation, __ATOMIC_ACQUIRE) + 1;
    if (unlikely(__atomic_load_n(&asked, __ATOMIC_ACQUIRE) != now)) {
        __atomic_store_n(&possible, look(), __ATOMIC_RELAXED);
        __atomic_store_n(&asked, now, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&possible, __ATOMIC_RELAXED);
}

void vram_serve_abandon(void) {
    stow_cuda_abandon();
    asked = 0;
    primary = NULL;
}

/* --- allocating --- */

/* Work may run in any context that allocates, a model's or not. */
static void note_context(cuda_handle context) {
    static __thread cuda_handle last;
    if (likely(context == last) || !context || !stow_cuda_is_on()) return;
    stow_cuda_context(context);
    last = context;
}

static bool wants(uint64_t bytes, struct stow_cuda_request *out) {
    struct cuda_place place = cuda_device_now();
    note_context(place.context);
    uint32_t model = tags_used ? tags_present()->model : 0;
    if (!model || bytes < threshold || cuda_captures_any() || !is_possible()) return false;
    if (place.context && place.context != primary) learn_primary();
    *out = (struct stow_cuda_request){.bytes = bytes, .device = place.device, .owner = model, .context = place.context};
    return place.context != NULL;
}

/* An explicit pool has properties that memory of ours has not. */
static bool is_default_pool(uint32_t device) {
    cuda_handle now, first;
    return !device_pool(&now, (int)device) && !default_pool(&first, (int)device) && now == first;
}

static __thread void *driver_alloc, *driver_free, *driver_alloc_async, *driver_free_async, *driver_info, *driver_pool;

static int serve_alloc(cuda_address *at, size_t bytes) {
    int (*real)(cuda_address *, size_t) = (int (*)(cuda_address *, size_t))driver_alloc;
    struct stow_cuda_request request;
    if (at && wants(bytes, &request) && !stow_cuda_serve(&request, at)) return 0;
    return real(at, bytes);
}

static int serve_alloc_async(cuda_address *at, size_t bytes, cuda_handle stream) {
    typedef int function(cuda_address *, size_t, cuda_handle);
    function *real = (function *)driver_alloc_async;
    struct stow_cuda_request request;
    if (at && wants(bytes, &request) && is_default_pool(request.device)) {
        request.in_stream = true;
        if (!stow_cuda_serve(&request, at)) return 0;
    }
    return real(at, bytes, stream);
}

/* --- freeing: by address, whoever asks --- */

/* The driver waits for what runs before it frees plain memory; memory in the order of streams it frees at once. */
static int serve_free(cuda_address at) {
    int (*real)(cuda_address) = (int (*)(cuda_address))driver_free;
    struct stow_cuda_found block;
    int result;
    if (!at || !stow_cuda_find(at, &block) || block.at != at) return real(at);
    if (!block.in_stream && block.state == VRAM_LIVE && (result = stow_cuda_wait())) return result;
    return stow_cuda_free(at, &result) ? result : real(at);
}

static int serve_free_async(cuda_address at, cuda_handle stream) {
    int (*real)(cuda_address, cuda_handle) = (int (*)(cuda_address, cuda_handle))driver_free_async;
    struct stow_cuda_found block;
    int result;
    if (!at || !stow_cuda_find(at, &block) || block.at != at || !block.in_stream || cuda_device_captures(stream, true))
        return real(at, stream);
    return stow_cuda_free_in(at, stream, &result) ? result : real(at, stream);
}

/* --- figures --- */

/* What is out is still the program's, which counts it as used: it must not find it free, too. */
static int serve_info(size_t *available, size_t *total) {
    int (*real)(size_t *, size_t *) = (int (*)(size_t *, size_t *))driver_info;
    int result = real(available, total);
    if (result || !stow_cuda_is_on()) return result;
    uint64_t out = stow_cuda_sums(0, cuda_device_now().device).stowed;
    *available -= out < *available ? out : *available;
    return 0;
}

/* What was served in the place of the default pool is its memory to who asks. */
static int serve_pool(cuda_handle pool, int which, void *value) {
    int (*real)(cuda_handle, int, void *) = (int (*)(cuda_handle, int, void *))driver_pool;
    cuda_handle first;
    int result = real(pool, which, value);
    if (result || which < CUDA_POOL_RESERVED || which > USED_HIGH || !stow_cuda_is_on()) return result;
    if (!default_pool(&first, 0) && first == pool) *(uint64_t *)value += stow_cuda_in_streams();
    return 0;
}

void *vram_serve_instead(enum cuda_entry_id entry, void *real) {
    switch (entry) {
    case CUDA_ENTRY_cuMemAlloc_v2:
        driver_alloc = real;
        return (void *)serve_alloc;
    case CUDA_ENTRY_cuMemAllocAsync:
    case CUDA_ENTRY_cuMemAllocAsync_ptsz:
        driver_alloc_async = real;
        return (void *)serve_alloc_async;
    case CUDA_ENTRY_cuMemFree_v2:
        driver_free = real;
        return (void *)serve_free;
    case CUDA_ENTRY_cuMemFreeAsync:
    case CUDA_ENTRY_cuMemFreeAsync_ptsz:
        driver_free_async = real;
        return (void *)serve_free_async;
    case CUDA_ENTRY_cuMemGetInfo_v2:
        driver_info = real;
        return (void *)serve_info;
    case CUDA_ENTRY_cuMemPoolGetAttribute:
        driver_pool = real;
        return (void *)serve_pool;
    default:
        return real;
    }
}

/* --- ends --- */

void vram_serve_context_ended(cuda_handle context) {
    if (stow_cuda_is_on()) stow_cuda_context_ended(context);
}

void vram_serve_device_ended(uint32_t device) {
    if (!device && primary) vram_serve_context_ended(primary);
}

/* --- moving --- */

static void note_refusal(uint32_t owner, const char *kind, enum stow_cuda_refusal refusal, int error, uint64_t bytes) {
    struct line line;
    line_begin(&line, "REFUSED");
    line_number(&line, "owner", owner);
    line_string(&line, "move", kind);
    line_string(&line, "because", stow_cuda_refusal_text(refusal));
    line_number(&line, "bytes", bytes);
    line_signed(&line, "cuda_error", error);
    line_end(&line);
}

static int64_t error_of(enum stow_cuda_refusal refusal) {
    switch (refusal) {
    case STOW_CUDA_DONE:
    case STOW_CUDA_EMPTY:
        return 0;
    case STOW_CUDA_CAPTURE:
    case STOW_CUDA_BUSY:
    case STOW_CUDA_NOT_IDLE:
        return -EBUSY;
    case STOW_CUDA_KNOWN:
        return -EPERM;
    case STOW_CUDA_NO_ROOM:
    case STOW_CUDA_NO_VRAM:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

static int64_t moved(uint32_t owner, const char *kind, enum stow_cuda_refusal refusal, int error, uint64_t bytes) {
    struct stow_cuda_sums sums = stow_cuda_sums(owner, UINT32_MAX);
    if (refusal && refusal != STOW_CUDA_EMPTY) note_refusal(owner, kind, refusal, error, sums.live + sums.stowed);
    return bytes ? (int64_t)bytes : error_of(refusal);
}

/* Kernels of the owner's that begin while it moves would find nothing: only who says that none will is moved. */
int64_t vram_serve_out(uint32_t owner, bool idle) {
    struct stow_cuda_options options = {
        .owner = owner, .milliseconds = WAIT_MS, .capturing = cuda_captures_any()};
    enum stow_cuda_refusal refusal;
    int error = 0;
    if (!stow_cuda_is_on() || !stow_cuda_sums(owner, UINT32_MAX).live) return 0;
    if (!idle) return moved(owner, "out", STOW_CUDA_NOT_IDLE, 0, 0);
    uint64_t bytes = stow_cuda_out(&options, &refusal, &error);
    return moved(owner, "out", refusal, error, bytes);
}

int64_t vram_serve_in(uint32_t owner) {
    struct stow_cuda_options options = {
        .owner = owner, .milliseconds = WAIT_MS, .capturing = cuda_captures_any()};
    enum stow_cuda_refusal refusal;
    int error = 0;
    if (!stow_cuda_is_on() || !stow_cuda_sums(owner, UINT32_MAX).stowed) return 0;
    uint64_t bytes = stow_cuda_in(&options, &refusal, &error);
    return moved(owner, "back", refusal, error, bytes);
}

uint64_t vram_serve_bytes(uint32_t owner, uint64_t *stowed) {
    struct stow_cuda_sums sums = {0};
    if (stow_cuda_is_on()) sums = stow_cuda_sums(owner, UINT32_MAX);
    *stowed = sums.stowed;
    return sums.live + sums.stowed;
}
