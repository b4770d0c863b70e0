/* cuda_pageable.c — see cuda_pageable.h. */
#include "preload/owners/cuda_pageable.h"

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/shared/snapshot.h"
#include "preload/vram/vram_contexts.h"
#include "preload/copies/vram_thread.h"

enum { PAGEABLE = 88 /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */, WAIT_MS = 5000 };

static void *cuda_pageable_found(const char *name) { return cuda_scope_any(name, NULL); }

/* The contexts in which work that uses the host's memory may run. */
struct contexts {
    cuda_handle list[VRAM_CONTEXTS];
    uint32_t count;
    bool missing; /* the list lacks some contexts */
};

static void add_context(struct contexts *self, cuda_handle context) {
    uint32_t i = 0;
    while (i < self->count && self->list[i] != context) i++;
    if (i == VRAM_CONTEXTS) self->missing = true;
    if (i == self->count && i < VRAM_CONTEXTS && context) self->list[self->count++] = context;
}

/* Finds the primary contexts, where they exist, of devices that read host memory in place. If there is such a device,
 * also the contexts that the program made on any device. */
static void find_contexts(struct contexts *self) {
    int (*count)(int *) = (int (*)(int *))cuda_pageable_found("cuDeviceGetCount");
    int (*attribute)(int *, int, int) = (int (*)(int *, int, int))cuda_pageable_found("cuDeviceGetAttribute");
    int devices = 0, reads = 0;
    bool any = false;
    *self = (struct contexts){0};
    if (!count || !attribute || count(&devices)) return;
    for (int i = 0; i < devices && i < SNAP_CUDA_DEVICES; i++) {
        if (attribute(&reads, PAGEABLE, i) || !reads) continue;
        if (!any) self->count = vram_contexts_all(self->list, &self->missing);
        any = true;
        add_context(self, cuda_device_ask_primary((uint32_t)i));
    }
}

bool cuda_pageable_any(void) {
    struct contexts contexts;
    find_contexts(&contexts);
    return contexts.count != 0;
}

static void wait_for_quiet(void *is_quiet) {
    struct vram_driver driver;
    struct contexts contexts;
    find_contexts(&contexts);
    *(bool *)is_quiet = !contexts.missing && !cuda_captures_any() && vram_driver_find(&driver, cuda_pageable_found) &&
                        vram_quiet(&driver, contexts.list, contexts.count, WAIT_MS) == 0;
}

/* Without MEMSTOW_CUDA_MOVES there is no device thread. Then memstow's worker asks the driver itself, although it has
 * descriptors of its own: if the driver needs its descriptors, its error says that nothing is known to be quiet. */
bool cuda_pageable_quiet(void) {
    bool is_quiet = false;
    if (!vram_thread_do(wait_for_quiet, &is_quiet)) wait_for_quiet(&is_quiet);
    return is_quiet;
}
