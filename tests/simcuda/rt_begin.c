/* rt_begin.c — how the simulated runtime finds the driver: it opens libcuda.so.1 by name, looks up cuGetProcAddress,
 * and asks this function for all others. The file also keeps the device and the last error of each thread, and gives
 * the thread a context. */
#include "rt.h"

#include <dlfcn.h>
#include <pthread.h>

#ifdef SIMCUDA_LINKED
CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
#endif

struct rt_driver rt_legacy, rt_own;
static CUresult (*get_v2)(const char *, void **, int, uint64_t, int *);
static CUresult (*get_v1)(const char *, void **, int, uint64_t);
static cudaError_t state;
static __thread int device;
static __thread cudaError_t last;

int rt_device(void) { return device; }

CUresult rt_resolve(const char *name, void **out, int version, uint64_t flags, int *status) {
    if (get_v2) return get_v2(name, out, version, flags, status);
    return get_v1(name, out, version, flags);
}

static const struct request {
    const char *name;
    int version;
    size_t at;
} REQUESTS[] = {
#define R(name, version, parameters) {#name, version, offsetof(struct rt_driver, name)},
#include "rt_driver.def"
};

static void ask_for_all(struct rt_driver *table, uint64_t flags) {
    for (const struct request *r = REQUESTS; r < REQUESTS + sizeof REQUESTS / sizeof *REQUESTS; r++) {
        int status;
        void *address = NULL;
        rt_resolve(r->name, &address, r->version, flags, &status);
        *(void **)((char *)table + r->at) = address;
    }
}

/* Finds both generations of the resolver cuGetProcAddress. As the real runtime does, asks the newer one for both. */
static void find_resolvers(void *library) {
    void *address = NULL;
    int status;
#ifdef SIMCUDA_LINKED /* for programs in which nobody hooks dlsym */
    get_v2 = cuGetProcAddress_v2;
    get_v1 = cuGetProcAddress;
#else
    *(void **)&get_v2 = dlsym(library, "cuGetProcAddress_v2");
    *(void **)&get_v1 = dlsym(library, "cuGetProcAddress");
#endif
    if (!get_v2) return;
    if (!get_v2("cuGetProcAddress", &address, 11030, CU_GET_PROC_LEGACY, &status)) *(void **)&get_v1 = address;
    if (!get_v2("cuGetProcAddress", &address, 12000, CU_GET_PROC_LEGACY, &status)) *(void **)&get_v2 = address;
}

static void begin_once(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) find_resolvers(library);
    if (!get_v1 && !get_v2) {
        state = 35; /* cudaErrorInsufficientDriver */
        return;
    }
    ask_for_all(&rt_legacy, CU_GET_PROC_LEGACY);
    ask_for_all(&rt_own, CU_GET_PROC_PER_THREAD);
    state = rt_legacy.cuInit ? rt_legacy.cuInit(0) : 35;
}

cudaError_t rt_begin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_once);
    return state;
}

cudaError_t rt_context_of(int id, CUcontext *out) {
    static CUcontext held[16];
    CUcontext context = id >= 0 && id < 16 ? __atomic_load_n(&held[id], __ATOMIC_ACQUIRE) : NULL;
    if (!context) {
        cudaError_t error = rt_legacy.cuDevicePrimaryCtxRetain(&context, id);
        if (error) return error;
        __atomic_store_n(&held[id], context, __ATOMIC_RELEASE);
    }
    *out = context;
    return 0;
}

cudaError_t rt_enter(void) {
    CUcontext context = NULL;
    cudaError_t error = rt_begin();
    if (error || (error = rt_legacy.cuCtxGetCurrent(&context)) || context) return error;
    error = rt_context_of(device, &context);
    return error ? error : rt_legacy.cuCtxSetCurrent(context);
}

cudaError_t rt_leave(cudaError_t error) {
    if (error && error != CUDA_ERROR_NOT_READY) last = error;
    return error;
}

RT_API cudaGetLastError(void);
RT_API cudaGetLastError(void) {
    cudaError_t error = last;
    last = 0;
    return error;
}

RT_API cudaPeekAtLastError(void);
RT_API cudaPeekAtLastError(void) { return last; }

