#!/usr/bin/env python3
# cuda_table.h, cuda_abi.h and vram_driver.h describe CUDA in our own words. They agree with NVIDIA's headers of CUDA 12
# and 13 about structures, about numbers, and about each entry's arguments. Only the way in which an argument is passed
# is compared: all pointers are alike, and so are all whole numbers of one size.
# needs: cc pip:nvidia-cuda-runtime>=13,<14 pip:nvidia-cuda-runtime-cu12
import importlib.util, pathlib, re

import support

PRELOAD = support.ROOT / "preload"
COMPARE = """
#include <stddef.h>
#include <type_traits>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#define _Static_assert static_assert
#include "preload/copies/vram_driver.h"

/* Of two arguments: both pointers, both whole numbers of one size, or structures of one size. */
template <class A, class B> constexpr bool like() {
    using std::is_pointer;
    constexpr bool numbers = (std::is_integral<A>::value || std::is_enum<A>::value) &&
                             (std::is_integral<B>::value || std::is_enum<B>::value);
    constexpr bool structures = std::is_class<A>::value && std::is_class<B>::value &&
                                alignof(A) <= 8 && alignof(B) <= 8;
    return (is_pointer<A>::value && is_pointer<B>::value) || ((numbers || structures) && sizeof(A) == sizeof(B));
}
template <class A, class B> struct same : std::false_type {};
template <class R, class S> struct same<R(), S()> : std::bool_constant<sizeof(R) == sizeof(S)> {};
template <class R, class S, class A, class B, class... As, class... Bs>
struct same<R(A, As...), S(B, Bs...)> : std::bool_constant<like<A, B>() && same<R(As...), S(Bs...)>::value> {};
template <class T> struct function { using type = T; };
template <class T> struct function<T *> { using type = T; };
#define FUNCTION(name, ...) static_assert(same<function<name>::type, int __VA_ARGS__>::value, #name);
#define NUMBER(theirs, ours) static_assert((long long)(theirs) == (long long)(ours), #ours);
#define MEMBER(type, theirs, our, ours) \\
    static_assert(offsetof(type, theirs) == offsetof(our, ours) && \\
                  sizeof(((type *)0)->theirs) == sizeof(((our *)0)->ours), #our "." #ours);
#define SIZE(theirs, ours) static_assert(sizeof(theirs) == sizeof(ours), #ours);
"""
STRUCTURES = """
SIZE(cudaIpcMemHandle_t, cuda_ipc_memory) SIZE(CUipcMemHandle, cuda_ipc_memory)
SIZE(cudaPitchedPtr, cuda_pitched) MEMBER(cudaPitchedPtr, ptr, cuda_pitched, start)
MEMBER(cudaPitchedPtr, pitch, cuda_pitched, pitch)
MEMBER(cudaPitchedPtr, xsize, cuda_pitched, width) MEMBER(cudaPitchedPtr, ysize, cuda_pitched, height)
SIZE(cudaExtent, cuda_extent) MEMBER(cudaExtent, width, cuda_extent, width)
MEMBER(cudaExtent, height, cuda_extent, height)
MEMBER(cudaExtent, depth, cuda_extent, depth)
SIZE(cudaChannelFormatDesc, cuda_channels) MEMBER(cudaChannelFormatDesc, f, cuda_channels, format)
#define PROPERTIES(type) MEMBER(type, location, cuda_properties, location)
PROPERTIES(CUmemAllocationProp) PROPERTIES(CUmemPoolProps) PROPERTIES(cudaMemPoolProps)
MEMBER(CUmemAllocationProp, type, cuda_properties, type)
MEMBER(CUmemAllocationProp, requestedHandleTypes, cuda_properties, handle_types)
MEMBER(CUmemPoolProps, allocType, cuda_properties, type)
MEMBER(CUmemPoolProps, handleTypes, cuda_properties, handle_types)
MEMBER(CUmemLocation, type, CUmemLocation, type) MEMBER(CUmemLocation, id, CUmemLocation, id)
SIZE(CUDA_ARRAY_DESCRIPTOR, cuda_array_2d) MEMBER(CUDA_ARRAY_DESCRIPTOR, Width, cuda_array_2d, width)
MEMBER(CUDA_ARRAY_DESCRIPTOR, Height, cuda_array_2d, height)
MEMBER(CUDA_ARRAY_DESCRIPTOR, Format, cuda_array_2d, format)
MEMBER(CUDA_ARRAY_DESCRIPTOR, NumChannels, cuda_array_2d, channels)
SIZE(CUDA_ARRAY3D_DESCRIPTOR, cuda_array_3d) MEMBER(CUDA_ARRAY3D_DESCRIPTOR, Width, cuda_array_3d, width)
MEMBER(CUDA_ARRAY3D_DESCRIPTOR, Height, cuda_array_3d, height)
MEMBER(CUDA_ARRAY3D_DESCRIPTOR, Depth, cuda_array_3d, depth)
MEMBER(CUDA_ARRAY3D_DESCRIPTOR, Format, cuda_array_3d, format)
MEMBER(CUDA_ARRAY3D_DESCRIPTOR, NumChannels, cuda_array_3d, channels)
MEMBER(CUDA_ARRAY3D_DESCRIPTOR, Flags, cuda_array_3d, flags)
#define ALLOC_NODE(type) SIZE(type, cuda_alloc_node) MEMBER(type, poolProps, cuda_alloc_node, pool) \\
    MEMBER(type, accessDescs, cuda_alloc_node, access) MEMBER(type, accessDescCount, cuda_alloc_node, access_count) \\
    MEMBER(type, bytesize, cuda_alloc_node, bytes) MEMBER(type, dptr, cuda_alloc_node, start)
ALLOC_NODE(CUDA_MEM_ALLOC_NODE_PARAMS) ALLOC_NODE(cudaMemAllocNodeParams)
MEMBER(CUgraphNodeParams, type, cuda_node, type) MEMBER(CUgraphNodeParams, alloc, cuda_node, alloc)
MEMBER(CUgraphNodeParams, graph, cuda_node, child)
SIZE(CUmulticastObjectProp, cuda_multicast) MEMBER(CUmulticastObjectProp, numDevices, cuda_multicast, devices)
MEMBER(CUmulticastObjectProp, size, cuda_multicast, size)
MEMBER(CUmulticastObjectProp, handleTypes, cuda_multicast, handle_types)
SIZE(CUmemAllocationProp, vram_prop) MEMBER(CUmemAllocationProp, type, vram_prop, type)
MEMBER(CUmemAllocationProp, requestedHandleTypes, vram_prop, handle_types)
MEMBER(CUmemAllocationProp, location.type, vram_prop, location_type)
MEMBER(CUmemAllocationProp, location.id, vram_prop, location_id)
MEMBER(CUmemAllocationProp, win32HandleMetaData, vram_prop, windows)
MEMBER(CUmemAllocationProp, allocFlags.compressionType, vram_prop, compression)
MEMBER(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable, vram_prop, rdma)
MEMBER(CUmemAllocationProp, allocFlags.usage, vram_prop, usage)
SIZE(CUmemAccessDesc, vram_access) MEMBER(CUmemAccessDesc, location.type, vram_access, location_type)
MEMBER(CUmemAccessDesc, location.id, vram_access, location_id) MEMBER(CUmemAccessDesc, flags, vram_access, flags)
NUMBER(CUDA_SUCCESS, CUDA_OK) NUMBER(CUDA_ERROR_OUT_OF_MEMORY, CUDA_OUT_OF_MEMORY)
NUMBER(cudaErrorMemoryAllocation, CUDA_OUT_OF_MEMORY)
NUMBER(cudaErrorSharedObjectSymbolNotFound, CUDA_NO_SUCH_SYMBOL)
NUMBER(CU_MEM_LOCATION_TYPE_DEVICE, CUDA_LOCATION_DEVICE) NUMBER(CU_MEM_LOCATION_TYPE_HOST, CUDA_LOCATION_HOST)
NUMBER(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, CUDA_LOCATION_HOST_NUMA_CURRENT)
NUMBER(CUDA_ARRAY3D_SPARSE, CUDA_ARRAY_SPARSE) NUMBER(CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY_DEFERRED)
NUMBER(cudaArraySparse, CUDA_ARRAY_SPARSE) NUMBER(cudaArrayDeferredMapping, CUDA_ARRAY_DEFERRED)
NUMBER(CU_GRAPH_NODE_TYPE_MEM_ALLOC, CUDA_NODE_ALLOC)
NUMBER(CU_GET_PROC_ADDRESS_LEGACY_STREAM, CUDA_FLAG_LEGACY_STREAM)
NUMBER(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, CUDA_FLAG_PER_THREAD_STREAM)
NUMBER(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CUDA_POOL_RESERVED)
NUMBER(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CUDA_POOL_USED)
NUMBER(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, CUDA_POOL_RESERVED + 1)
NUMBER(CU_MEMPOOL_ATTR_USED_MEM_HIGH, CUDA_POOL_USED + 1)
NUMBER(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CUDA_GRAPH_USED)
NUMBER(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CUDA_GRAPH_RESERVED)
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
"""
# Numbers to which our files give names of their own.
NUMBERS = {
    "vram_block.c": {"PINNED": "CU_MEM_ALLOCATION_TYPE_PINNED", "DEVICE": "CU_MEM_LOCATION_TYPE_DEVICE",
                     "READ_WRITE": "CU_MEM_ACCESS_FLAGS_PROT_READWRITE", "NO_ACCESS": "CU_MEM_ACCESS_FLAGS_PROT_NONE",
                     "RDMA_OF_MAPPINGS": "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED"},
    "serve_pointer.c": {
        "MEMORY_TYPE": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE", "DEVICE_POINTER": "CU_POINTER_ATTRIBUTE_DEVICE_POINTER",
        "CONTEXT": "CU_POINTER_ATTRIBUTE_CONTEXT", "P2P_TOKENS": "CU_POINTER_ATTRIBUTE_P2P_TOKENS",
        "SYNC_MEMOPS": "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS", "BUFFER_ID": "CU_POINTER_ATTRIBUTE_BUFFER_ID",
        "IS_MANAGED": "CU_POINTER_ATTRIBUTE_IS_MANAGED", "DEVICE_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
        "IPC_CAPABLE": "CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE",
        "RANGE_START": "CU_POINTER_ATTRIBUTE_RANGE_START_ADDR", "RANGE_SIZE": "CU_POINTER_ATTRIBUTE_RANGE_SIZE",
        "MAPPED": "CU_POINTER_ATTRIBUTE_MAPPED", "HANDLE_TYPES": "CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES",
        "RDMA_CAPABLE": "CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE",
        "ACCESS_FLAGS": "CU_POINTER_ATTRIBUTE_ACCESS_FLAGS", "MEMPOOL_HANDLE": "CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE",
        "MAPPING_SIZE": "CU_POINTER_ATTRIBUTE_MAPPING_SIZE", "MAPPING_BASE": "CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR",
        "MEMORY_BLOCK_ID": "CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID",
        "DECOMPRESS_CAPABLE": "CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE",
        "READ_AND_WRITE": "CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE", "IS_DEVICE_MEMORY": "CU_MEMORYTYPE_DEVICE"},
    "vram_ring.c": {"NON_BLOCKING": "CU_STREAM_NON_BLOCKING", "NO_TIMING": "CU_EVENT_DISABLE_TIMING",
                    "PORTABLE": "CU_MEMHOSTALLOC_PORTABLE"},
    "cuda_device.c": {"MPS_ENABLED": "CU_DEVICE_ATTRIBUTE_MPS_ENABLED"},
    "vram_end.c": {"NO_TIMING": "CU_EVENT_DISABLE_TIMING"},
    "vram_driver.c": {"RELAXED": "CU_STREAM_CAPTURE_MODE_RELAXED"}}


