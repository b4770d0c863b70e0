/* cuda_device.c — see cuda_device.h. Each function of the driver is looked up once, and again after code was
 * unloaded. */
#include "preload/cuda/cuda_device.h"

#include <string.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/shared/os.h"
#include "preload/stacks/generation.h"
#include "preload/base/forked.h"

/* The driver is asked for a device's figures again after SAMPLE_NS, or after SAMPLE_SOON_NS if SAMPLE_BYTES have come
 * or gone since. */
enum { SAMPLE_NS = 1000000000, SAMPLE_SOON_NS = 50000000, SAMPLE_BYTES = 64 << 20 };

/* Looks up a function of the driver, and remembers in *known its address, or that the driver has no such function. If
 * the driver is not loaded yet, nothing is remembered. (The runtime loads the driver only within its first call, and
 * our hooks may look up a function before this.) After code was unloaded, find_function looks again. The address shares
 * a word with the generation of the loaded code, so an old address is recognised. For example, thread A looks up,
 * thread B unloads code and looks up, and then A writes its old address. A's generation is old, too, so the next call
 * looks again. */
enum { GENERATION_BITS = 16, LOOKED = 1 << (GENERATION_BITS - 1) };

static void *find_function(uint64_t *known, const char *name) {
    uint64_t now = LOOKED | (__atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE) & (LOOKED - 1));
    uint64_t seen = os_load(known);
    if (unlikely((seen & (LOOKED | (LOOKED - 1))) != now)) {
        /* `is_loaded` is found out first. Otherwise another thread could load the driver between the two look-ups, and
         * a function that the driver has would be remembered as missing. */
        bool is_loaded = cuda_scope_any("cuCtxGetCurrent", NULL) != NULL; /* each driver has this function */
        void *found = cuda_scope_any(name, NULL);
        if (!found && !is_loaded) return NULL;
        seen = (uint64_t)(uintptr_t)found << GENERATION_BITS | now;
        os_store(known, seen);
    }
    return (void *)(uintptr_t)(seen >> GENERATION_BITS);
}

/* Defines name(), which returns the driver's function of that name, or NULL. */
#define FUNCTION(name, parameters)                                                                                     \
    static int(*name(void)) parameters {                                                                               \
        static uint64_t known;                                                                                         \
        return (int(*) parameters)find_function(&known, #name);                                                        \
    }
FUNCTION(cuCtxGetCurrent, (cuda_handle *))
FUNCTION(cuCtxSetCurrent, (cuda_handle))
FUNCTION(cuCtxGetDevice, (int *))
FUNCTION(cuDeviceGetCount, (int *))
FUNCTION(cuStreamGetDevice, (cuda_handle, int *))
FUNCTION(cuStreamIsCapturing, (cuda_handle, int *))
FUNCTION(cuStreamGetCaptureInfo, (cuda_handle, int *, uint64_t *))
FUNCTION(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))
FUNCTION(cuDevicePrimaryCtxRetain, (cuda_handle *, int))
FUNCTION(cuDevicePrimaryCtxRelease_v2, (int))
FUNCTION(cuDeviceGetName, (char *, int, int))
FUNCTION(cuDeviceGetUuid, (void *, int))
FUNCTION(cuDeviceGetUuid_v2, (void *, int))
FUNCTION(cuDeviceGetAttribute, (int *, int, int))
FUNCTION(cuMemGetInfo_v2, (size_t *, size_t *))
FUNCTION(cuDeviceGetMemPool, (cuda_handle *, int))
FUNCTION(cuMemPoolGetAttribute, (cuda_handle, int, void *))
FUNCTION(cuPointerGetAttributes, (unsigned, int *, void **, cuda_address))
FUNCTION(cuDeviceGetGraphMemAttribute, (int, int, void *))

/* The target that cuda_device_now found most recently on this thread. The driver is asked for the device again only if
 * the thread has another context now, or if a context has ended in the meantime. */
