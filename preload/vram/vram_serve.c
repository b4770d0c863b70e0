/* vram_serve.c — see vram_serve.h. What cannot be served goes to the driver, and the program gets its answer. */
#include "preload/vram/vram_serve.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/cuda/cuda_device.h"
#include "preload/vram/cuda_parts.h"
#include "preload/cuda/cuda_route.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/ledger/trace.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/count/owner.h"
#include "preload/shared/pressure.h"
#include "preload/vram/stow_cuda.h"
#include "preload/base/symbol.h"
#include "preload/count/tags.h"
#include "preload/vram/vram_pointer.h"
#include "preload/vram/vram_reach.h"
#include "preload/vram/vram_rescue.h"
#include "preload/stacks/generation.h"
#include "preload/base/forked.h"

enum { WAIT_MS = 5000 };
enum { RESERVED_HIGH = CUDA_POOL_RESERVED + 1, USED_HIGH = CUDA_POOL_USED + 1 };

bool vram_serves;
static uint64_t threshold;
static struct vram_limits limits;
static bool verifies;

static const char *unreadable;

static uint64_t size_of(const char *name, const char *complaint) {
    uint64_t bytes;
    const char *text = os_variable(name);
    if (!pressure_bytes(text, &bytes) && *text && strcmp(text, "0")) unreadable = complaint;
    return bytes;
}

/* A smaller limit than the granule is no use: each block would take a whole granule. */
__attribute__((constructor)) static void read_wish(void) {
    unreadable = NULL;
    limits.memory = size_of("MEMSTOW_CUDA_HOST", "MEMSTOW_CUDA_HOST is no amount (8G): it counts as not set");
    limits.pinned = size_of("MEMSTOW_CUDA_PINNED", "MEMSTOW_CUDA_PINNED is no amount (8G): it counts as not set");
    limits.disk = size_of("MEMSTOW_CUDA_DISK", "MEMSTOW_CUDA_DISK is no amount (64G): it counts as not set");
    threshold = size_of("MEMSTOW_CUDA_MOVES", "MEMSTOW_CUDA_MOVES is no amount (64M): it counts as not set");
    verifies = !strcmp(os_variable("MEMSTOW_CUDA_VERIFY"), "1");
    const char *complaint = vram_rescue_wish(os_variable("MEMSTOW_CUDA_RESCUE"));
    if (complaint) unreadable = complaint;
    vram_serves = threshold != 0;
    if (threshold < VRAM_GRANULE) threshold = VRAM_GRANULE;
}

const char *vram_serve_unreadable(void) {
    read_wish(); /* a process may begin before its constructors run */
    return unreadable;
}

/* --- the driver that is loaded --- */

static uint64_t looked;               /* the loaded code at the last look */
static enum stow_cuda_refusal cannot; /* why nothing can be served, at that time */
static struct lock looking;
static uint32_t contexts_ended;
static int (*device_count)(int *), (*device_pool)(cuda_handle *, int), (*default_pool)(cuda_handle *, int);
static int (*context_of_stream)(cuda_handle, cuda_handle *), (*end_peer)(cuda_handle);
static int (*attributes_of)(unsigned, int *, void **, cuda_address);
static int devices;

static void *found(const char *name) { return cuda_scope_any(name, NULL); }

/* Bytes that were moved off a device, and the part that the program requested. */
static uint64_t stowed_on(uint32_t device, uint64_t *asked) {
    struct stow_cuda_sums sums = stow_cuda_sums(0, device);
    *asked = sums.stowed_asked;
    return sums.stowed;
}

