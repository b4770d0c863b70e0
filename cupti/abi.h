/* abi.h — the parts of CUPTI's binary interface that are used here: functions, numbers and records of memory.
 * The build needs no header of CUPTI, and does not link it. Each declaration is the same in all versions from CUDA 11.2
 * on that have it; newer versions only add fields at the end of records. (tests/real/cupti_layout compares the
 * declarations with NVIDIA's headers.) */
#ifndef MEMSTOW_CUPTI_ABI_H
#define MEMSTOW_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

enum {
    CUPTI_OK = 0,
    CUPTI_ANOTHER_SUBSCRIBER = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    CUPTI_NO_REASON = 999          /* CUPTI_ERROR_UNKNOWN; also the answer if there is no driver */
};
enum { CUPTI_CUDA_11_2 = 15, CUPTI_CUDA_12 = 19, CUPTI_CUDA_13 = 130000 }; /* what cuptiGetVersion returns */
enum { CUPTI_KIND_MEMORY2 = 49, CUPTI_KIND_MEMORY_POOL = 50 };
enum { CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_ALLOCATION = 1, CUPTI_RELEASE = 2 };
enum { CUPTI_MEMORY_PINNED = 2, CUPTI_MEMORY_DEVICE = 3, CUPTI_MEMORY_ARRAY = 4, CUPTI_MEMORY_MANAGED = 5 };
enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RESOURCE = 3, CUPTI_CONTEXT_DESTROY_STARTING = 2 };

typedef void *cupti_context, *cupti_subscriber;

/* CUpti_ActivityMemory4. There are two older structures: CUpti_ActivityMemory2 ends before pool.used, and
 * CUpti_ActivityMemory3 ends before source. */
struct cupti_memory {
    uint32_t kind, operation, memory_kind, correlation;
    uint64_t address, bytes, timestamp, pc;
    uint32_t process, device, context, stream;
    const char *name;
    uint32_t is_async, pad;
    struct {
        uint32_t type, pad;
        uint64_t address, threshold, size, used;
    } pool;
    const char *source; /* only if the source of allocations is available and was requested */
};
_Static_assert(offsetof(struct cupti_memory, source) == 120 && sizeof(struct cupti_memory) == 128, "as in CUPTI");

enum { CUPTI_POOL_LOCAL = 1, CUPTI_POOL_CREATED = 1, CUPTI_POOL_DESTROYED = 2, CUPTI_POOL_TRIMMED = 3 };
/* CUpti_ActivityMemoryPool2. The first version ends before `used`; the third has more fields. */
struct cupti_pool {
    uint32_t kind, operation, type, correlation, process, device;
    uint64_t keep, address, size, threshold, timestamp, used;
};

struct cupti_resource { /* CUpti_ResourceData */
    cupti_context context;
    void *handle, *descriptor;
};

enum { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };
struct cupti_call { /* CUpti_CallbackData */
    int32_t site, pad;
    const char *function;
    const void *parameters; /* the function's arguments, one after the other */
    const void *result;     /* at an exit: the driver's result */
    const char *symbol;
    cupti_context context;
    uint32_t context_number;
    uint64_t *shared; /* a word that entry and exit of a call share */
    uint32_t correlation;
};

/* Calls about physical memory and its addresses: X(name, number, parameters). */
#define CUPTI_CALLS(X)                                                                                                 \
    X(cuMemAddressReserve, 547, {                                                                                      \
        uint64_t *address;                                                                                             \
        uint64_t bytes, alignment, hint, flags;                                                                        \
    })                                                                                                                 \
    X(cuMemAddressFree, 548, { uint64_t address, bytes; })                                                             \
    X(cuMemCreate, 549, {                                                                                              \
        uint64_t *memory;                                                                                              \
        uint64_t bytes;                                                                                                \
        const struct cuda_properties *of;                                                                              \
        uint64_t flags;                                                                                                \
    })                                                                                                                 \
    X(cuMemRelease, 550, { uint64_t memory; })                                                                         \
    X(cuMemMap, 551, { uint64_t address, bytes, offset, memory, flags; })                                              \
    X(cuMemUnmap, 552, { uint64_t address, bytes; })                                                                   \
    X(cuMemImportFromShareableHandle, 555, {                                                                           \
        uint64_t *memory;                                                                                              \
        void *from;                                                                                                    \
        int32_t type;                                                                                                  \
    })                                                                                                                 \
    X(cuMemRetainAllocationHandle, 565, {                                                                              \
        uint64_t *memory;                                                                                              \
        uint64_t address;                                                                                              \
    })
#define X(name, number, ...) CUPTI_##name = number,
enum { CUPTI_CALLS(X) };
#undef X
#define X(name, number, ...) struct cupti_##name __VA_ARGS__;
CUPTI_CALLS(X)
#undef X

typedef void cupti_callback(void *data, int domain, uint32_t id, const void *what);
typedef void cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *records);
typedef void cupti_buffer_completed(cupti_context context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

struct cupti_subscriber_wish { /* CUpti_SubscriberParams */
    size_t size;
    const char *name;
    char *other; /* gets the name of the present subscriber */
    size_t other_capacity;
    uint8_t several; /* 1: other subscribers are allowed */
    uint8_t pad[7];
};
typedef void cupti_buffer_requested_v2(uint8_t **buffer, size_t *size, size_t *records, void *more);
typedef void cupti_buffer_completed_v2(uint8_t *buffer, size_t size, size_t valid, void *more);

/* Functions for a subscriber that is one of several; some versions of CUDA 13 have them. */
#define CUPTI_FUNCTIONS_V2                                                                                             \
    F(cuptiSubscribe_v2, (cupti_subscriber *, cupti_callback *, void *, struct cupti_subscriber_wish *))               \
    F(cuptiActivityRegisterCallbacks_v2, (cupti_subscriber, cupti_buffer_requested_v2 *, cupti_buffer_completed_v2 *)) \
    F(cuptiActivityEnable_v2, (cupti_subscriber, int, void *))                                                         \
    F(cuptiActivityDisable_v2, (cupti_subscriber, int, void *))                                                        \
    F(cuptiActivityGetNextRecord_v2, (cupti_subscriber, uint8_t *, size_t, void **))                                   \
    F(cuptiActivityGetNumDroppedRecords_v2, (cupti_subscriber, cupti_context, uint32_t, size_t *))                     \
    F(cuptiActivitySetAttribute_v2, (cupti_subscriber, int, size_t *, void *))

/* F(name, parameters) of functions that exist from CUDA 11.2 on. */
#define CUPTI_FUNCTIONS                                                                                                \
    F(cuptiGetVersion, (uint32_t *))                                                                                   \
    F(cuptiSubscribe, (cupti_subscriber *, cupti_callback *, void *))                                                  \
    F(cuptiUnsubscribe, (cupti_subscriber))                                                                            \
    F(cuptiEnableCallback, (uint32_t, cupti_subscriber, int, uint32_t))                                                \
    F(cuptiGetContextId, (cupti_context, uint32_t *))                                                                  \
    F(cuptiActivityRegisterCallbacks, (cupti_buffer_requested *, cupti_buffer_completed *))                            \
    F(cuptiActivityEnable, (int))                                                                                      \
    F(cuptiActivityDisable, (int))                                                                                     \
    F(cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                                                        \
    F(cuptiActivityGetNumDroppedRecords, (cupti_context, uint32_t, size_t *))                                          \
    F(cuptiActivityFlushAll, (uint32_t))

#endif
