/* serve_alloc.c — stand-ins for entries that allocate and free (serve_entries.h). Requests that cannot be served go to
 * the driver, and the program gets the driver's answer. */
#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_route.h"
#include "preload/count/owner.h"
#include "preload/count/tags.h"
#include "preload/serve/rescue.h"
#include "preload/serve/serve_contexts.h"
#include "preload/serve/serve_driver.h"
#include "preload/serve/serve_entries.h"
#include "preload/serve/serve_settings.h"
#include "preload/vram/vram_ahead.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_reach.h"

/* Returns the device and the context of a stream, which may differ from those of the thread (`now`). For a default
 * stream, and if there is only one device, returns `now`. */
static struct cuda_target target_of(cuda_handle stream, const struct cuda_target *now) {
    enum { FIRST_STREAM = 3 };
    cuda_handle context;
    bool elsewhere = (uintptr_t)stream >= FIRST_STREAM && serve_driver.devices > 1 && serve_driver.context_of_stream &&
                     !serve_driver.context_of_stream(stream, &context) && context != now->context;
    return elsewhere ? cuda_device_in(context) : *now;
}

/* Whether memstow is to serve this request; if so, fills in *out. False if the thread is not in the scope of a model,
 * if the request is too small, if its memory is short-lived or must not move, or if memory cannot be served now. */
static bool serve_alloc_wants(uint64_t bytes, cuda_handle stream, bool in_stream, struct vram_request *out) {
    struct cuda_target target = cuda_device_now();
    serve_contexts_note_present(&target);
    uint32_t model = tags_used ? tags_present()->model : 0;
    if (!model || bytes < serve_settings.threshold || cuda_captures_any() || !serve_driver_is_fit()) return false;
    if (!tags_loads && owner_loads(owner_final(model))) return false; /* no weight: the model is not being loaded */
    if (!in_stream && serve_settings.exports) return false;           /* memory of a stream cannot be exported anyway */
    if (cuda_route_is_library(serve_call.caller)) return false; /* a library's memory outlives the model's scope */
    if (in_stream) target = target_of(stream, &target);
    *out = (struct vram_request){.bytes = bytes,
                                 .device = target.device,
                                 .owner = owner_final(model),
                                 .context = target.context,
                                 .in_stream = in_stream,
                                 .stream = stream};
    return target.context && (in_stream || vram_reach_is_whole(target.device));
}

/* Whether the device's present pool is its default pool. Requests to a pool that the program chose are not served,
 * because such a pool may have properties that served memory lacks. */
static bool is_default_pool(uint32_t device) {
    cuda_handle now, first;
    return !serve_driver.device_pool(&now, (int)device) && !serve_driver.default_pool(&first, (int)device) &&
           now == first;
}

/* Returns true if the driver had no memory, but memory has been freed since, so that a new request may succeed. */
static bool is_worth_asking_again(int result, struct rescue *rescue) {
    if (unlikely(!result && rescue->tried)) rescue_worked();
    return unlikely(result == CUDA_OUT_OF_MEMORY) && (vram_memory_wait_freed() || rescue_try(rescue));
}

static bool is_served(const struct vram_request *request, cuda_address *at) {
    if (vram_memory_serve(request, at)) return false;
    vram_ahead_served(request, &serve_settings.limits);
    return true;
}