/* There must be no other manager of addresses. */
static enum stow_cuda_refusal look(void) {
    device_count = (int (*)(int *))found("cuDeviceGetCount");
    device_pool = (int (*)(cuda_handle *, int))found("cuDeviceGetMemPool");
    default_pool = (int (*)(cuda_handle *, int))found("cuDeviceGetDefaultMemPool");
    context_of_stream = (int (*)(cuda_handle, cuda_handle *))found("cuStreamGetCtx");
    end_peer = (int (*)(cuda_handle))found("cuCtxDisablePeerAccess");
    attributes_of = (int (*)(unsigned, int *, void **, cuda_address))found("cuPointerGetAttributes");
    if (cuda_route_has_exempt()) return STOW_CUDA_AIMDO;
    if (!device_count || !device_pool || !default_pool || device_count(&devices) || !vram_reach_begin(found))
        return STOW_CUDA_OLD;
    if (!stow_cuda_is_on() && !stow_cuda_begin(found)) return STOW_CUDA_OLD;
    cuda_device_stowed = stowed_on;
    return STOW_CUDA_DONE;
}

static int take_loads(struct dl_phdr_info *object, size_t size, void *loads) {
    (void)size;
    *(uint64_t *)loads = object->dlpi_adds;
    return 1;
}

/* A number that changes whenever something is loaded or unloaded. Both are counted, and only grow. */
static uint64_t code_that_is_there(void) {
    uint64_t loads = 0;
    LIBC(dl_iterate_phdr)(take_loads, &loads);
    return 1 + loads + __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE);
}

/* While another thread looks, the driver serves. */
static bool is_possible(void) {
    uint64_t now = code_that_is_there();
    if (likely(__atomic_load_n(&looked, __ATOMIC_ACQUIRE) == now)) return !__atomic_load_n(&cannot, __ATOMIC_RELAXED);
    if (!lock_try(&looking)) return false;
    enum stow_cuda_refusal why = look();
    __atomic_store_n(&cannot, why, __ATOMIC_RELAXED);
    __atomic_store_n(&looked, now, __ATOMIC_RELEASE);
    lock_let_go(&looking);
    return !why;
}

static void vram_serve_abandon(void) {
    looked = 0;
    looking = (struct lock){0};
}
FORKED(vram_serve_abandon);

/* --- allocating --- */

/* Notes that the program works in this context. */
static int note_place(const struct cuda_place *place) {
    if (!place->context) return 0;
    stow_cuda_context(place->context);
    return vram_reach_works_on(place->device) ? stow_cuda_reach() : 0;
}

/* Work may run in any context that allocates, for a model or not. Nobody may have seen how it was made. A new context
 * may have the address of one that has ended. */
static void note_context(const struct cuda_place *place) {
    static __thread cuda_handle last;
    static __thread uint32_t last_ended;
    uint32_t ended = __atomic_load_n(&contexts_ended, __ATOMIC_ACQUIRE);
    if (likely(place->context == last && ended == last_ended) || !place->context) return;
    note_place(place);
    last = place->context;
    last_ended = ended;
}

/* The place of memory that is requested in the order of a stream: the stream's, whatever the thread's context is. */
static struct cuda_place place_of(cuda_handle stream, const struct cuda_place *now) {
    enum { FIRST_STREAM = 3 };
    cuda_handle context;
    bool elsewhere = (uintptr_t)stream >= FIRST_STREAM && devices > 1 && context_of_stream &&
                     !context_of_stream(stream, &context) && context != now->context;
    return elsewhere ? cuda_device_in(context) : *now;
}

static bool wants(uint64_t bytes, cuda_handle stream, bool in_stream, struct stow_cuda_request *out) {
    struct cuda_place place = cuda_device_now();
    note_context(&place);
    uint32_t model = tags_used ? tags_present()->model : 0;
    if (!model || bytes < threshold || cuda_captures_any() || !is_possible()) return false;
    if (in_stream) place = place_of(stream, &place);
    *out = (struct stow_cuda_request){.bytes = bytes,
                                      .device = place.device,
                                      .owner = owner_final(model),
                                      .context = place.context,
                                      .in_stream = in_stream};
    return place.context && (in_stream || vram_reach_is_whole(place.device));
}

/* An explicit pool has properties that our memory does not have. */
static bool is_default_pool(uint32_t device) {
    cuda_handle now, first;
    return !device_pool(&now, (int)device) && !default_pool(&first, (int)device) && now == first;
}

