/* _device.h — functions of the CUDA driver, for leaking programs that use a device. The driver is simulated, a test
 * double. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>
#include <stdlib.h>

typedef uint64_t device_address;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(device_address *, size_t);
int cuMemFree_v2(device_address);

static void begin_device(void) {
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) exit(1);
}

#endif