static __thread struct cuda_target last __attribute__((tls_model("initial-exec")));
/* How many contexts had ended when `last` was set. */
static __thread uint32_t last_ended __attribute__((tls_model("initial-exec")));
static uint32_t contexts_ended;
static cuda_handle primaries[SNAP_CUDA_DEVICES]; /* by device: the primary context that was noted */
static uint64_t sampled[SNAP_CUDA_DEVICES];      /* by device: when the driver was last asked for figures */
static int device_count;

struct cuda_target cuda_device_now(void) {
    cuda_handle context = NULL;
    int device = 0;
    if (!cuCtxGetCurrent() || cuCtxGetCurrent()(&context) || !context) return (struct cuda_target){0};
    uint32_t ended = __atomic_load_n(&contexts_ended, __ATOMIC_ACQUIRE);
    if (likely(context == last.context && ended == last_ended)) return last;
    if (!cuCtxGetDevice() || cuCtxGetDevice()(&device) || device < 0) device = 0;
    last_ended = ended;
    return last = (struct cuda_target){context, (uint32_t)device};
}

struct cuda_target cuda_device_in(cuda_handle context) {
    cuda_handle before = NULL;
    if (!cuCtxGetCurrent() || !cuCtxSetCurrent() || cuCtxGetCurrent()(&before)) return (struct cuda_target){0};
    if (cuCtxSetCurrent()(context)) return (struct cuda_target){0};
    struct cuda_target target = cuda_device_now();
    if (cuCtxSetCurrent()(before)) cuCtxSetCurrent()(before);
    return target;
}

uint32_t cuda_device_of_thread(uintptr_t caller) {
    struct cuda_target now = cuda_device_now();
    void *linked = now.context ? NULL : cuda_scope_linked("cudaGetDevice", caller);
    int device, (*ask)(int *) = (int (*)(int *))linked;
    if (now.context) return now.device;
    if (!ask) ask = (int (*)(int *))cuda_scope_any("cudaGetDevice", NULL);
    return ask && !ask(&device) && device >= 0 ? (uint32_t)device : 0;
}

static bool has_several(void) {
    int count = __atomic_load_n(&device_count, __ATOMIC_RELAXED);
    if (likely(count)) return count > 1;
    if (!cuDeviceGetCount() || cuDeviceGetCount()(&count)) return false;
    __atomic_store_n(&device_count, count, __ATOMIC_RELAXED);
    return count > 1;
}

uint32_t cuda_device_of_stream(cuda_handle stream, uint32_t now) {
    int device = (int)now;
    if ((uintptr_t)stream <= CUDA_STREAM_PER_THREAD || !has_several() || !cuStreamGetDevice()) return now;
    return cuStreamGetDevice()(stream, &device) || device < 0 ? now : (uint32_t)device;
}

bool cuda_device_captures(cuda_handle stream, bool otherwise) {
    int status = 0;
    if (likely(!cuda_captures_any())) return false;
    if (!cuStreamIsCapturing() || cuStreamIsCapturing()(stream, &status)) return otherwise;
    return status != 0;
}

/* The driver has no number for a capture that has become invalid (cuda.h). cuda_captures_find finds such a capture by
 * the stream on which it began. For the legacy stream the result is 0, because this stream is never captured. */
uint32_t cuda_device_capture(cuda_handle stream) {
    enum { ACTIVE = 1 };
    uint64_t number = 0;
    int status = 0;
    if ((uintptr_t)stream < CUDA_STREAM_PER_THREAD || !cuda_captures_any()) return 0;
    if (!cuStreamGetCaptureInfo() || cuStreamGetCaptureInfo()(stream, &status, &number)) status = 0;
    return status == ACTIVE ? (uint32_t)number : cuda_captures_find(stream);
}

/* --- primary contexts, and contexts that have ended --- */

void cuda_device_primary(uint32_t device, cuda_handle context) {
    if (device < SNAP_CUDA_DEVICES) __atomic_store_n(&primaries[device], context, __ATOMIC_RELAXED);
}

cuda_handle cuda_device_primary_of(uint32_t device) {
    return device < SNAP_CUDA_DEVICES ? __atomic_load_n(&primaries[device], __ATOMIC_RELAXED) : NULL;
}