int serve_alloc(cuda_address *at, size_t bytes) {
    int (*real)(cuda_address *, size_t) = (int (*)(cuda_address *, size_t))serve_call.real;
    struct vram_request request;
    struct rescue rescue = rescue_begin(bytes, false);
    bool wanted = at && serve_alloc_wants(bytes, NULL, false, &request);
    int result;
    do result = wanted && is_served(&request, at) ? 0 : real(at, bytes);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

int serve_alloc_async(cuda_address *at, size_t bytes, cuda_handle stream) {
    typedef int function(cuda_address *, size_t, cuda_handle);
    function *real = (function *)serve_call.real;
    struct vram_request request;
    struct rescue rescue = rescue_begin(bytes, true);
    rescue.stream = cuda_device_stream(stream, serve_call.per_thread);
    bool wanted = at && serve_alloc_wants(bytes, rescue.stream, true, &request) && is_default_pool(request.device);
    int result;
    do result = wanted && is_served(&request, at) ? 0 : real(at, bytes, stream);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

/* --- requests that always go to the driver; if the device lacks memory, a rescue (rescue.h) may free some --- */

int serve_from_pool(cuda_address *at, size_t bytes, cuda_handle pool, cuda_handle stream) {
    typedef int function(cuda_address *, size_t, cuda_handle, cuda_handle);
    function *real = (function *)serve_call.real;
    struct rescue rescue = rescue_begin(bytes, true);
    rescue.stream = cuda_device_stream(stream, serve_call.per_thread);
    int result;
    do result = real(at, bytes, pool, stream);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

int serve_pitch(cuda_address *at, size_t *pitch, size_t width, size_t height, unsigned element) {
    typedef int function(cuda_address *, size_t *, size_t, size_t, unsigned);
    function *real = (function *)serve_call.real;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)width, height, &bytes)) bytes = UINT64_MAX;
    struct rescue rescue = rescue_begin(bytes, false);
    int result;
    do result = real(at, pitch, width, height, element);
    while (is_worth_asking_again(result, &rescue));
    return result;
}

int serve_create(cuda_memory *memory, size_t bytes, const struct cuda_properties *is, unsigned long long flags) {
    typedef int function(cuda_memory *, size_t, const struct cuda_properties *, unsigned long long);
    function *real = (function *)serve_call.real;
    struct rescue rescue = rescue_begin(bytes, false);
    /* a request with another location takes host memory */
    bool of_device = is && is->location.type == CUDA_LOCATION_DEVICE;
    int result;
    do result = real(memory, bytes, is, flags);
    while (of_device && is_worth_asking_again(result, &rescue));
    return result;
}

/* --- requests that always go to the driver; if the device lacks memory, only spares (vram_spare.h) are freed --- */

static bool got_spares(int result) { return unlikely(result == CUDA_OUT_OF_MEMORY) && vram_memory_end_spares(0); }

int serve_managed(cuda_address *at, size_t bytes, unsigned flags) {
    int (*real)(cuda_address *, size_t, unsigned) = (int (*)(cuda_address *, size_t, unsigned))serve_call.real;
    int result;
    do result = real(at, bytes, flags);
    while (got_spares(result));
    return result;
}

int serve_array(cuda_handle *array, const void *is) {
    int (*real)(cuda_handle *, const void *) = (int (*)(cuda_handle *, const void *))serve_call.real;
    int result;
    do result = real(array, is);
    while (got_spares(result));
    return result;
}

int serve_mipmapped(cuda_handle *array, const void *is, unsigned levels) {
    int (*real)(cuda_handle *, const void *, unsigned) =
        (int (*)(cuda_handle *, const void *, unsigned))serve_call.real;
    int result;
    do result = real(array, is, levels);
    while (got_spares(result));
    return result;
}

/* --- freeing memory by its address --- */

int serve_free(cuda_address at) {
    int (*real)(cuda_address) = (int (*)(cuda_address))serve_call.real;
    int result;
    return at && vram_memory_free(at, &result) ? result : real(at);
}

int serve_free_async(cuda_address at, cuda_handle stream) {
    int (*real)(cuda_address, cuda_handle) = (int (*)(cuda_address, cuda_handle))serve_call.real;
    cuda_handle meant = cuda_device_stream(stream, serve_call.per_thread);
    struct vram_found block;
    int result;
    if (!at || !vram_memory_find(at, &block) || !block.in_stream || cuda_device_captures(meant, true))
        return real(at, stream);
    return vram_memory_free_in(at, meant, &result) ? result : real(at, stream);
}
