/* host.c — pinned host memory, which the driver has allocated or the program has registered. A device sees such memory
 * at the host's address. */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pinned *list;

struct pinned *host_find(const void *at) {
    for (struct pinned *self = list; self; self = self->next)
        if ((const char *)at >= self->at && (const char *)at < self->at + self->size) return self;
    return NULL;
}

bool host_leaves(uint64_t at, uint64_t bytes) {
    struct pinned *self = host_find((void *)(uintptr_t)at);
    return self && at + bytes > (uint64_t)(uintptr_t)(self->at + self->size);
}

/* The time that pinning or unpinning takes. Other calls go on meanwhile. */
static void take_time(size_t bytes) {
    uint64_t us = sim_config.pin_us_mib * (bytes / MB);
    if (!us) return;
    pthread_mutex_unlock(&sim_lock);
    usleep((useconds_t)us);
    pthread_mutex_lock(&sim_lock);
}

static CUresult add(void *at, size_t size, unsigned flags, bool registered) {
    struct pinned *self = malloc(sizeof *self);
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    *self = (struct pinned){list, at, size, registered, flags, context_current()};
    list = self;
    return CUDA_SUCCESS;
}

static void drop(struct pinned *self) {
    struct pinned **link = &list;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    if (!self->registered) munmap(self->at, round_up(self->size, 4096));
    free(self);
}

void host_forget(struct sim_context *ctx) {
    for (struct pinned *self = list, *next; self; self = next) {
        next = self->next;
        if (self->ctx == ctx) drop(self);
    }
}

void host_bytes(uint64_t *pinned, uint64_t *registered) {
    *pinned = *registered = 0;
    for (struct pinned *self = list; self; self = self->next) *(self->registered ? registered : pinned) += self->size;
}

static CUresult allocate(void **out, size_t size, unsigned flags) {
    call_details(size, 0);
    if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
    if (context_warm(context_current())) return CUDA_ERROR_OUT_OF_MEMORY;
    take_time(size);
    void *at = mmap(NULL, round_up(size, 4096), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = at;
    call_details(size, (uint64_t)(uintptr_t)at);
    return add(at, size, flags, false);
}
SAME(cuMemAllocHost, NEEDS_CONTEXT | UNSAFE, (void **out, unsigned size), allocate(out, size, 0))
SAME(cuMemAllocHost_v2, NEEDS_CONTEXT | UNSAFE, (void **out, size_t size), allocate(out, size, 0))
SAME(cuMemHostAlloc, NEEDS_CONTEXT | UNSAFE, (void **out, size_t size, unsigned flags), allocate(out, size, flags))

/* ---- pools of the host's */

CUresult host_take(CUdeviceptr *out, size_t size) {
    void *at;
    CUresult result = allocate(&at, size, 0);
    if (result) return result;
    host_find(at)->ctx = NULL; /* a pool's memory is no context's */
    *out = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

bool host_give(CUdeviceptr at) {
    struct pinned *self = host_find((void *)(uintptr_t)at);
    if (!self || self->at != (char *)(uintptr_t)at || self->registered) return false;
    call_details(self->size, at);
    drop(self);
    return true;
}

/* Returns the pinned memory that begins at `at`. Returns NULL if there is none, or if another thread has unpinned the
 * memory meanwhile. */
static struct pinned *to_unpin(void *at, bool registered) {
    struct pinned *self = host_find(at);
    if (self) take_time(self->size);
    self = host_find(at);
    return self && self->at == at && self->registered == registered ? self : NULL;
}

API(cuMemFreeHost, NEEDS_CONTEXT | UNSAFE, (void *at), (at)) {
    struct pinned *self = to_unpin(at, false);
    if (!self) return CUDA_ERROR_INVALID_VALUE;
    call_details(self->size, (uint64_t)(uintptr_t)at);
    engine_drain_context(context_current());
    drop(self);
    return CUDA_SUCCESS;
}

static CUresult enrol(void *at, size_t size, unsigned flags) {
    call_details(size, (uint64_t)(uintptr_t)at);
    if (!at || !size) return CUDA_ERROR_INVALID_VALUE;
    take_time(size);
    for (struct pinned *self = list; self; self = self->next)
        if ((char *)at < self->at + self->size && self->at < (char *)at + size)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return add(at, size, flags, true);
}
SAME(cuMemHostRegister, NEEDS_CONTEXT | UNSAFE, (void *at, size_t size, unsigned flags), enrol(at, size, flags))
SAME(cuMemHostRegister_v2, NEEDS_CONTEXT | UNSAFE, (void *at, size_t size, unsigned flags), enrol(at, size, flags))

API(cuMemHostUnregister, NEEDS_CONTEXT | UNSAFE, (void *at), (at)) {
    struct pinned *self = to_unpin(at, true);
    if (!self) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    call_details(self->size, (uint64_t)(uintptr_t)at);
    engine_drain_context(context_current());
    drop(self);
    return CUDA_SUCCESS;
}

API(cuMemHostGetDevicePointer_v2, NEEDS_CONTEXT, (CUdeviceptr * out, void *at, unsigned flags), (out, at, flags)) {
    if (!out || flags || !host_find(at)) return CUDA_ERROR_INVALID_VALUE;
    *out = (uint64_t)(uintptr_t)at;
    return CUDA_SUCCESS;
}

API(cuMemHostGetFlags, NEEDS_CONTEXT, (unsigned *out, void *at), (out, at)) {
    struct pinned *self = host_find(at);
    if (!self) return CUDA_ERROR_INVALID_VALUE;
    *out = self->flags;
    return CUDA_SUCCESS;
}