def numbers():
    """A line NUMBER(NVIDIA's name, our value) for each entry of NUMBERS."""
    for file, names in NUMBERS.items():
        text = next(PRELOAD.rglob(file)).read_text()
        for ours, theirs in names.items():
            value = re.search(rf"enum {{[^}}]*\b{ours} = (\d+)", text)
            assert value, f"{file} has no {ours}"
            yield f"NUMBER({theirs}, {value[1]})"


def prototypes():
    """What each line of the table says: (side, name, base, since, per_thread, parameters). Also the driver's functions
    that are needed for moves; these have no base."""
    (support.HERE / "names.c").write_text("""
#define ENTRY(side, name, base, since, per_thread, parameters, ...) @side@name@base@since@per_thread@parameters@
#define RESOLVER ENTRY
#include "preload/cuda/cuda_table.h"
#include "preload/copies/vram_driver.h"
#define F(name, parameters) @DRIVER@name@""@0@0@parameters@
VRAM_FUNCTIONS(F)
""")
    text = support.run("cc", "-E", "-P", f"-I{support.ROOT}", "names.c").stdout
    line = r'@\s*(\w+)\s*@\s*(\w+)\s*@\s*"(\w*)"\s*@\s*(\d+)\s*@\s*(\d)\s*@\s*(\(.*?\))\s*@'
    return [(*found[:5], " ".join(found[5].split())) for found in re.findall(line, text, re.S)]