/* What the hook was told to call. */
static __thread struct {
    void *real;
    bool per_thread;
} call __attribute__((tls_model("initial-exec")));

static bool is_worth_asking_again(int result, struct vram_rescue *rescue) {
    if (unlikely(!result && rescue->tried)) vram_rescue_worked();
    return unlikely(result == CUDA_OUT_OF_MEMORY) && (stow_cuda_wait_freed() || vram_rescue(rescue));
}

static int serve_alloc(cuda_address *at, size_t bytes) {
    int (*real)(cuda_address *, size_t) = (int (*)(cuda_address *, size_t))call.real;
    struct stow_cuda_request request;
    struct vram_rescue rescue = vram_rescue_begin(bytes, false);
    bool wanted = at && wants(bytes, NULL, false, &request);
    int result;
    do result = wanted && !stow_cuda_serve(&request, at) ? 0 : real(at, bytes);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

static int serve_alloc_async(cuda_address *at, size_t bytes, cuda_handle stream) {
    typedef int function(cuda_address *, size_t, cuda_handle);
    function *real = (function *)call.real;
    struct stow_cuda_request request;
    struct vram_rescue rescue = vram_rescue_begin(bytes, true);
    rescue.stream = cuda_device_stream(stream, call.per_thread);
    bool wanted = at && wants(bytes, stream, true, &request) && is_default_pool(request.device);
    int result;
    do result = wanted && !stow_cuda_serve(&request, at) ? 0 : real(at, bytes, stream);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

/* --- requests that are not served, but may need a rescue --- */

static int serve_from_pool(cuda_address *at, size_t bytes, cuda_handle pool, cuda_handle stream) {
    typedef int function(cuda_address *, size_t, cuda_handle, cuda_handle);
    function *real = (function *)call.real;
    struct vram_rescue rescue = vram_rescue_begin(bytes, true);
    rescue.stream = cuda_device_stream(stream, call.per_thread);
    int result;
    do result = real(at, bytes, pool, stream);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

static int serve_pitch(cuda_address *at, size_t *pitch, size_t width, size_t height, unsigned element) {
    typedef int function(cuda_address *, size_t *, size_t, size_t, unsigned);
    function *real = (function *)call.real;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)width, height, &bytes)) bytes = UINT64_MAX;
    struct vram_rescue rescue = vram_rescue_begin(bytes, false);
    int result;
    do result = real(at, pitch, width, height, element);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

static int serve_create(cuda_memory *memory, size_t bytes, const struct cuda_properties *is, unsigned long long flags) {
    typedef int function(cuda_memory *, size_t, const struct cuda_properties *, unsigned long long);
    function *real = (function *)call.real;
    struct vram_rescue rescue = vram_rescue_begin(bytes, false);
    bool of_device = is && is->location.type == CUDA_LOCATION_DEVICE; /* otherwise it would take more host memory */
    int result;
    do result = real(memory, bytes, is, flags);
    while (of_device && is_worth_asking_again(result, &rescue));
    return result;
}

/* --- freeing, by address --- */

static int serve_free(cuda_address at) {
    int (*real)(cuda_address) = (int (*)(cuda_address))call.real;
    int result;
    return at && stow_cuda_free(at, &result) ? result : real(at);
}

static int serve_free_async(cuda_address at, cuda_handle stream) {
    int (*real)(cuda_address, cuda_handle) = (int (*)(cuda_address, cuda_handle))call.real;
    cuda_handle meant = cuda_device_stream(stream, call.per_thread);
    struct stow_cuda_found block;
    int result;
    if (!at || !stow_cuda_find(at, &block) || !block.in_stream || cuda_device_captures(meant, true))
        return real(at, stream);
    return stow_cuda_free_in(at, meant, &result) ? result : real(at, stream);
}

/* --- figures --- */

/* Stowed memory still counts as used, but its place on the device is free. So the total grows by that amount. A program
 * that adds free and used memory (PyTorch does) then finds no more than the total. */
static int serve_info(size_t *available, size_t *total) {
    int (*real)(size_t *, size_t *) = (int (*)(size_t *, size_t *))call.real;
    if (stow_cuda_is_on()) stow_cuda_reap();
    int result = real(available, total);
    if (result || !stow_cuda_is_on()) return result;
    uint64_t asked, out = cuda_device_stowed(cuda_device_now().device, &asked);
    *total += out;
    return 0;
}

/* Memory served in place of the default pool counts as that pool's memory: reserved in granules, used as requested. The
 * peak of both is at most the sum of the two peaks. */
static uint64_t served_in_streams(uint32_t device, int which) {
    struct stow_cuda_sums sums = stow_cuda_sums(0, device);
    switch (which) {
    case CUDA_POOL_RESERVED:
        return sums.streams_taken;
    case RESERVED_HIGH:
        return sums.streams_taken_most;
    case CUDA_POOL_USED:
        return sums.in_streams;
    default:
        return sums.in_streams_most;
    }
}

/* The device whose default pool this is. */
static bool device_of_default(int (*ask)(cuda_handle *, int), int count, cuda_handle pool, uint32_t *device) {
    cuda_handle first;
    for (int i = 0; i < count; i++)
        if (!ask(&first, i) && first == pool) {
            *device = (uint32_t)i;
            return true;
        }
    return false;
}

static bool is_figure_of_default(cuda_handle pool, int which, uint32_t *device) {
    if (which < CUDA_POOL_RESERVED || which > USED_HIGH || !stow_cuda_is_on()) return false;
    return device_of_default(default_pool, devices, pool, device);
}

static int serve_pool(cuda_handle pool, int which, void *value) {
    int (*real)(cuda_handle, int, void *) = (int (*)(cuda_handle, int, void *))call.real;
    int result = real(pool, which, value);
    uint32_t device;
    if (!result && is_figure_of_default(pool, which, &device)) *(uint64_t *)value += served_in_streams(device, which);
    return result;
}

/* The peak can be set to 0, which starts it again. */
static int serve_pool_set(cuda_handle pool, int which, void *value) {
    int (*real)(cuda_handle, int, void *) = (int (*)(cuda_handle, int, void *))call.real;
    int result = real(pool, which, value);
    bool is_most = which == RESERVED_HIGH || which == USED_HIGH;
    uint32_t device;
    if (!result && is_most && is_figure_of_default(pool, which, &device))
        stow_cuda_forget_most(device, which == RESERVED_HIGH);
    return result;
}

static int serve_trim(cuda_handle pool, size_t keep) {
    int (*real)(cuda_handle, size_t) = (int (*)(cuda_handle, size_t))call.real;
    if (stow_cuda_is_on()) stow_cuda_reap();
    return real(pool, keep);
}

/* --- what an address is --- */

static int serve_range(cuda_address *start, size_t *bytes, cuda_address at) {
    int (*real)(cuda_address *, size_t *, cuda_address) = (int (*)(cuda_address *, size_t *, cuda_address))call.real;
    uint64_t first, size;
    if (!vram_pointer_range(at, &first, &size)) return real(start, bytes, at);
    if (start) *start = first;
    if (bytes) *bytes = size;
    return 0;
}

/* cuda.h does not say how wide a truth value is. The driver has written one, and its first byte counts. */
static void write_answer(void *out, const struct vram_answer *answer) {
    if (answer->bytes)
        memcpy(out, &answer->value, answer->bytes);
    else
        *(uint8_t *)out = answer->value != 0;
}

/* For an address that it does not know, the driver writes 0 if it is asked for several attributes. */
static int serve_attribute(void *out, int which, cuda_address at) {
    int (*real)(void *, int, cuda_address) = (int (*)(void *, int, cuda_address))call.real;
    struct vram_answer answer;
    bool ours = out && vram_pointer_ask(which, at, &answer);
    int result = 0;
    if (vram_pointer_registers(which, false)) stow_cuda_refuse(at, STOW_CUDA_RDMA);
    if (!ours)
        result = real(out, which, at);
    else if (!answer.bytes)
        result = answer.is_out && attributes_of ? attributes_of(1, &which, &out, at) : real(out, which, at);
    if (ours && !result) write_answer(out, &answer);
    return result;
}

/* The driver writes all attributes, even for an address that it does not know. */
static int serve_attributes(unsigned count, int *which, void **out, cuda_address at) {
    typedef int function(unsigned, int *, void **, cuda_address);
    struct vram_answer answer;
    int result = ((function *)call.real)(count, which, out, at);
    for (unsigned i = 0; !result && i < count; i++) {
        if (vram_pointer_registers(which[i], false)) stow_cuda_refuse(at, STOW_CUDA_RDMA);
        if (vram_pointer_ask(which[i], at, &answer)) write_answer(out[i], &answer);
    }
    return result;
}

/* The result does not matter: the program's next step is to register the memory. */
static int serve_set_attribute(const void *value, int which, cuda_address at) {
    int (*real)(const void *, int, cuda_address) = (int (*)(const void *, int, cuda_address))call.real;
    if (vram_pointer_registers(which, true)) stow_cuda_refuse(at, STOW_CUDA_RDMA);
    return real(value, which, at);
}

/* --- other devices --- */

/* The access that the driver gives devices to its own memory, we give to ours, even to blocks from before serving was
 * turned off. If that fails, the program gets the error from us, and nothing has changed. */
static int serve_peer(cuda_handle peer, unsigned flags) {
    int result = ((int (*)(cuda_handle, unsigned))call.real)(peer, flags);
    if (result) return result;
    struct cuda_place place = cuda_device_now();
    note_place(&place);
    result = stow_cuda_reach();
    if (result && end_peer) end_peer(peer);
    return result;
}

/* The program says this once, and need not repeat it when something is served. So the driver is asked now, whatever the
 * last look has found. */
static int serve_pool_access(cuda_handle pool, const struct vram_access *access, size_t count) {
    typedef int function(cuda_handle, const struct vram_access *, size_t);
    int result = ((function *)call.real)(pool, access, count), there = 0;
    int (*how_many)(int *) = (int (*)(int *))found("cuDeviceGetCount");
    int (*ask)(cuda_handle *, int) = (int (*)(cuda_handle *, int))found("cuDeviceGetDefaultMemPool");
    uint32_t device;
    if (result || !how_many || !ask || how_many(&there) || !device_of_default(ask, there, pool, &device)) return result;
    for (size_t i = 0; i < count; i++)
        if (access[i].location_type == CUDA_LOCATION_DEVICE)
            vram_reach_pool(device, (uint32_t)access[i].location_id, access[i].flags != 0);
    return stow_cuda_reach();
}

/* --- calls that tell others where the memory is; they would not notice if it moved --- */

static int serve_retain(cuda_memory *memory, void *at) {
    int (*real)(cuda_memory *, void *) = (int (*)(cuda_memory *, void *))call.real;
    int result = real(memory, at);
    if (!result) stow_cuda_refuse((uintptr_t)at, STOW_CUDA_HANDLE);
    return result;
}

static int serve_bind(cuda_memory to, size_t offset, cuda_address at, size_t bytes, unsigned long long flags) {
    typedef int function(cuda_memory, size_t, cuda_address, size_t, unsigned long long);
    int result = ((function *)call.real)(to, offset, at, bytes, flags);
    if (!result) stow_cuda_refuse(at, STOW_CUDA_MULTICAST);
    return result;
}

static int serve_share(void *shared, cuda_address at, size_t bytes, int type, unsigned long long flags) {
    typedef int function(void *, cuda_address, size_t, int, unsigned long long);
    int result = ((function *)call.real)(shared, at, bytes, type, flags);
    if (!result) stow_cuda_refuse(at, STOW_CUDA_EXPORTED);
    return result;
}

static int serve_export(struct cuda_ipc_memory *handle, cuda_address at) {
    int (*real)(struct cuda_ipc_memory *, cuda_address) = (int (*)(struct cuda_ipc_memory *, cuda_address))call.real;
    int result = real(handle, at);
    if (!result) stow_cuda_refuse(at, STOW_CUDA_EXPORTED);
    return result;
}

static void *instead(enum cuda_entry_id entry) {
    switch (entry) {
    case CUDA_ENTRY_cuMemAlloc_v2:
        return (void *)serve_alloc;
    case CUDA_ENTRY_cuMemAllocAsync:
    case CUDA_ENTRY_cuMemAllocAsync_ptsz:
        return (void *)serve_alloc_async;
    case CUDA_ENTRY_cuMemAllocFromPoolAsync:
    case CUDA_ENTRY_cuMemAllocFromPoolAsync_ptsz:
        return (void *)serve_from_pool;
    case CUDA_ENTRY_cuMemAllocPitch_v2:
        return (void *)serve_pitch;
    case CUDA_ENTRY_cuMemCreate:
        return (void *)serve_create;
    case CUDA_ENTRY_cuMemFree_v2:
        return (void *)serve_free;
    case CUDA_ENTRY_cuMemFreeAsync:
    case CUDA_ENTRY_cuMemFreeAsync_ptsz:
        return (void *)serve_free_async;
    case CUDA_ENTRY_cuMemGetInfo_v2:
        return (void *)serve_info;
    case CUDA_ENTRY_cuMemPoolGetAttribute:
        return (void *)serve_pool;
    case CUDA_ENTRY_cuMemPoolSetAttribute:
        return (void *)serve_pool_set;
    case CUDA_ENTRY_cuMemPoolTrimTo:
        return (void *)serve_trim;
    case CUDA_ENTRY_cuMemGetAddressRange_v2:
        return (void *)serve_range;
    case CUDA_ENTRY_cuPointerGetAttribute:
        return (void *)serve_attribute;
    case CUDA_ENTRY_cuPointerGetAttributes:
        return (void *)serve_attributes;
    case CUDA_ENTRY_cuPointerSetAttribute:
        return (void *)serve_set_attribute;
    case CUDA_ENTRY_cuCtxEnablePeerAccess:
        return (void *)serve_peer;
    case CUDA_ENTRY_cuMemPoolSetAccess:
        return (void *)serve_pool_access;
    case CUDA_ENTRY_cuMemRetainAllocationHandle:
        return (void *)serve_retain;
    case CUDA_ENTRY_cuMulticastBindAddr:
        return (void *)serve_bind;
    case CUDA_ENTRY_cuMemGetHandleForAddressRange:
        return (void *)serve_share;
    case CUDA_ENTRY_cuIpcGetMemHandle:
        return (void *)serve_export;
    default:
        return NULL;
    }
}

void *vram_serve_instead(enum cuda_entry_id entry, void *real) {
    void *ours = instead(entry);
    if (!ours) return real;
    call.real = real;
    call.per_thread = cuda_entries[entry].per_thread;
    return ours;
}

/* --- ends --- */

void vram_serve_context_made(cuda_handle context, uint32_t device) {
    note_place(&(struct cuda_place){context, device});
}

/* Threads that have noted a context note it again after it has left the list. Any earlier they would find it there. */
void vram_serve_context_ended(cuda_handle context, bool goes_on, uint64_t end) {
    uint32_t device;
    cuda_handle heir = goes_on || !vram_serves ? context : NULL;
    if (!heir && stow_cuda_device_of(context, &device)) heir = cuda_device_ask_primary(device);
    stow_cuda_context_ended(context, heir, end);
    __atomic_fetch_add(&contexts_ended, 1, __ATOMIC_RELEASE);
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
    trace_add_line(&line);
}

static int64_t error_of(enum stow_cuda_refusal refusal) {
    switch (refusal) {
    case STOW_CUDA_DONE:
    case STOW_CUDA_EMPTY:
        return 0;
    case STOW_CUDA_CAPTURE:
    case STOW_CUDA_BUSY:
    case STOW_CUDA_AT_WORK:
    case STOW_CUDA_NOT_IDLE:
    case STOW_CUDA_CHANGED:
    case STOW_CUDA_CONTEXTS:
        return -EBUSY;
    case STOW_CUDA_CANCELLED:
        return -ECANCELED;
    case STOW_CUDA_HANDLE:
    case STOW_CUDA_MULTICAST:
    case STOW_CUDA_EXPORTED:
    case STOW_CUDA_RDMA:
    case STOW_CUDA_MIXED:
        return -EPERM;
    case STOW_CUDA_AIMDO:
        return -ENOTSUP;
    case STOW_CUDA_NO_ROOM:
    case STOW_CUDA_NO_VRAM:
        return -ENOMEM;
    case STOW_CUDA_DISK_FULL:
        return -ENOSPC;
    case STOW_CUDA_DISK:
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

/* --- the parts of an owner's memory that cannot move --- */

enum { SHARERS_MOST = 16 };

struct kept {
    uint64_t bytes[STOW_CUDA_REFUSALS];
    uint64_t mixed[SHARERS_MOST]; /* numbers of blocks */
    uint32_t mixed_count;
};

static void add_kept(enum stow_cuda_refusal why, uint64_t at, uint64_t bytes, void *context) {
    struct kept *kept = context;
    kept->bytes[why] += bytes;
    if (why == STOW_CUDA_MIXED && kept->mixed_count < SHARERS_MOST) kept->mixed[kept->mixed_count++] = at;
}

static uint32_t add_sharers(uint64_t block, uint32_t but, uint32_t *owners, uint32_t count) {
    uint32_t found[SHARERS_MOST], n = cuda_parts_owners(block, found, SHARERS_MOST);
    for (uint32_t i = 0, at; i < n; i++) {
        for (at = 0; at < count && owners[at] != found[i]; at++) continue;
        if (found[i] != but && at == count && count < SHARERS_MOST) owners[count++] = found[i];
    }
    return count;
}

static void note_mixed(uint32_t owner, const struct kept *kept) {
    uint32_t owners[SHARERS_MOST], count = 0;
    struct line line;
    for (uint32_t i = 0; i < kept->mixed_count; i++) count = add_sharers(kept->mixed[i], owner, owners, count);
    line_begin(&line, "REFUSED");
    line_number(&line, "owner", owner);
    line_string(&line, "move", "out");
    line_string(&line, "because", stow_cuda_refusal_text(STOW_CUDA_MIXED));
    line_numbers(&line, "with", owners, count);
    line_number(&line, "bytes", kept->bytes[STOW_CUDA_MIXED]);
    trace_add_line(&line);
}

/* Returns the bytes. */
static uint64_t note_kept(uint32_t owner) {
    struct kept kept = {.mixed_count = 0};
    stow_cuda_visit_kept(owner, add_kept, &kept);
    uint64_t sum = kept.bytes[STOW_CUDA_MIXED];
    for (int why = STOW_CUDA_HANDLE; why < STOW_CUDA_MIXED; why++) {
        if (kept.bytes[why]) note_refusal(owner, "out", (enum stow_cuda_refusal)why, 0, kept.bytes[why]);
        sum += kept.bytes[why];
    }
    if (kept.bytes[STOW_CUDA_MIXED]) note_mixed(owner, &kept);
    return sum;
}

static __thread const char *why_last __attribute__((tls_model("initial-exec")));
static __thread int64_t result_last __attribute__((tls_model("initial-exec")));

void vram_serve_forget_why(void) { result_last = 0; }

const char *vram_serve_why(int64_t result) { return result < 0 && result == result_last ? why_last : NULL; }

/* `kept` bytes of what stays were explained before. */
static void note_stays(uint32_t owner, bool out, enum stow_cuda_refusal refusal, int error, uint64_t kept) {
    struct stow_cuda_sums sums = stow_cuda_sums(owner, UINT32_MAX);
    uint64_t there = out ? sums.live : sums.stowed;
    if (refusal && refusal != STOW_CUDA_EMPTY && !stow_cuda_is_of_blocks(refusal) && there > kept)
        note_refusal(owner, out ? "out" : "back", refusal, error, there - kept);
}

static int64_t result_of(enum stow_cuda_refusal refusal, uint64_t bytes) {
    result_last = bytes ? (int64_t)bytes : error_of(refusal);
    why_last = stow_cuda_refusal_text(refusal);
    return result_last;
}

/* What an owner has on devices, by whether that kind of memory can be served. */
struct in_devices {
    uint32_t owner;
    uint64_t plain, pooled, other;
    uint64_t apart; /* the part of `plain` on devices from which another device could not copy */
};

static void add_to(const struct snap_cuda_site *site, void *context) {
    struct in_devices *has = context;
    uint64_t live = site->counter.alloc_bytes - site->counter.free_bytes;
    if (!snap_cuda_on_device(site->kind) || owner_final(tags_at(site->tag).model) != has->owner) return;
    bool is_plain = site->kind == SNAP_CUDA_DEVICE_MEMORY;
    *(is_plain ? &has->plain : site->kind == SNAP_CUDA_POOL_MEMORY ? &has->pooled : &has->other) += live;
    if (is_plain && stow_cuda_is_on() && !vram_reach_is_whole(site->device)) has->apart += live;
}

/* Why the driver served memory that we could have served. */
static enum stow_cuda_refusal why_not_served(void) {
    if (!vram_serves) return STOW_CUDA_OFF;
    is_possible();
    enum stow_cuda_refusal why = __atomic_load_n(&cannot, __ATOMIC_RELAXED);
    return why ? why : STOW_CUDA_SMALL;
}

/* Memory from the driver stays where it is. */
static void note_not_served(uint32_t owner) {
    struct in_devices has = {.owner = owner};
    uint64_t served = stow_cuda_is_on() ? stow_cuda_sums(owner, UINT32_MAX).asked : 0;
    cuda_counts_visit(add_to, &has);
    uint64_t could = has.plain + has.pooled - has.apart;
    if (has.apart) note_refusal(owner, "out", STOW_CUDA_DEVICES, 0, has.apart);
    if (could > served) note_refusal(owner, "out", why_not_served(), 0, could - served);
    if (has.other) note_refusal(owner, "out", STOW_CUDA_KIND, 0, has.other);
}

/* A kernel that uses the owner while it moves would find no memory. So only owners that are declared idle move. */
int64_t vram_serve_out(uint32_t owner, bool idle, bool at_once, struct move_end end) {
    struct stow_cuda_options options = {
        .owner = owner, .milliseconds = WAIT_MS, .verify = verifies, .limits = limits, .at_once = at_once, .end = end};
    enum stow_cuda_refusal refusal;
    int error = 0;
    note_not_served(owner);
    if (!stow_cuda_is_on() || !stow_cuda_sums(owner, UINT32_MAX).live) return 0;
    if (!idle || cuda_route_has_exempt()) {
        refusal = idle ? STOW_CUDA_AIMDO : STOW_CUDA_NOT_IDLE;
        note_stays(owner, true, refusal, 0, 0);
        return result_of(refusal, 0);
    }
    for (int i = 0; i < devices; i++) /* the runtime makes them unseen */
        vram_serve_context_made(cuda_device_ask_primary((uint32_t)i), (uint32_t)i);
    uint64_t bytes = stow_cuda_out(&options, &refusal, &error);
    note_stays(owner, true, refusal, error, note_kept(owner));
    return result_of(refusal, bytes);
}

int64_t vram_serve_in(uint32_t owner) {
    struct stow_cuda_options options = {.owner = owner};
    enum stow_cuda_refusal refusal;
    int error = 0;
    if (!stow_cuda_is_on() || !stow_cuda_sums(owner, UINT32_MAX).stowed) return 0;
    uint64_t bytes = stow_cuda_in(&options, &refusal, &error);
    note_stays(owner, false, refusal, error, 0);
    return result_of(refusal, bytes);
}

uint64_t vram_serve_stowed(uint32_t owner) { return stow_cuda_is_on() ? stow_cuda_sums(owner, UINT32_MAX).stowed : 0; }
