/* served.c — pairs of cuMemAllocAsync and cuMemFreeAsync, or queries of an address, beside a number of blocks that
 * memstow serves, or moves of these blocks, for tests/cost/served.py. It is both the driver, a test double whose
 * functions only answer, and the program: served pair|attribute|move BLOCKS ROUNDS. In a move each block stays, because
 * its handle was handed out: nothing is copied, and only the search for blocks is measured. The driver's own
 * cuMemAllocAsync fails, so each block is memstow's. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef DRIVER

static uint64_t next = (uint64_t)1 << 40;

#define ANSWER(name, parameters, statement)                                                                            \
    int name parameters;                                                                                               \
    int name parameters {                                                                                              \
        statement;                                                                                                     \
        return 0;                                                                                                      \
    }
#define SILENT(name) ANSWER(name, (void), )
ANSWER(cuCtxGetCurrent, (void **context), *context = &next)
ANSWER(cuCtxGetDevice, (int *device), *device = 0)
ANSWER(cuDeviceGetCount, (int *count), *count = 1)
ANSWER(cuDeviceGetMemPool, (void **pool, int device), *pool = &next + device)
ANSWER(cuDeviceGetDefaultMemPool, (void **pool, int device), *pool = &next + device)
ANSWER(cuDeviceGetAttribute, (int *value), *value = 0)
ANSWER(cuDeviceCanAccessPeer, (int *can), *can = 0)
ANSWER(cuMemAddressReserve, (uint64_t * at, size_t bytes), {
    *at = next;
    next += bytes;
})
ANSWER(cuMemCreate, (uint64_t * memory), *memory = 1)
ANSWER(cuMemRetainAllocationHandle, (uint64_t * memory), *memory = 1)
ANSWER(cuEventCreate, (void **event), *event = &next)
ANSWER(cuPointerGetAttribute, (unsigned *value), *value = 2)
SILENT(cuCtxSetCurrent)
SILENT(cuStreamGetCtx)
SILENT(cuMemPoolTrimTo)
SILENT(cuCtxSynchronize)
SILENT(cuThreadExchangeStreamCaptureMode)
SILENT(cuMemAddressFree)
SILENT(cuMemRelease)
SILENT(cuMemMap)
SILENT(cuMemUnmap)
SILENT(cuMemSetAccess)
SILENT(cuMemHostAlloc)
SILENT(cuMemFreeHost)
SILENT(cuMemHostRegister_v2)
SILENT(cuMemHostUnregister)
SILENT(cuMemcpyDtoHAsync_v2)
SILENT(cuMemcpyHtoDAsync_v2)
SILENT(cuStreamCreate)
SILENT(cuStreamDestroy_v2)
SILENT(cuStreamSynchronize)
SILENT(cuEventDestroy_v2)
SILENT(cuEventRecord)
SILENT(cuEventQuery)
SILENT(cuEventSynchronize)

int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream);
int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream) {
    (void)at, (void)bytes, (void)stream;
    return 2;
}
int cuMemFreeAsync(uint64_t at, void *stream);
int cuMemFreeAsync(uint64_t at, void *stream) {
    (void)at, (void)stream;
    return 1;
}

#else

#include "../prog/abi.h"

int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream);
int cuMemFreeAsync(uint64_t at, void *stream);
int cuPointerGetAttribute(void *value, int which, uint64_t at);
int cuMemRetainAllocationHandle(uint64_t *memory, uint64_t at);
enum { BYTES = 3 << 20, MEMORY_TYPE = 2, OF_DEVICE = 2 };

static bool pair(void) {
    uint64_t at;
    return !cuMemAllocAsync(&at, BYTES, NULL) && !cuMemFreeAsync(at, NULL);
}

static bool attribute(uint64_t at) {
    unsigned type = 0;
    return !cuPointerGetAttribute(&type, MEMORY_TYPE, at) && type == OF_DEVICE;
}

static bool move(uint32_t model) { return CALL(-1, memstow_stow, model) < 0; }

int main(int argc, char **argv) {
    bool is_pair = argc > 3 && !strcmp(argv[1], "pair"), is_move = argc > 3 && !strcmp(argv[1], "move");
    bool done = argc > 3;
    uint64_t first = 0, at, memory;
    abi_find();
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 0, 0);
    CALL(0, memstow_scope_enter, model);
    CALL(0, memstow_owner_idle, model, 1);
    for (long i = done ? strtol(argv[2], NULL, 10) : 0; i > 0 && done; i--) {
        done = !cuMemAllocAsync(&at, BYTES, NULL) && (!is_move || !cuMemRetainAllocationHandle(&memory, at));
        if (!first) first = at;
    }
    for (long i = done ? strtol(argv[3], NULL, 10) : 0; i > 0 && done; i--)
        done = is_move ? move(model) : is_pair ? pair() : attribute(first + 4096);
    return !done;
}

#endif