RT_API cudaSetDevice(int id);
RT_API cudaSetDevice(int id) {
    CUcontext context;
    int count;
    cudaError_t error = rt_begin();
    if (!error) error = rt_legacy.cuDeviceGetCount(&count);
    if (!error && (id < 0 || id >= count)) error = CUDA_ERROR_INVALID_DEVICE;
    if (!error) error = rt_context_of(id, &context);
    if (!error) error = rt_legacy.cuCtxSetCurrent(context);
    if (!error) device = id;
    return rt_leave(error);
}

RT_CALL(cudaGetDevice, (int *out), rt_legacy.cuCtxGetDevice(out))

RT_API cudaGetDeviceCount(int *out);
RT_API cudaGetDeviceCount(int *out) {
    cudaError_t error = rt_begin();
    return rt_leave(error ? error : rt_legacy.cuDeviceGetCount(out));
}

RT_API cudaDriverGetVersion(int *out);
RT_API cudaDriverGetVersion(int *out) {
    cudaError_t error = rt_begin();
    return rt_leave(error ? error : rt_legacy.cuDriverGetVersion(out));
}

RT_API cudaRuntimeGetVersion(int *out);
RT_API cudaRuntimeGetVersion(int *out) {
    *out = SIMCUDA_RUNTIME;
    return 0;
}

RT_CALL(cudaDeviceSynchronize, (void), rt_legacy.cuCtxSynchronize())
RT_CALL(cudaDeviceReset, (void), rt_legacy.cuDevicePrimaryCtxReset(device))
RT_CALL(cudaThreadExit, (void), rt_legacy.cuDevicePrimaryCtxReset(device)) /* its former name */
RT_CALL(cudaDeviceGetAttribute, (int *out, int which, int id), rt_legacy.cuDeviceGetAttribute(out, which, id))
RT_CALL(cudaDeviceCanAccessPeer, (int *out, int id, int peer), rt_legacy.cuDeviceCanAccessPeer(out, id, peer))

static cudaError_t peer(int id, unsigned flags, bool enable) {
    CUcontext context;
    cudaError_t error = rt_context_of(id, &context);
    if (error) return error;
    return enable ? rt_legacy.cuCtxEnablePeerAccess(context, flags) : rt_legacy.cuCtxDisablePeerAccess(context);
}
RT_CALL(cudaDeviceEnablePeerAccess, (int id, unsigned flags), peer(id, flags, true))
RT_CALL(cudaDeviceDisablePeerAccess, (int id), peer(id, 0, false))

static const char *text_of(cudaError_t error, bool name) {
    const char *text = NULL;
    if (!rt_begin() || rt_legacy.cuGetErrorName)
        (name ? rt_legacy.cuGetErrorName : rt_legacy.cuGetErrorString)(error, &text);
    return text ? text : "unrecognized error code";
}
__attribute__((visibility("default"))) const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error) { return text_of(error, true); }
__attribute__((visibility("default"))) const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error) { return text_of(error, false); }

/* ---- functions by which a program gets the driver's functions from the runtime */

static cudaError_t entry_point(const char *name, void **out, int version, uint64_t flags, int *status) {
    int found = CU_PROC_NOT_FOUND;
    cudaError_t error = rt_begin();
    if (!error) error = rt_resolve(name, out, version, flags, &found);
    if (status) *status = found;
    return rt_leave(error);
}
#define ENTRY_POINT const char *name, void **out, unsigned long long flags, int *status
#define ENTRY_POINT_BY const char *name, void **out, unsigned version, unsigned long long flags, int *status
RT_API cudaGetDriverEntryPoint(ENTRY_POINT);
RT_API cudaGetDriverEntryPoint(ENTRY_POINT) { return entry_point(name, out, SIMCUDA_RUNTIME, flags, status); }
RT_API cudaGetDriverEntryPoint_ptsz(ENTRY_POINT);
RT_API cudaGetDriverEntryPoint_ptsz(ENTRY_POINT) {
    return entry_point(name, out, SIMCUDA_RUNTIME, flags ? flags : CU_GET_PROC_PER_THREAD, status);
}
RT_API cudaGetDriverEntryPointByVersion(ENTRY_POINT_BY);
RT_API cudaGetDriverEntryPointByVersion(ENTRY_POINT_BY) { return entry_point(name, out, (int)version, flags, status); }
RT_API cudaGetDriverEntryPointByVersion_ptsz(ENTRY_POINT_BY);
RT_API cudaGetDriverEntryPointByVersion_ptsz(ENTRY_POINT_BY) {
    return entry_point(name, out, (int)version, flags ? flags : CU_GET_PROC_PER_THREAD, status);
}
