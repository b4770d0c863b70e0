/* context.c — primary contexts, contexts that the program creates, and each thread's stack of contexts. A context dies
 * with everything that was made in it. */
#include "sim.h"

#include <stdlib.h>

enum { DEPTH = 64 };

struct sim_context *context_list;
__thread struct sim_context *context_current_slot;
static __thread struct sim_context *pushed[DEPTH];
static __thread int depth;
static uint64_t next_id = 1;

/* Contexts are never freed, so that a stale handle can be recognised. */
bool context_valid(const struct sim_context *self) {
    for (struct sim_context *at = context_list; at; at = at->next)
        if (at == self) return true;
    return false;
}

struct sim_context *context_current(void) {
    return context_current_slot && context_current_slot->alive ? context_current_slot : NULL;
}

void context_break(struct sim_context *self, CUresult error) {
    if (!self->sticky) self->sticky = error;
}

static struct sim_context *add(struct device *device, bool primary) {
    struct sim_context *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (struct sim_context){.next = context_list, .device = device, .primary = primary, .id = next_id++};
    return context_list = self;
}

static CUresult wake(struct sim_context *self) {
    if (!device_take(self->device, sim_config.context, true)) return CUDA_ERROR_OUT_OF_MEMORY;
    self->reserved = sim_config.context;
    self->device->contexts += self->reserved;
    self->alive = true;
    self->sticky = CUDA_SUCCESS;
    self->peers = 0;
    return CUDA_SUCCESS;
}

CUresult context_warm(struct sim_context *self) {
    if (self->warm || !sim_config.first) return CUDA_SUCCESS;
    if (!device_take(self->device, sim_config.first, true)) return CUDA_ERROR_OUT_OF_MEMORY;
    self->reserved += sim_config.first;
    self->device->contexts += sim_config.first;
    self->warm = true;
    return CUDA_SUCCESS;
}

/* Ends a context. First its operations are executed, unless an error has broken the context. Then everything that
 * belongs to the context goes. Pools and physical memory stay, because they do not belong to a context: cuda.h says so
 * about cuCtxDestroy, and cuda_runtime_api.h about cudaDeviceReset. */
static void die(struct sim_context *self) {
    call_context_ends(self);
    if (!self->sticky) engine_drain_context(self);
    capture_forget(self);
    stream_forget(self);
    array_forget(self);
    memory_forget(self);
    host_forget(self);
    self->device->contexts -= self->reserved;
    device_give(self->device, self->reserved);
    self->alive = self->warm = false;
    self->id = next_id++; /* a primary context that is used again is a new one */
}

/* ---- primary contexts */

API(cuDevicePrimaryCtxRetain, NEEDS_INIT, (CUcontext * out, CUdevice id), (out, id)) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary) device->primary = add(device, true);
    CUresult result = device->primary->alive ? CUDA_SUCCESS : wake(device->primary);
    if (result) return result;
    device->primary->refs++;
    *out = device->primary;
    return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice id) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary || !device->primary->refs) return CUDA_ERROR_INVALID_CONTEXT;
    if (!--device->primary->refs && device->primary->alive) die(device->primary);
    return CUDA_SUCCESS;
}
SAME(cuDevicePrimaryCtxRelease, NEEDS_INIT, (CUdevice id), primary_release(id))
SAME(cuDevicePrimaryCtxRelease_v2, NEEDS_INIT, (CUdevice id), primary_release(id))

/* Resets the primary context. Its holders keep their references: their next use finds it new and empty, with the same
 * handle. */
static CUresult primary_reset(CUdevice id) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary || !device->primary->alive) return CUDA_SUCCESS;
    die(device->primary);
    return device->primary->refs ? wake(device->primary) : CUDA_SUCCESS;
}
SAME(cuDevicePrimaryCtxReset, NEEDS_INIT, (CUdevice id), primary_reset(id))
SAME(cuDevicePrimaryCtxReset_v2, NEEDS_INIT, (CUdevice id), primary_reset(id))

static CUresult primary_flags(CUdevice id, unsigned flags) {
    if (!device_get(id)) return CUDA_ERROR_INVALID_DEVICE;
    device_get(id)->primary_flags = flags;
    return CUDA_SUCCESS;
}
SAME(cuDevicePrimaryCtxSetFlags, NEEDS_INIT, (CUdevice id, unsigned flags), primary_flags(id, flags))
SAME(cuDevicePrimaryCtxSetFlags_v2, NEEDS_INIT, (CUdevice id, unsigned flags), primary_flags(id, flags))

API(cuDevicePrimaryCtxGetState, NEEDS_INIT, (CUdevice id, unsigned *flags, int *active), (id, flags, active)) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    *flags = device->primary_flags;
    *active = device->primary && device->primary->alive;
    return CUDA_SUCCESS;
}

/* ---- created contexts */

