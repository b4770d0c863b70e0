/* serve_driver.h — whether memory can be served with the CUDA driver that is loaded now.
 * In: the code that is loaded. Out: yes, or the reason why not; functions of the driver. The driver is examined again
 * after code was loaded or unloaded. Any thread may call. */
#ifndef MEMSTOW_SERVE_DRIVER_H
#define MEMSTOW_SERVE_DRIVER_H

#include "preload/vram/vram_refusal.h"

#pragma GCC visibility push(hidden)

extern struct serve_driver {
    int (*device_count)(int *), (*device_pool)(cuda_handle *, int), (*default_pool)(cuda_handle *, int);
    int (*context_of_stream)(cuda_handle, cuda_handle *), (*end_peer)(cuda_handle);
    int (*attributes_of)(unsigned, int *, void **, cuda_address);
    int devices;
} serve_driver;

/* Whether memory can be served. False also while another thread is finding this out. */
bool serve_driver_is_fit(void);
/* The reason why memory cannot be served. VRAM_REFUSAL_DONE: it can. */
enum vram_refusal serve_driver_refusal(void);
/* A function of the driver, by its name; NULL: the driver lacks the function. */
void *serve_driver_function(const char *name);
/* Finds, among `count` devices, the device that has `pool` as its default pool. `ask` is cuDeviceGetDefaultMemPool.
 * Returns false if no device has this default pool. */
bool serve_driver_pool_device(int (*ask)(cuda_handle *, int), int count, cuda_handle pool, uint32_t *device);

#pragma GCC visibility pop

#endif