/* Retains the context and releases it again. A release undoes one retain, so other holders keep the context. */
int cuda_device_ask_primary(uint32_t device, cuda_handle *context) {
    cuda_handle found = NULL;
    unsigned flags;
    int active = 0, error = 0;
    *context = NULL;
    if (!cuDevicePrimaryCtxGetState() || !cuDevicePrimaryCtxRetain() || !cuDevicePrimaryCtxRelease_v2()) return 0;
    if ((error = cuDevicePrimaryCtxGetState()((int)device, &flags, &active)) || !active) return error;
    if ((error = cuDevicePrimaryCtxRetain()(&found, (int)device))) return error;
    /* After an error, the release is not repeated: it may have been done, and the error may be an earlier kernel's. */
    cuDevicePrimaryCtxRelease_v2()((int)device);
    *context = found;
    return 0;
}

void cuda_device_context_ended(void) { __atomic_fetch_add(&contexts_ended, 1, __ATOMIC_RELEASE); }

uint32_t cuda_device_contexts_ended(void) { return __atomic_load_n(&contexts_ended, __ATOMIC_ACQUIRE); }

bool cuda_device_is_active(uint32_t device) {
    unsigned flags;
    int active = 1;
    return !cuDevicePrimaryCtxGetState() || cuDevicePrimaryCtxGetState()((int)device, &flags, &active) || active;
}

/* --- figures: how much memory a device has, and what uses it --- */

static uint64_t nothing_stowed(uint32_t device, uint64_t *asked) {
    (void)device;
    return *asked = 0;
}
uint64_t (*cuda_device_stowed)(uint32_t device, uint64_t *asked) = nothing_stowed;
bool cuda_device_total_stays;

uint64_t cuda_device_added(uint32_t device) {
    uint64_t asked;
    return cuda_device_total_stays ? 0 : cuda_device_stowed(device, &asked);
}

static uint64_t nothing_spare(uint32_t device) {
    (void)device;
    return 0;
}
uint64_t (*cuda_device_spare)(uint32_t device) = nothing_spare;

/* The live bytes that are on the device: the ledger's sum without memory that was moved off the device. */
static int64_t live_on(uint32_t device, const struct snap_cuda_device *record) {
    uint64_t out;
    cuda_device_stowed(device, &out);
    return __atomic_load_n(&record->live, __ATOMIC_RELAXED) - (int64_t)out;
}

/* Reads the uuid of a device, and finds out whether the device is a MIG instance and whether MPS shares it. For an
 * instance, cuDeviceGetUuid_v2 returns the uuid of the instance, and cuDeviceGetUuid that of the whole device. */
static uint32_t kind_of(uint32_t device, uint8_t uuid[16]) {
    enum { MPS_ENABLED = 133, UUID = 16 };
    uint8_t whole[UUID];
    uint32_t kind = 0;
    int shared = 0;
    if (cuDeviceGetUuid_v2() && !cuDeviceGetUuid_v2()(uuid, (int)device)) kind |= SNAP_CUDA_HAS_UUID;
    if (kind && cuDeviceGetUuid() && !cuDeviceGetUuid()(whole, (int)device))
        kind |= SNAP_CUDA_KNOWS_MIG | (memcmp(uuid, whole, UUID) ? SNAP_CUDA_IS_MIG : 0);
    if (cuDeviceGetAttribute() && !cuDeviceGetAttribute()(&shared, MPS_ENABLED, (int)device))
        kind |= SNAP_CUDA_KNOWS_MPS | (shared ? SNAP_CUDA_IS_MPS : 0);
    return kind;
}

static void note_identity(uint32_t device, struct snap_cuda_device *record) {
    if (record->name[0] || !cuDeviceGetName()) return;
    record->kind = kind_of(device, record->uuid);
    cuDeviceGetName()(record->name, sizeof record->name, (int)device);
}

static void cuda_device_note(uint32_t device, uint64_t available, uint64_t total, uint64_t spare) {
    struct snap_cuda_device *record = cuda_counts_device(device);
    if (!record) return;
    os_store(&record->available, available);
    os_store(&record->total, total);
    os_store(&record->spare, spare);
    __atomic_store_n(&record->figures_live, live_on(device, record), __ATOMIC_RELAXED);
    os_store(&record->figures_ns, os_now());
    note_identity(device, record);
}