static CUresult push(struct sim_context *context) {
    if (depth == DEPTH) return CUDA_ERROR_INVALID_VALUE;
    pushed[depth++] = context_current_slot;
    context_current_slot = context;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice id) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    struct sim_context *self = add(device, false);
    CUresult result = self ? wake(self) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result) return result;
    self->flags = flags;
    *out = self;
    return push(self);
}
SAME(cuCtxCreate_v2, NEEDS_INIT, (CUcontext * out, unsigned flags, CUdevice id), create(out, flags, id))
SAME(cuCtxCreate_v3, NEEDS_INIT, (CUcontext * out, void *affinity, int n, unsigned flags, CUdevice id),
     ((void)affinity, (void)n, create(out, flags, id)))
SAME(cuCtxCreate_v4, NEEDS_INIT, (CUcontext * out, void *parameters, unsigned flags, CUdevice id),
     ((void)parameters, create(out, flags, id)))

static CUresult pop(CUcontext *out) {
    if (!context_current_slot && !depth) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = context_current_slot;
    context_current_slot = depth ? pushed[--depth] : NULL;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext self) {
    if (!context_valid(self) || self->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (!self->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    die(self);
    if (context_current_slot == self) pop(NULL);
    return CUDA_SUCCESS;
}

SAME(cuCtxDestroy, NEEDS_INIT, (CUcontext self), destroy(self))
SAME(cuCtxDestroy_v2, NEEDS_INIT, (CUcontext self), destroy(self))

API(cuCtxPushCurrent_v2, NEEDS_INIT, (CUcontext self), (self)) {
    return context_valid(self) ? push(self) : CUDA_ERROR_INVALID_CONTEXT;
}
SAME(cuCtxPopCurrent_v2, NEEDS_INIT, (CUcontext * out), pop(out))

API(cuCtxSetCurrent, NEEDS_INIT, (CUcontext self), (self)) {
    if (self && !context_valid(self)) return CUDA_ERROR_INVALID_CONTEXT;
    context_current_slot = self;
    return CUDA_SUCCESS;
}

API(cuCtxGetCurrent, NEEDS_INIT, (CUcontext * out), (out)) {
    *out = context_current_slot;
    return CUDA_SUCCESS;
}

static CUresult device_of(CUdevice *out, CUcontext self) {
    if (!self) self = context_current_slot;
    if (!self || !context_valid(self)) return CUDA_ERROR_INVALID_CONTEXT;
    *out = self->device->id;
    return CUDA_SUCCESS;
}
SAME(cuCtxGetDevice, NEEDS_INIT, (CUdevice * out), device_of(out, NULL))
SAME(cuCtxGetDevice_v2, NEEDS_INIT, (CUdevice * out, CUcontext self), device_of(out, self))

API(cuCtxGetId, NEEDS_INIT, (CUcontext self, unsigned long long *out), (self, out)) {
    if (!self) self = context_current_slot;
    if (!self || !context_valid(self)) return CUDA_ERROR_INVALID_CONTEXT;
    *out = self->id;
    return CUDA_SUCCESS;
}

API(cuCtxGetFlags, NEEDS_CONTEXT, (unsigned *out), (out)) {
    *out = context_current()->flags;
    return CUDA_SUCCESS;
}

API(cuCtxGetApiVersion, NEEDS_INIT, (CUcontext self, unsigned *out), (self, out)) {
    if (self && !context_valid(self)) return CUDA_ERROR_INVALID_CONTEXT;
    *out = 3020;
    return CUDA_SUCCESS;
}

static CUresult synchronise(struct sim_context *self) {
    if (!context_valid(self) || !self->alive) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = capture_forbids_sync(self);
    return result ? result : engine_drain_context(self);
}
SAME(cuCtxSynchronize, NEEDS_CONTEXT, (void), synchronise(context_current()))
SAME(cuCtxSynchronize_v2, NEEDS_INIT, (CUcontext self), synchronise(self ? self : context_current_slot))

API(cuCtxSetLimit, NEEDS_CONTEXT, (int limit, size_t value), (limit, value)) {
    return limit < 0 || !value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API(cuCtxGetLimit, NEEDS_CONTEXT, (size_t * out, int limit), (out, limit)) {
    if (limit < 0) return CUDA_ERROR_INVALID_VALUE;
    *out = 1024;
    return CUDA_SUCCESS;
}

API(cuCtxGetStreamPriorityRange, NEEDS_CONTEXT, (int *least, int *greatest), (least, greatest)) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

/* ---- peers */

static CUresult peer(CUcontext other, unsigned flags, uint64_t *bit) {
    struct sim_context *self = context_current();
    if (!context_valid(other) || flags) return CUDA_ERROR_INVALID_VALUE;
    if (!device_peers(self->device->id, other->device->id)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    *bit = (uint64_t)1 << other->device->id;
    return CUDA_SUCCESS;
}

API(cuCtxEnablePeerAccess, NEEDS_CONTEXT, (CUcontext other, unsigned flags), (other, flags)) {
    uint64_t bit;
    CUresult result = peer(other, flags, &bit);
    if (result) return result;
    if (context_current()->peers & bit) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context_current()->peers |= bit;
    return CUDA_SUCCESS;
}

API(cuCtxDisablePeerAccess, NEEDS_CONTEXT, (CUcontext other), (other)) {
    uint64_t bit;
    CUresult result = peer(other, 0, &bit);
    if (result) return result;
    if (!(context_current()->peers & bit)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context_current()->peers &= ~bit;
    return CUDA_SUCCESS;
}
