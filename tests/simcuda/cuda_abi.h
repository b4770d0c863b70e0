/* cuda_abi.h — the part of CUDA's binary interface that the simulated driver and its clients speak, in our own words,
 * so that no toolkit is needed. Layouts and numbers are those of cuda.h and driver_types.h 12.0 to 13.0. */
#ifndef SIMCUDA_CUDA_ABI_H
#define SIMCUDA_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUmemGenericAllocationHandle;
typedef struct sim_context *CUcontext;
typedef struct sim_stream *CUstream;
typedef struct sim_event *CUevent;
typedef struct sim_pool *CUmemoryPool;
typedef struct sim_array *CUarray;
typedef struct sim_mipmap *CUmipmappedArray;
typedef struct sim_module *CUmodule;
typedef struct sim_function *CUfunction;
typedef struct sim_graph *CUgraph;
typedef struct sim_exec *CUgraphExec;
typedef struct sim_node *CUgraphNode;
typedef void (*CUhostFn)(void *);
typedef void (*CUstreamCallback)(CUstream, CUresult, void *);

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
};

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_IPC_HANDLE_SIZE 64

enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DISABLE_TIMING = 2, CU_EVENT_INTERPROCESS = 4 };
enum { CU_CAPTURE_GLOBAL = 0, CU_CAPTURE_THREAD_LOCAL = 1, CU_CAPTURE_RELAXED = 2 };
enum { CU_CAPTURE_NONE = 0, CU_CAPTURE_ACTIVE = 1, CU_CAPTURE_INVALIDATED = 2 };
enum { CU_GET_PROC_LEGACY = 1, CU_GET_PROC_PER_THREAD = 2 };
enum { CU_PROC_FOUND = 0, CU_PROC_NOT_FOUND = 1, CU_PROC_VERSION_NOT_SUFFICIENT = 2 };
enum { CU_MEM_LOCATION_NONE, CU_MEM_LOCATION_DEVICE = 1, CU_MEM_LOCATION_HOST = 2 };
enum { CU_MEM_ALLOCATION_PINNED = 1, CU_MEM_ALLOCATION_MANAGED = 2 };
enum { CU_MEM_HANDLE_POSIX_FD = 1 };
enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_ARRAY = 3, CU_MEMORYTYPE_UNIFIED = 4 };
enum { CU_GRAPH_AUTO_FREE_ON_LAUNCH = 1 };

enum {
    CU_POOL_FOLLOW_EVENTS = 1,
    CU_POOL_OPPORTUNISTIC = 2,
    CU_POOL_INTERNAL_DEPENDENCIES = 3,
    CU_POOL_RELEASE_THRESHOLD = 4,
    CU_POOL_RESERVED = 5,
    CU_POOL_RESERVED_HIGH = 6,
    CU_POOL_USED = 7,
    CU_POOL_USED_HIGH = 8,
};

enum { CU_GRAPH_MEM_USED = 0, CU_GRAPH_MEM_USED_HIGH = 1, CU_GRAPH_MEM_RESERVED = 2, CU_GRAPH_MEM_RESERVED_HIGH = 3 };

enum {
    CU_POINTER_CONTEXT = 1,
    CU_POINTER_MEMORY_TYPE = 2,
    CU_POINTER_DEVICE_POINTER = 3,
    CU_POINTER_HOST_POINTER = 4,
    CU_POINTER_SYNC_MEMOPS = 6,
    CU_POINTER_BUFFER_ID = 7,
    CU_POINTER_IS_MANAGED = 8,
    CU_POINTER_DEVICE_ORDINAL = 9,
    CU_POINTER_IPC_CAPABLE = 10,
    CU_POINTER_RANGE_START = 11,
    CU_POINTER_RANGE_SIZE = 12,
    CU_POINTER_MAPPED = 13,
    CU_POINTER_HANDLE_TYPES = 14,
    CU_POINTER_RDMA_CAPABLE = 15,
    CU_POINTER_ACCESS_FLAGS = 16,
    CU_POINTER_MEMPOOL_HANDLE = 17,
    CU_POINTER_MAPPING_SIZE = 18,
    CU_POINTER_MAPPING_BASE = 19,
    CU_POINTER_MEMORY_BLOCK_ID = 20,
    CU_POINTER_DECOMPRESS_CAPABLE = 21,
};

typedef struct {
    int type, id;
} CUmemLocation;

typedef struct {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    unsigned numDevices;
    size_t size;
    unsigned long long handleTypes, flags;
} CUmulticastObjectProp;

typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
    CUmemPoolProps poolProps;
    const CUmemAccessDesc *accessDescs;
    size_t accessDescCount, bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    CUhostFn fn;
    void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
    size_t srcXInBytes, srcY;
    int srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    int dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    int srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *srcReserved; /* CUDA_MEMCPY3D_PEER: the context */
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    int dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *dstReserved;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
    int flags, reserved;
    CUcontext copyCtx;
    CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct {
    CUgraph graph;
    int ownership;
} CUDA_CHILD_GRAPH_NODE_PARAMS;

typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern; /* from here on not in the first version */
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned numAttrs;
} CUlaunchConfig;
enum { CU_FUNC_MAX_THREADS = 0 };

typedef uint64_t CUgraphConditionalHandle;
enum { CU_GRAPH_COND_IF, CU_GRAPH_COND_WHILE, CU_GRAPH_COND_SWITCH, CU_GRAPH_COND_ASSIGN_DEFAULT = 1 };
typedef struct {
    CUgraphConditionalHandle handle;
    int type;
    unsigned size;
    CUgraph *phGraph_out;
    CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;

enum {
    CU_GRAPH_NODE_KERNEL = 0,
    CU_GRAPH_NODE_MEMCPY = 1,
    CU_GRAPH_NODE_MEMSET = 2,
    CU_GRAPH_NODE_GRAPH = 4,
    CU_GRAPH_NODE_EMPTY = 5,
    CU_GRAPH_NODE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_MEM_FREE = 11,
    CU_GRAPH_NODE_CONDITIONAL = 13
};
enum { CU_GRAPH_CHILD_CLONE, CU_GRAPH_CHILD_MOVE };
typedef struct {
    int type, reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
        CUDA_MEMCPY_NODE_PARAMS copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_CHILD_GRAPH_NODE_PARAMS child;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct {
            CUdeviceptr dptr;
        } free;
        struct {
            CUevent event;
        } event; /* of both kinds of nodes for events */
    };
    long long reserved2;
} CUgraphNodeParams;

typedef struct {
    size_t Width, Height;
    int Format;
    unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    char reserved[CU_IPC_HANDLE_SIZE];
} CUipcMemHandle;

typedef struct {
    unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef struct {
    char bytes[16];
} CUuuid;

#endif