static void note_pool(uint32_t device, struct snap_cuda_device *record) {
    cuda_handle pool;
    if (!cuDeviceGetMemPool() || !cuMemPoolGetAttribute() || cuDeviceGetMemPool()(&pool, (int)device)) return;
    uint64_t reserved, used;
    if (!cuMemPoolGetAttribute()(pool, CUDA_POOL_RESERVED, &reserved)) os_store(&record->pool_reserved, reserved);
    if (!cuMemPoolGetAttribute()(pool, CUDA_POOL_USED, &used)) os_store(&record->pool_used, used);
}

static void note_graphs(uint32_t device, struct snap_cuda_device *record) {
    uint64_t reserved, used;
    if (!cuDeviceGetGraphMemAttribute()) return;
    if (!cuDeviceGetGraphMemAttribute()((int)device, CUDA_GRAPH_RESERVED, &reserved))
        os_store(&record->graph_reserved, reserved);
    if (!cuDeviceGetGraphMemAttribute()((int)device, CUDA_GRAPH_USED, &used)) os_store(&record->graph_used, used);
}

/* The free memory and the pool's figures must be of the same moment, or their difference means nothing. */
void cuda_device_figures(uint64_t available, uint64_t total) {
    uint32_t device = cuda_device_now().device;
    struct snap_cuda_device *record = cuda_counts_device(device);
    uint64_t spare = cuda_device_spare(device);
    available = available > spare ? available - spare : 0;
    cuda_device_note(device, available, total - cuda_device_added(device), spare);
    if (!record || cuda_captures_any()) return;
    note_pool(device, record);
    note_graphs(device, record);
}

/* Whether the driver should be asked now: `urgent` is true, or SAMPLE_NS have passed since the driver was last asked,
 * or SAMPLE_SOON_NS have passed and much has changed. If several threads ask at once, only one of them gets true. */
static bool is_due(uint32_t device, const struct snap_cuda_device *record, bool urgent) {
    uint64_t now = os_now(), before = os_load(&sampled[device]), since = now - before;
    int64_t moved = live_on(device, record) - __atomic_load_n(&record->figures_live, __ATOMIC_RELAXED);
    bool soon = since >= SAMPLE_SOON_NS && (moved >= SAMPLE_BYTES || moved <= -SAMPLE_BYTES);
    if (!urgent && before && since < SAMPLE_NS && !soon) return false;
    return __atomic_compare_exchange_n(&sampled[device], &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void cuda_device_sample(const struct cuda_target *target, bool urgent) {
    size_t available, total;
    if (!target->context || target->device >= SNAP_CUDA_DEVICES || cuda_captures_any()) return;
    struct snap_cuda_device *record = cuda_counts_device(target->device);
    if (!record || !is_due(target->device, record, urgent)) return;
    if (!cuMemGetInfo_v2() || cuMemGetInfo_v2()(&available, &total)) return;
    cuda_device_note(target->device, available, total, cuda_device_spare(target->device));
    note_pool(target->device, record);
    note_graphs(target->device, record);
}

void cuda_device_ask_pointer(cuda_address at, struct cuda_pointer *is) {
    int which[] = {2, 8, 9}; /* MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL of CUpointer_attribute */
    unsigned type = 0, managed = 0;
    int device = 0;
    void *to[] = {&type, &managed, &device};
    if (!cuPointerGetAttributes() || cuPointerGetAttributes()(3, which, to, at) || !type || device < 0) return;
    *is = (struct cuda_pointer){type, (uint32_t)device, managed != 0};
}

uint64_t cuda_device_total(void) {
    size_t available, total;
    return cuMemGetInfo_v2() && !cuMemGetInfo_v2()(&available, &total) ? total : 0;
}

static void cuda_device_abandon(void) {
    memset(primaries, 0, sizeof primaries);
    memset(sampled, 0, sizeof sampled);
    last = (struct cuda_target){0};
}
FORKED(cuda_device_abandon);