def theirs(entry):
    """The name in NVIDIA's headers. For an entry with a base, this is the type of the entry's version."""
    side, name, base, since, per_thread, _ = entry
    return f"PFN_{base}_v{since}{'_ptsz' if per_thread == '1' else ''}" if base else name


def compare(include, entries, *options):
    """Compiles a comparison of these entries with the headers. Each difference is an error of the compiler that names
    the entry."""
    types = [theirs(entry) if entry[2] else f"decltype({entry[1]})" for entry in entries]
    lines = [f"FUNCTION({type_}, {entry[5]})" for type_, entry in zip(types, entries)]
    (support.HERE / "compare.cc").write_text("\n".join(
        [COMPARE, *lines, *([] if options else [STRUCTURES, *numbers()])]))
    support.run("c++", "-std=gnu++17", "-fsyntax-only", "-Wno-deprecated-declarations", *options, f"-I{support.ROOT}",
                f"-I{include}", "-I.", "compare.cc")


spec = importlib.util.find_spec("nvidia")
folders = [pathlib.Path(f) for f in (spec.submodule_search_locations if spec else [])]
generations = [i for f in folders for i in (f / "cu13/include", f / "cuda_runtime/include") if (i / "cuda.h").exists()]
if not generations:
    support.skip("no headers of CUDA are installed")
