/* call.c — the beginning and the end of every entry of the simulated driver. At the beginning it checks whether the
 * driver is alive in this process and thread, whether a test wants an error, and whether the call is allowed now. At
 * the end the call goes into the journal. In: an entry's name and needs. Out: the lock, held while the entry works. No
 * lock is taken in a forked child, or after the driver's exit handler has run. */
#include "sim.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static bool initialised, forked, over;
static __thread bool in_callback, locked;
static __thread uint64_t details[2], of_pool[4];
static sim_observer *observer;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void sim_observe(sim_observer *call) { __atomic_store_n(&observer, call, __ATOMIC_RELEASE); }

static sim_call_observer *call_observer;
EXPORTED void sim_observe_calls(sim_call_observer *call) { __atomic_store_n(&call_observer, call, __ATOMIC_RELEASE); }

void call_tell(const char *name, const uint64_t *arguments, uint64_t *shared, const CUresult *result) {
    sim_call_observer *call = __atomic_load_n(&call_observer, __ATOMIC_ACQUIRE);
    if (!call || forked) return;
    const struct sim_context *context = context_current();
    call(&(struct sim_call){name, result, arguments, shared, context ? context->id : 0});
}

static void in_child(void) {
    if (initialised) forked = true;
}

static void at_exit(void) { __atomic_store_n(&over, true, __ATOMIC_RELEASE); }

static void begin_once(void) {
    config_read();
    pthread_atfork(NULL, NULL, in_child);
}

void call_callback(bool begins) { in_callback = begins; }

void call_details(uint64_t a, uint64_t b) {
    details[0] = a;
    details[1] = b;
}

void call_pool(uint64_t pool, uint64_t reserved, uint64_t used, uint64_t threshold) {
    of_pool[0] = pool;
    of_pool[1] = reserved;
    of_pool[2] = used;
    of_pool[3] = threshold;
}

/* The real driver talks to its kernel modules through descriptors of the program. A thread with a descriptor table of
 * its own lacks these descriptors, and may have other files under their numbers. It is not known which calls need the
 * descriptors, so here all calls do. */
static bool has_descriptors(void) {
    struct stat file;
    return !fstat(sim_devices[0].fd, &file) && file.st_ino == sim_devices[0].file;
}

/* The answer of an entry before it looks at its arguments. */
static CUresult refusal(const char *name, int needs) {
    if (initialised && needs & (NEEDS_INIT | NEEDS_CONTEXT) && !has_descriptors()) return CUDA_ERROR_OPERATING_SYSTEM;
    if (in_callback && !(needs & IN_CALLBACK)) return CUDA_ERROR_NOT_PERMITTED;
    CUresult wanted = inject_error(name);
    if (wanted) return wanted;
    if (needs & (NEEDS_INIT | NEEDS_CONTEXT) && !initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs & NEEDS_CONTEXT) {
        if (!context_current_slot) return CUDA_ERROR_INVALID_CONTEXT;
        if (!context_current()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        if (context_current()->sticky) return context_current()->sticky;
    }
    return needs & UNSAFE ? capture_forbids() : CUDA_SUCCESS;
}

int call_enter(const char *name, int needs) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    locked = false;
    call_details(0, 0);
    call_pool(0, 0, 0, 0);
    if (__atomic_load_n(&over, __ATOMIC_ACQUIRE)) return CUDA_ERROR_DEINITIALIZED;
    if (forked) return CUDA_ERROR_NOT_INITIALIZED;
    pthread_once(&once, begin_once);
    inject_delay(name);
    pthread_mutex_lock(&sim_lock);
    locked = true;
    return refusal(name, needs);
}

static void tell_of_memory(sim_observer *call, const char *name) {
    const struct sim_context *context = context_current();
    call(&(struct sim_event_of_memory){.name = name,
                                       .bytes = details[0],
                                       .address = details[1],
                                       .context = context ? context->id : 0,
                                       .device = context ? context->device->id : 0,
                                       .pool = of_pool[0],
                                       .pool_reserved = of_pool[1],
                                       .pool_used = of_pool[2],
                                       .pool_threshold = of_pool[3]});
}

void call_context_ends(const struct sim_context *context) {
    sim_observer *call = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
    if (call) call(&(struct sim_event_of_memory){.name = "context", .context = context->id});
}

CUresult call_leave(const char *name, CUresult result) {
    if (!locked) return result;
    journal_add(name, result, details[0], details[1]);
    sim_observer *call = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
    if (call && !result && details[1]) tell_of_memory(call, name);
    locked = false;
    pthread_mutex_unlock(&sim_lock);
    return result;
}

/* Loads a library that the environment names, as the real driver does within cuInit. A library that is missing or
 * unsuitable changes nothing. The library may call the driver. */
static void inject_library(void) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*initialise)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (initialise) initialise();
    locked = true; /* calls that the library made have set it to false */
}

API(cuInit, IN_CALLBACK, (unsigned flags), (flags)) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (initialised) return CUDA_SUCCESS;
    if (!sim_config.devices) return CUDA_ERROR_NO_DEVICE;
    CUresult result = space_begin();
    if (!result) result = device_begin();
    if (result) return result;
    initialised = true;
    atexit(at_exit);
    pthread_mutex_unlock(&sim_lock);
    inject_library();
    pthread_mutex_lock(&sim_lock);
    return CUDA_SUCCESS;
}

API(cuDriverGetVersion, IN_CALLBACK, (int *out), (out)) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = sim_config.version;
    return CUDA_SUCCESS;
}

/* The private tables of the real driver are not imitated. */
API(cuGetExportTable, IN_CALLBACK, (const void **out, const CUuuid *id), (out, id)) {
    if (!out || !id) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

static const struct {
    CUresult value;
    const char *name, *text;
} ERRORS[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
};

static int error_index(CUresult error) {
    for (int i = 0; i < (int)(sizeof ERRORS / sizeof *ERRORS); i++)
        if (ERRORS[i].value == error) return i;
    return -1;
}

API(cuGetErrorName, IN_CALLBACK, (CUresult error, const char **out), (error, out)) {
    int i = error_index(error);
    *out = i < 0 ? NULL : ERRORS[i].name;
    return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API(cuGetErrorString, IN_CALLBACK, (CUresult error, const char **out), (error, out)) {
    int i = error_index(error);
    *out = i < 0 ? NULL : ERRORS[i].text;
    return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
