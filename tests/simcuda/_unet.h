/* _unet.h — shared by programs for the simulated driver (a test double): one model that has each kind of device memory,
 * with known content. */
#ifndef SIMCUDA_UNET_H
#define SIMCUDA_UNET_H

#include "_model.h"

static uint32_t model;
static void *plain, *pooled, *small, *outside;

static inline uint64_t stowed_bytes(void) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(!memstow_owner_figures_(model, &figures));
    MUST(figures.device_stowed_bytes <= figures.stowed_bytes);
    return figures.device_stowed_bytes;
}

/* A model with 8 MiB of plain memory, 6 MiB of stream-ordered memory, and 1 MiB, which is too small to be served. */
static inline void load(void) {
    model = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "unet", "unet.safetensors", 1, 0);
    MUST(!cudaMalloc(&outside, 8 * MIB));
    MUST(!memstow_scope_enter_(model));
    MUST(!cudaMalloc(&plain, 8 * MIB));
    MUST(!cudaMallocAsync(&pooled, 6 * MIB, NULL));
    MUST(!cudaMalloc(&small, MIB));
    MUST(!memstow_scope_leave_(model));
    fill(plain, 8 * MIB, 1);
    fill(pooled, 6 * MIB, 2);
    fill(small, MIB, 3);
    fill(outside, 8 * MIB, 4);
}

static inline void look(void) {
    MUST(holds(plain, 8 * MIB, 1));
    MUST(holds(pooled, 6 * MIB, 2));
    MUST(holds(small, MIB, 3));
    MUST(holds(outside, 8 * MIB, 4));
}

#endif
