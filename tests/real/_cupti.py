"""Shared by the tests that load NVIDIA's CUPTI and read its headers: where CUPTI is, which of its functions cupti/
finds, and whether cupti/abi.h agrees with NVIDIA's headers."""
import importlib.util, pathlib, re

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
#ifdef SOURCE
MEMORY(CUpti_ActivityMemory4)
SAME(CUpti_ActivityMemory4, source, source)
#endif
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
# Replaces crt/host_defines.h, a header of NVIDIA's compiler. The test needs no other file of the compiler's package.
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
#define CUDARTAPI_CDECL
"""

# Loads a CUPTI, as a program under memstow would, and prints which functions of it cupti/library.c finds.
OPENS = """
#include <dlfcn.h>
#include <stdio.h>
#include "cupti/library.h"
static struct cupti cupti;
int main(int count, char **words) {
    if (count < 2 || !dlopen(words[1], RTLD_NOW)) return puts(dlerror()), 2;
    printf("%s %s\\n", library_open(&cupti) ? "complete" : "incomplete", cupti.path);
#define F(name, parameters) if (cupti.name) puts(#name);
    CUPTI_FUNCTIONS CUPTI_FUNCTIONS_V2 F(cuptiActivityEnableAllocationSource, )
#undef F
}
"""


def folders():
    """Where PyPI's packages of NVIDIA have their files."""
    spec = importlib.util.find_spec("nvidia")
    return [pathlib.Path(folder) for folder in (spec.submodule_search_locations if spec else [])]


def functions(macro):
    """The names in one list of functions of cupti/abi.h."""
    text = (support.ROOT / "cupti/abi.h").read_text()
    return set(re.findall(r"F\((\w+),", re.search(rf"#define {macro}\b.*?[^\\]\n", text, re.S)[0]))


def found_in(library):
    """The functions that cupti/library.c finds in this CUPTI. Fails if cupti/library.c opens another CUPTI."""
    program = support.HERE / "opens"
    if not program.exists():
        support.compile(OPENS, name="opens", flags=("-D_GNU_SOURCE", f"-I{support.ROOT}",
                                                    support.ROOT / "cupti/library.c", "-ldl"))
    state, *names = support.run(program, library).stdout.split("\n")[:-1]
    assert state == f"complete {library}", state
    return set(names)


def table():
    """What the table of docs/cuda.md says of each version: {(13, 3): (its column "clients", its last column)}."""
    text = (support.ROOT / "docs/cuda.md").read_text()
    said = {}
    for first, last, clients, source in re.findall(r"^\| ([\d.]+) to ([\d.]+) \| (\w+) \| (.+?) \|$", text, re.M):
        begin, end = (tuple(map(int, v.split("."))) for v in (first, last))
        for version in [(11, 8), *((12, n) for n in range(10)), *((13, n) for n in range(20))]:
            if begin <= version <= end:
                said[version] = clients, source
    return said


def as_documented(version, library):
    """Fails if cupti/ finds other functions than docs/cuda.md says. Returns what docs/cuda.md says of this version."""
    clients, source = said = table()[version]
    found, second = found_in(library), functions("CUPTI_FUNCTIONS_V2")
    assert functions("CUPTI_FUNCTIONS") <= found, f"{version}: {functions('CUPTI_FUNCTIONS') - found}"
    assert (second <= found) == (clients == "several"), f"{version}, {clients}: {second - found} are not there"
    assert ("cuptiActivityEnableAllocationSource" in found) == (source == "CUPTI"), f"{version}: {source}"
    return said


def version_of(includes):
    """CUDA's version of a CUPTI, from its headers."""
    text = (includes / "cupti_version.h").read_text()
    number = int(re.search(r"#define CUPTI_API_VERSION\s+(\d+)", text)[1])
    known = {18: (12, 0), 20: (12, 2), 21: (12, 3), 22: (12, 4), 23: (12, 5), 24: (12, 6), 26: (12, 8), 28: (12, 9)}
    return known[number] if number < 100000 else (number // 10000, number // 100 % 100)


def check_layout(*includes):
    """Asserts that cupti/abi.h agrees with these headers: those of CUPTI, and those of CUDA of the same version."""
    (support.HERE / "layout.c").write_text(PROGRAM)
    (support.HERE / "crt").mkdir(exist_ok=True)
    (support.HERE / "crt/host_defines.h").write_text(HOST_DEFINES)
    # before CUDA 13.2 there cannot be several subscribers; before 12.6 an allocation has no source
    has = {"SEVERAL": "allowMultipleSubscribers" in (includes[0] / "cupti_callbacks.h").read_text(),
           "SOURCE": "CUpti_ActivityMemory4" in "".join(p.read_text() for p in includes[0].glob("cupti_activity*.h"))}
    support.run("cc", "-std=gnu11", "-fsyntax-only", *(f"-D{word}" for word in has if has[word]), f"-I{support.ROOT}",
                f"-I{support.ROOT / 'cupti'}", *(f"-I{i}" for i in includes), "-I.", "layout.c")
