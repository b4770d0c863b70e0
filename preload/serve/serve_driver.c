/* serve_driver.c — see serve_driver.h. */
#include "preload/serve/serve_driver.h"

#include <link.h>

#include "preload/base/forked.h"
#include "preload/base/lock.h"
#include "preload/base/symbol.h"
#include "preload/copies/vram_thread.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_route.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/serve/serve_settings.h"
#include "preload/shared/os.h"
#include "preload/stacks/generation.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_reach.h"
#include "preload/vram/vram_spare.h"
#include "preload/vram/vram_sums.h"
#include "preload/vram/vram_table.h"

static uint64_t looked;          /* the value of code_that_is_there() when look_at_driver ran; 0: it has not run */
static enum vram_refusal cannot; /* what look_at_driver returned: why nothing can be served */
static struct lock looking;

struct serve_driver serve_driver;

void *serve_driver_function(const char *name) { return cuda_scope_any(name, NULL); }

/* Bytes that were moved off a device. *asked: the bytes that the program requested for these blocks. */
static uint64_t stowed_on(uint32_t device, uint64_t *asked) {
    struct vram_sums sums = vram_sums(0, device);
    *asked = sums.stowed_asked;
    return sums.stowed;
}

static uint64_t spare_on(uint32_t device) { return vram_table_spares() ? vram_sums(0, device).spare : 0; }

/* Finds the driver's functions. Returns VRAM_REFUSAL_DONE if memory can be served, otherwise the reason why it
 * cannot. One reason is comfy-aimdo, which manages addresses itself. */
static enum vram_refusal look_at_driver(void) {
    serve_driver.device_count = (int (*)(int *))serve_driver_function("cuDeviceGetCount");
    serve_driver.device_pool = (int (*)(cuda_handle *, int))serve_driver_function("cuDeviceGetMemPool");
    serve_driver.default_pool = (int (*)(cuda_handle *, int))serve_driver_function("cuDeviceGetDefaultMemPool");
    serve_driver.context_of_stream = (int (*)(cuda_handle, cuda_handle *))serve_driver_function("cuStreamGetCtx");
    serve_driver.end_peer = (int (*)(cuda_handle))serve_driver_function("cuCtxDisablePeerAccess");
    serve_driver.attributes_of =
        (int (*)(unsigned, int *, void **, cuda_address))serve_driver_function("cuPointerGetAttributes");
    if (cuda_route_has_exempt()) return VRAM_REFUSAL_AIMDO;
    if (!serve_driver.device_count || !serve_driver.device_pool || !serve_driver.default_pool ||
        serve_driver.device_count(&serve_driver.devices) || !vram_reach_begin(serve_driver_function))
        return VRAM_REFUSAL_OLD;
    if (!vram_driver_is_on() && !vram_driver_begin(serve_driver_function)) return VRAM_REFUSAL_OLD;
    cuda_device_stowed = stowed_on;
    cuda_device_total_stays = serve_settings.keeps_total;
    cuda_device_spare = spare_on;
    return VRAM_REFUSAL_DONE;
}

static int take_loads(struct dl_phdr_info *object, size_t size, void *loads) {
    (void)size;
    *(uint64_t *)loads = object->dlpi_adds;
    return 1;
}

/* A number that changes whenever code is loaded or unloaded: the sum of two counts that only grow. */
static uint64_t code_that_is_there(void) {
    uint64_t loads = 0;
    LIBC(dl_iterate_phdr)(take_loads, &loads);
    return 1 + loads + __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE);
}

/* While another thread examines the driver, the answer is false, so a request for memory goes to the driver. */
bool serve_driver_is_fit(void) {
    uint64_t now = code_that_is_there();
    if (likely(__atomic_load_n(&looked, __ATOMIC_ACQUIRE) == now)) return !__atomic_load_n(&cannot, __ATOMIC_RELAXED);
    if (!lock_try(&looking)) return false;
    enum vram_refusal why = look_at_driver();
    __atomic_store_n(&cannot, why, __ATOMIC_RELAXED);
    /* Keeps no spares if nothing can be served. For example, nothing is served while comfy-aimdo is loaded. The
     * requests of comfy-aimdo pass no hook of ours, so memstow could not give it the memory of spares. */
    vram_spare_stop(why != VRAM_REFUSAL_DONE);
    __atomic_store_n(&looked, now, __ATOMIC_RELEASE);
    lock_let_go(&looking);
    if (why) vram_memory_give_back();
    return !why;
}

/* A thread with descriptors of its own (vram_thread.h) does not examine the driver, because its calls of the driver
 * would fail. The failure would be noted in `cannot`, so memory would be served on no thread any more. */
enum vram_refusal serve_driver_refusal(void) {
    if (!vram_thread_apart) serve_driver_is_fit();
    return __atomic_load_n(&cannot, __ATOMIC_RELAXED);
}

bool serve_driver_pool_device(int (*ask)(cuda_handle *, int), int count, cuda_handle pool, uint32_t *device) {
    cuda_handle first;
    for (int i = 0; i < count; i++)
        if (!ask(&first, i) && first == pool) {
            *device = (uint32_t)i;
            return true;
        }
    return false;
}

static void serve_driver_abandon(void) {
    looked = 0;
    looking = (struct lock){0};
}
FORKED(serve_driver_abandon);