table, found = prototypes(), set()
assert len(table) > 140 and {"cudaMalloc", "cuMemAlloc_v2", "cuGetProcAddress_v2",
                             "cuMemCreate"} <= {entry[1] for entry in table}
(support.HERE / "crt").mkdir()
(support.HERE / "crt/host_defines.h").write_text(HOST_DEFINES)
for include in generations:
    text = "".join((include / file).read_text(errors="replace")
                   for file in ("cuda.h", "cudaTypedefs.h", "cuda_runtime_api.h"))
    there = [entry for entry in table
             if re.search(rf"\b{theirs(entry).removesuffix('_ptsz') if entry[0] == 'RUNTIME' else theirs(entry)}\b",
                          text)]
    own = [entry for entry in there if entry[0] == "RUNTIME" and entry[4] == "1"]
    by_version = [entry for entry in there if entry[2]]
    compare(include, [entry for entry in there if entry not in own + by_version])
    compare(include, own, "-DCUDA_API_PER_THREAD_DEFAULT_STREAM")
    compare(include, by_version, "-D__CUDA_API_VERSION_INTERNAL") # declares the first versions, too
    found |= set(there)
missing = sorted(entry[1] for entry in set(table) - found)
assert not missing, f"in no header: {missing}"
print(f"{len(table)} functions, structures and numbers: the headers of {len(generations)} generations agree")
