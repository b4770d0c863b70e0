/* cuda_pageable.c — see cuda_pageable.h. */
#include "cuda_pageable.h"

#include "cuda_captures.h"
#include "cuda_scope.h"
#include "vram_quiet.h"

enum { PAGEABLE = 88 /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */, WAIT_MS = 5000 };

static void *found(const char *name) { return cuda_scope_any(name, NULL); }

/* The context that the device's runtime works in; NULL: it has none at the moment. */
static cuda_handle context_of(int device) {
    int (*state)(int, unsigned *, int *) = (int (*)(int, unsigned *, int *))found("cuDevicePrimaryCtxGetState");
    int (*retain)(cuda_handle *, int) = (int (*)(cuda_handle *, int))found("cuDevicePrimaryCtxRetain");
    int (*release)(int) = (int (*)(int))found("cuDevicePrimaryCtxRelease_v2");
    cuda_handle context = NULL;
    unsigned flags;
    int active = 0;
    if (!state || !retain || !release || state(device, &flags, &active) || !active || retain(&context, device))
        return NULL;
    release(device);
    return context;
}

static uint32_t contexts_in_use(cuda_handle to[VRAM_CONTEXTS]) {
    int (*count)(int *) = (int (*)(int *))found("cuDeviceGetCount");
    int (*attribute)(int *, int, int) = (int (*)(int *, int, int))found("cuDeviceGetAttribute");
    int devices = 0, reads = 0;
    uint32_t used = 0;
    if (!count || !attribute || count(&devices)) return 0;
    for (int i = 0; i < devices && used < VRAM_CONTEXTS; i++)
        if (!attribute(&reads, PAGEABLE, i) && reads && (to[used] = context_of(i))) used++;
    return used;
}

bool cuda_pageable_any(void) {
    cuda_handle contexts[VRAM_CONTEXTS];
    return contexts_in_use(contexts) != 0;
}

bool cuda_pageable_quiet(void) {
    static struct vram_driver driver;
    cuda_handle contexts[VRAM_CONTEXTS];
    uint32_t count = contexts_in_use(contexts);
    return !cuda_captures_any() && vram_driver_find(&driver, found) &&
           vram_quiet(&driver, contexts, count, WAIT_MS) == 0;
}
