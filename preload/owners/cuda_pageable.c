/* cuda_pageable.c — see cuda_pageable.h. */
#include "preload/owners/cuda_pageable.h"

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/shared/snapshot.h"
#include "preload/vram/vram_contexts.h"
#include "preload/copies/vram_thread.h"
#include "preload/serve/serve_settings.h"

enum { PAGEABLE = 88 /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */, WAIT_MS = 5000 };
enum { NOT_INITIALIZED = 3, NO_DEVICE = 100 }; /* errors that say that the program uses no device */

static void *cuda_pageable_found(const char *name) { return cuda_scope_any(name, NULL); }

/* The contexts in which work that uses the host's memory may run. */
struct contexts {
    cuda_handle list[VRAM_CONTEXTS];
    uint32_t count;
    bool missing; /* the list lacks some contexts, or the driver did not answer a question */
};

static void add_context(struct contexts *self, cuda_handle context) {
    uint32_t i = 0;
    while (i < self->count && self->list[i] != context) i++;
    if (i == VRAM_CONTEXTS) self->missing = true;
    if (i == self->count && i < VRAM_CONTEXTS && context) self->list[self->count++] = context;
}

static int count_devices(struct contexts *self) {
    int (*count)(int *) = (int (*)(int *))cuda_pageable_found("cuDeviceGetCount");
    int devices = 0, error = count ? count(&devices) : NO_DEVICE;
    if (!error) return devices < SNAP_CUDA_DEVICES ? devices : SNAP_CUDA_DEVICES;
    self->missing = error != NOT_INITIALIZED && error != NO_DEVICE;
    return 0;
}

static bool reads_in_place(struct contexts *self, int device) {
    int (*attribute)(int *, int, int) = (int (*)(int *, int, int))cuda_pageable_found("cuDeviceGetAttribute");
    int reads = 0;
    if (attribute && attribute(&reads, PAGEABLE, device)) self->missing = true;
    return reads;
}

/* Finds the existing primary contexts of all devices that read host memory in place. If there is such a device, also
 * finds the contexts that the program made on any device. */
static void find_contexts(struct contexts *self) {
    bool any = false, missing = false;
    *self = (struct contexts){0};
    for (int i = 0, devices = count_devices(self); i < devices; i++) {
        if (!reads_in_place(self, i)) continue;
        if (!any) self->count = vram_contexts_all(self->list, &missing);
        any = true;
        cuda_handle primary;
        if (cuda_device_ask_primary((uint32_t)i, &primary)) missing = true;
        add_context(self, primary);
    }
    self->missing |= missing;
}

struct asked {
    bool idle, answer;
};

static void ask_driver(void *context) {
    struct vram_driver driver;
    struct contexts contexts;
    struct asked *self = context;
    find_contexts(&contexts);
    self->answer = contexts.count || contexts.missing;
    if (!self->answer || !self->idle || contexts.missing || cuda_captures_any()) return;
    if (vram_driver_find(&driver, cuda_pageable_found))
        self->answer = vram_quiet(&driver, contexts.list, contexts.count, WAIT_MS) != 0;
}

/* Without MEMSTOW_CUDA_MOVES there is no device thread, so the calling thread asks the driver. The calling thread may
 * be memstow's worker, which lacks the program's descriptors. If the driver needs them, it answers with an error, and
 * the memory stays. */
bool cuda_pageable_uses(bool idle) {
    struct asked asked = {.idle = idle, .answer = true};
    if (!vram_thread_do(ask_driver, &asked) && !serve_wanted) ask_driver(&asked);
    return asked.answer;
}
