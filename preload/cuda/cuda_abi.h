/* cuda_abi.h — the parts of CUDA's binary interface that the hooks need: structures and numbers, declared here.
 * The build needs no header of CUDA, and links none of its libraries. All declarations here are the same in CUDA 12 and
 * 13. If the arguments of a function changed between versions, cuda_table.h has a name for each version. */
#ifndef MEMSTOW_CUDA_ABI_H
#define MEMSTOW_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Results; runtime and driver use the same numbers. */
enum { CUDA_OK = 0, CUDA_OUT_OF_MEMORY = 2, CUDA_NO_SUCH_SYMBOL = 302, CUDA_ILLEGAL_ADDRESS = 700 };

typedef uint64_t cuda_address;
typedef uint64_t cuda_memory; /* CUmemGenericAllocationHandle */
typedef void *cuda_handle;    /* stream, pool, array, graph, node, context */

/* --- the runtime --- */

struct cuda_pitched {
    void *start;
    size_t pitch, width, height;
};
struct cuda_extent {
    size_t width, height, depth;
};
struct cuda_channels {
    int bits[4];
    int format;
};
struct cuda_ipc_memory { /* cudaIpcMemHandle_t and CUipcMemHandle, which are passed by value */
    char reserved[64];
};

/* --- the driver --- */

enum { CUDA_LOCATION_DEVICE = 1, CUDA_LOCATION_HOST = 2, CUDA_LOCATION_HOST_NUMA_CURRENT = 4 };

enum { CUDA_TYPE_MANAGED = 2 }; /* CUmemAllocationType */

/* The common part of CUmemAllocationProp and CUmemPoolProps. */
struct cuda_properties {
    int type, handle_types;
    struct {
        int type, id;
    } location;
};

struct cuda_array_2d {
    size_t width, height;
    unsigned format, channels;
};
struct cuda_array_3d {
    size_t width, height, depth;
    unsigned format, channels, flags;
};
/* Sparse and deferred arrays have no memory of their own. */
enum { CUDA_ARRAY_SPARSE = 0x40, CUDA_ARRAY_DEFERRED = 0x80 };

struct cuda_alloc_node { /* cudaMemAllocNodeParams and CUDA_MEM_ALLOC_NODE_PARAMS */
    union {
        struct cuda_properties properties;
        char bytes[88];
    } pool;
    const void *access;
    size_t access_count, bytes;
    cuda_address start;
};
_Static_assert(offsetof(struct cuda_alloc_node, bytes) == 104, "as in cuda.h");

struct cuda_node { /* CUgraphNodeParams */
    int type, reserved[3];
    union {
        struct cuda_alloc_node alloc;
        struct {
            cuda_handle graph;
            int ownership;
        } child;
        char bytes[232];
    };
};
enum { CUDA_NODE_GRAPH = 4, CUDA_NODE_ALLOC = 10, CUDA_CHILD_MOVES = 1 };

struct cuda_multicast { /* CUmulticastObjectProp */
    unsigned devices;
    size_t size;
    unsigned long long handle_types, flags;
};

/* Reserved handles of streams: the legacy default stream, and each thread's own default stream. Handle 0 means one of
 * these two (cuda_device_stream). Greater handles are those of ordinary streams. */
enum { CUDA_STREAM_LEGACY = 1, CUDA_STREAM_PER_THREAD = 2 };
enum { CUDA_FLAG_LEGACY_STREAM = 1, CUDA_FLAG_PER_THREAD_STREAM = 2 }; /* flags of resolvers */
enum { CUDA_POOL_RESERVED = 5, CUDA_POOL_USED = 7 };                   /* CUmemPool_attribute */
enum { CUDA_GRAPH_USED = 0, CUDA_GRAPH_RESERVED = 2 };                 /* CUgraphMem_attribute */

#endif
