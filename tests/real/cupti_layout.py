#!/usr/bin/env python3
# cupti/abi.h describes CUPTI in our own words. It agrees with NVIDIA's headers of CUDA 12 and 13.
# needs: cc pip:nvidia-cuda-cupti>=13,<14 pip:nvidia-cuda-cupti-cu12 pip:nvidia-cuda-runtime>=13,<14
# needs: pip:nvidia-cuda-runtime-cu12
import importlib.util, pathlib

import support

PROGRAM = """
#include <stddef.h>
#include <cuda.h>
#include <cupti.h>
#include "abi.h"
#define SAME(type, theirs, ours) \\
    _Static_assert(offsetof(type, theirs) == offsetof(struct cupti_memory, ours), #ours); \\
    _Static_assert(sizeof((type *)0)->theirs == sizeof((struct cupti_memory *)0)->ours, #ours);
#define MEMORY(type) \\
    SAME(type, kind, kind) SAME(type, memoryOperationType, operation) SAME(type, memoryKind, memory_kind) \\
    SAME(type, address, address) SAME(type, bytes, bytes) SAME(type, timestamp, timestamp) SAME(type, PC, pc) \\
    SAME(type, processId, process) SAME(type, deviceId, device) SAME(type, contextId, context) \\
    SAME(type, streamId, stream) SAME(type, name, name) SAME(type, isAsync, is_async)
#define POOLS(record) \\
    SAME2(record, kind, kind) SAME2(record, memoryPoolOperationType, operation) SAME2(record, memoryPoolType, type) \\
    SAME2(record, deviceId, device) SAME2(record, minBytesToKeep, keep) SAME2(record, address, address) \\
    SAME2(record, size, size) \\
    SAME2(record, releaseThreshold, threshold) SAME2(record, timestamp, timestamp)
#define SAME2(type, theirs, ours) \\
    _Static_assert(offsetof(type, theirs) == offsetof(struct cupti_pool, ours), #ours); \\
    _Static_assert(sizeof((type *)0)->theirs == sizeof((struct cupti_pool *)0)->ours, #ours);
POOLS(CUpti_ActivityMemoryPool) POOLS(CUpti_ActivityMemoryPool2) SAME2(CUpti_ActivityMemoryPool2, utilizedSize, used)
_Static_assert(sizeof(CUpti_ActivityMemoryPool) == offsetof(struct cupti_pool, used), "the first");
_Static_assert(sizeof(CUpti_ActivityMemoryPool2) == sizeof(struct cupti_pool), "the second");
#define LENGTH(type, length) _Static_assert(sizeof(type) == (length), #type);
MEMORY(CUpti_ActivityMemory2)
LENGTH(CUpti_ActivityMemory2, offsetof(struct cupti_memory, pool.used))
MEMORY(CUpti_ActivityMemory3)
LENGTH(CUpti_ActivityMemory3, offsetof(struct cupti_memory, source))
#define POOL(theirs, ours) SAME(CUpti_ActivityMemory3, memoryPoolConfig.theirs, pool.ours)
POOL(memoryPoolType, type) POOL(address, address) POOL(releaseThreshold, threshold) POOL(pool.size, size)
POOL(utilizedSize, used)
#define CALL(theirs, ours) \\
    _Static_assert(offsetof(CUpti_CallbackData, theirs) == offsetof(struct cupti_call, ours), #ours);
CALL(callbackSite, site) CALL(functionName, function) CALL(functionParams, parameters) CALL(functionReturnValue, result)
CALL(context, context) CALL(contextUid, context_number) CALL(correlationData, shared) CALL(correlationId, correlation)
#define X(name, number, ...) \\
    _Static_assert(CUPTI_DRIVER_TRACE_CBID_##name == number, #name); \\
    _Static_assert(sizeof(name##_params) == sizeof(struct cupti_##name), #name);
CUPTI_CALLS(X)
#undef X
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
#define WISH(theirs, ours) \\
    _Static_assert(offsetof(CUpti_SubscriberParams, theirs) == offsetof(struct cupti_subscriber_wish, ours), #ours);
WISH(subscriberName, name) WISH(oldSubscriberName, other) WISH(oldSubscriberSize, other_capacity)
#ifdef SEVERAL
WISH(allowMultipleSubscribers, several)
_Static_assert(CUPTI_ACTIVITY_ATTR_ENABLE_ALLOCATION_SOURCE_TRACKING == 14, "session.c");
LENGTH(CUpti_SubscriberParams, sizeof(struct cupti_subscriber_wish))
#else
LENGTH(CUpti_SubscriberParams, offsetof(struct cupti_subscriber_wish, several))
#endif
_Static_assert(CUpti_SubscriberParams_STRUCT_SIZE == sizeof(CUpti_SubscriberParams), "size");
#endif
MEMORY(CUpti_ActivityMemory4)
SAME(CUpti_ActivityMemory4, source, source)
_Static_assert(offsetof(CUpti_ResourceData, context) == offsetof(struct cupti_resource, context), "resource");
#define NUMBER(theirs, ours) _Static_assert((int)(theirs) == (int)(ours), #ours);
NUMBER(CUPTI_SUCCESS, CUPTI_OK)
NUMBER(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CUPTI_ANOTHER_SUBSCRIBER)
NUMBER(CUPTI_ERROR_UNKNOWN, CUPTI_NO_REASON)
NUMBER(CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_KIND_MEMORY2)
NUMBER(CUPTI_ACTIVITY_KIND_MEMORY_POOL, CUPTI_KIND_MEMORY_POOL)
NUMBER(CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL, CUPTI_POOL_LOCAL)
NUMBER(CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED, CUPTI_POOL_CREATED)
NUMBER(CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED, CUPTI_POOL_DESTROYED)
NUMBER(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, CUPTI_FLUSH_FORCED)
NUMBER(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, CUPTI_ALLOCATION)
NUMBER(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, CUPTI_RELEASE)
NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, CUPTI_MEMORY_PINNED)
NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_MEMORY_DEVICE)
NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, CUPTI_MEMORY_ARRAY)
NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, CUPTI_MEMORY_MANAGED)
NUMBER(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DOMAIN_DRIVER)
NUMBER(CUPTI_API_EXIT, CUPTI_EXIT)
NUMBER(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_DOMAIN_RESOURCE)
NUMBER(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, CUPTI_CONTEXT_DESTROY_STARTING)
"""
# It is in the package of the compiler; nothing else of that package is needed.
HOST_DEFINES = """
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define __host__
#define __device__
#define CUDARTAPI
"""

spec = importlib.util.find_spec("nvidia")
folders = [pathlib.Path(f) for f in (spec.submodule_search_locations if spec else [])]
generations = [[folder / "cu13/include"] for folder in folders] + \
              [[folder / "cuda_cupti/include", folder / "cuda_runtime/include"] for folder in folders]
checked = 0
(support.HERE / "layout.c").write_text(PROGRAM)
(support.HERE / "crt").mkdir()
(support.HERE / "crt/host_defines.h").write_text(HOST_DEFINES)
for includes in generations:
    if not (includes[0] / "cupti.h").exists() or not (includes[-1] / "cuda.h").exists():
        continue
    # CUDA 13.0 allows neither several subscribers nor the source of an allocation
    several = ["-DSEVERAL"] if "allowMultipleSubscribers" in (includes[0] / "cupti_callbacks.h").read_text() else []
    support.run("cc", "-std=gnu11", "-fsyntax-only", *several, f"-I{support.ROOT}", f"-I{support.ROOT / 'cupti'}",
                *(f"-I{i}" for i in includes), "-I.", "layout.c")
    checked += 1
if not checked:
    support.skip("no headers of CUPTI are installed")
print(f"the headers of {checked} generations agree")
