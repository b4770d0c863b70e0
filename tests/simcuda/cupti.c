/* cupti.c — a simulated CUPTI, a test double: records of the simulated driver's memory, as far as libmemstow_cupti.so
 * asks for them. In: the calls that the driver tells of. Out: buffers of records. Records of one thread are in order;
 * those of several threads are mixed up. Full buffers come from a thread of CUPTI's own, as with the real CUPTI. Other
 * buffers come when the client asks for them; a buffer with an incomplete record comes only if the client asks by
 * force. Records have the layout of CUPTI 12.9 or 13. Those of CUDA 12 have the program counter in place of the source
 * of an allocation.
 *
 * Environment:
 *   SIMCUPTI_SUBSCRIBE=N   cuptiSubscribe returns N
 *   SIMCUPTI_ENABLE=N      cuptiActivityEnable returns N
 *   SIMCUPTI_ENABLE_V2=N   cuptiActivityEnable_v2 returns N
 *   SIMCUPTI_VERSION=N     what cuptiGetVersion says
 *   SIMCUPTI_DROP=N        the first N records are dropped
 *   SIMCUPTI_SOURCE=1      records of CUDA 12 have the source of an allocation, too
 *   SIMCUPTI_OTHER=one|several   another profiler is there already: one that shares with nobody, or one that shares
 *   SIMCUPTI_RECORD=N      bytes of a record: 112 (CUDA 11), 120, 128, or more, as in future versions
 *   SIMCUPTI_POOL=N        bytes of a pool's record: 64 (CUDA 11), 72, 80
 *   SIMCUPTI_NO_POOLS=N    cuptiActivityEnable of pools returns N
 *   SIMCUPTI_UNKNOWN=N     behind every N records there is one of another kind
 *   SIMCUPTI_CALLS=N       cuptiEnableCallback of the driver's calls returns N
 *   SIMCUPTI_COMPLETE_MS=N a record is complete N ms after its call
 *   SIMCUPTI_LATE_MS=N     a full buffer is handed over N ms after it is full
 *   SIMCUPTI_ROOM=N        only N bytes of each buffer are used
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti/abi.h"
#include "simcuda.h"

#define EXPORTED __attribute__((visibility("default")))

enum { LANES = 2, QUEUE = 256, INVALID_PARAMETER = 1, END = 12 };

static cupti_buffer_requested *ask;
static cupti_buffer_completed *give;
static cupti_callback *callback;
static bool subscribed, several, wants_source, wants_pools;
static size_t dropped, to_drop;
static uint64_t clock_ns;
static struct lane {
    uint8_t *buffer;
    size_t size, used;
    uint64_t complete_ns;                      /* when its last record will be complete */
} lanes[LANES], full[QUEUE];                   /* full: queue of full buffers, oldest first */
static size_t full_first, full_count, handing; /* handing: buffers that the client has just now */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static long setting(const char *name, long otherwise) {
    const char *value = getenv(name);
    return value && *value ? atol(value) : otherwise;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wait_ms(long ms) {
    if (ms) nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* --- the program's library that made the call --- */

static bool is_between(const char *path) {
    return strstr(path, "/libcuda.so") || strstr(path, "/libcudart.so") || strstr(path, "/libcupti.so") ||
           strstr(path, "/libmemstow");
}

static const char *caller(uint64_t *pc) {
    void *frames[32];
    Dl_info info;
    int count = backtrace(frames, 32);
    for (int i = 1; i < count; i++)
        if (dladdr(frames[i], &info) && info.dli_fname && !is_between(info.dli_fname)) {
            *pc = (uint64_t)(uintptr_t)frames[i];
            return info.dli_fname;
        }
    return NULL;
}

/* --- records --- */

static const struct {
    const char *name;
    uint32_t operation, kind;
    bool async;
} calls[] = {{"cuMemAlloc_v2", CUPTI_ALLOCATION, CUPTI_MEMORY_DEVICE, false},
             {"cuMemAllocPitch_v2", CUPTI_ALLOCATION, CUPTI_MEMORY_DEVICE, false},
             {"cuMemAllocManaged", CUPTI_ALLOCATION, CUPTI_MEMORY_MANAGED, false},
             {"cuMemAllocAsync", CUPTI_ALLOCATION, CUPTI_MEMORY_DEVICE, true},
             {"cuMemAllocAsync_ptsz", CUPTI_ALLOCATION, CUPTI_MEMORY_DEVICE, true},
             {"cuMemAllocFromPoolAsync", CUPTI_ALLOCATION, CUPTI_MEMORY_DEVICE, true},
             {"cuMemAllocFromPoolAsync_ptsz", CUPTI_ALLOCATION, CUPTI_MEMORY_DEVICE, true},
             {"cuMemAllocHost_v2", CUPTI_ALLOCATION, CUPTI_MEMORY_PINNED, false},
             {"cuMemHostAlloc", CUPTI_ALLOCATION, CUPTI_MEMORY_PINNED, false},
             {"cuArrayCreate_v2", CUPTI_ALLOCATION, CUPTI_MEMORY_ARRAY, false},
             {"cuArray3DCreate_v2", CUPTI_ALLOCATION, CUPTI_MEMORY_ARRAY, false},
             {"cuMemFree_v2", CUPTI_RELEASE, CUPTI_MEMORY_DEVICE, false},
             {"cuMemFreeAsync", CUPTI_RELEASE, CUPTI_MEMORY_DEVICE, true},
             {"cuMemFreeAsync_ptsz", CUPTI_RELEASE, CUPTI_MEMORY_DEVICE, true},
             {"cuMemFreeHost", CUPTI_RELEASE, CUPTI_MEMORY_PINNED, false},
             {"cuArrayDestroy", CUPTI_RELEASE, CUPTI_MEMORY_ARRAY, false}};

/* Called with the lock. The client's function is called without it. */
static void hand_over(struct lane lane) {
    handing++;
    pthread_mutex_unlock(&lock);
    give(NULL, 0, lane.buffer, lane.size, lane.used);
    pthread_mutex_lock(&lock);
    handing--;
    pthread_cond_broadcast(&changed);
}

static void *hand_over_full(void *nothing) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!full_count) pthread_cond_wait(&changed, &lock);
        struct lane next = full[full_first++ % QUEUE];
        full_count--;
        handing++; /* a request for all buffers waits for it */
        pthread_mutex_unlock(&lock);
        wait_ms(setting("SIMCUPTI_LATE_MS", 0));
        pthread_mutex_lock(&lock);
        handing--;
        hand_over(next);
    }
    return nothing;
}

static void is_full(struct lane *lane) {
    static pthread_t worker;
    if (!worker) pthread_create(&worker, NULL, hand_over_full, NULL);
    if (full_count == QUEUE) abort();
    full[(full_first + full_count++) % QUEUE] = *lane;
    *lane = (struct lane){0};
    pthread_cond_broadcast(&changed);
}

enum { UNKNOWN_KIND = 777, UNKNOWN_SIZE = 40 };

static size_t record_size(const void *record) {
    uint32_t kind = *(const uint32_t *)record;
    if (kind == UNKNOWN_KIND) return UNKNOWN_SIZE;
    if (kind == CUPTI_KIND_MEMORY_POOL) return (size_t)setting("SIMCUPTI_POOL", SIMCUDA_RUNTIME < 13000 ? 72 : 80);
    return (size_t)setting("SIMCUPTI_RECORD", SIMCUDA_RUNTIME < 12000 ? 112 : sizeof(struct cupti_memory));
}

/* The bytes behind the known fields are not zeros. */
static void write_record(uint8_t *to, const void *record, size_t size) {
    memset(to, 0xA5, size);
    bool pool = *(const uint32_t *)record == CUPTI_KIND_MEMORY_POOL;
    size_t known = pool ? sizeof(struct cupti_pool) : sizeof(struct cupti_memory);
    memcpy(to, record, size < known ? size : known);
}

static void put(const void *record) {
    static size_t turn;
    struct lane *lane = &lanes[turn++ / 3 % LANES];
    size_t records = 0, size = record_size(record);
    if (lane->buffer && lane->size - lane->used < size) is_full(lane);
    if (!lane->buffer) {
        ask(&lane->buffer, &lane->size, &records);
        size_t room = (size_t)setting("SIMCUPTI_ROOM", 0);
        if (lane->buffer && room) lane->size = room;
    }
    if (!lane->buffer || to_drop) {
        dropped++;
        if (to_drop) to_drop--;
        return;
    }
    write_record(lane->buffer + lane->used, record, size);
    lane->used += size;
    lane->complete_ns = now_ns() + (uint64_t)setting("SIMCUPTI_COMPLETE_MS", 0) * 1000000;
}

static const struct {
    const char *name;
    uint32_t operation;
} pool_calls[] = {{"cuMemPoolCreate", CUPTI_POOL_CREATED},
                  {"cuMemPoolDestroy", CUPTI_POOL_DESTROYED},
                  {"cuMemPoolTrimTo", CUPTI_POOL_TRIMMED}};

static void observe_pool(const struct sim_event_of_memory *event, uint32_t operation) {
    struct cupti_pool record = {.kind = CUPTI_KIND_MEMORY_POOL,
                                .operation = operation,
                                .type = CUPTI_POOL_LOCAL,
                                .process = (uint32_t)getpid(),
                                .device = (uint32_t)event->device,
                                .keep = event->bytes,
                                .address = event->pool,
                                .size = event->pool_reserved,
                                .threshold = event->pool_threshold,
                                .used = event->pool_used};
    pthread_mutex_lock(&lock);
    record.timestamp = ++clock_ns;
    put(&record);
    pthread_mutex_unlock(&lock);
}

static void observe_call(const struct sim_event_of_memory *event, size_t i) {
    struct cupti_memory record = {.kind = CUPTI_KIND_MEMORY2,
                                  .operation = calls[i].operation,
                                  .memory_kind = calls[i].kind,
                                  .address = event->address,
                                  .bytes = event->bytes,
                                  .process = (uint32_t)getpid(),
                                  .device = (uint32_t)event->device,
                                  .context = (uint32_t)event->context,
                                  .is_async = calls[i].async,
                                  .pool = {.type = event->pool ? CUPTI_POOL_LOCAL : 0,
                                           .address = event->pool,
                                           .threshold = event->pool_threshold,
                                           .size = event->pool_reserved,
                                           .used = event->pool_used}};
    const char *source = caller(&record.pc);
    record.source = wants_source ? source : (const char *)8; /* garbage: an older record ends before this member */
    pthread_mutex_lock(&lock);
    record.timestamp = ++clock_ns;
    put(&record);
    long other = setting("SIMCUPTI_UNKNOWN", 0);
    if (other && clock_ns % (uint64_t)other == 0) put(&(struct cupti_memory){.kind = UNKNOWN_KIND});
    pthread_mutex_unlock(&lock);
}

static void observe(const struct sim_event_of_memory *event) {
    if (strcmp(event->name, "context") == 0) {
        struct cupti_resource resource = {.context = (void *)(uintptr_t)event->context};
        callback(NULL, CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_DESTROY_STARTING, &resource);
        return;
    }
    for (size_t i = 0; i < sizeof pool_calls / sizeof *pool_calls && wants_pools; i++)
        if (strcmp(event->name, pool_calls[i].name) == 0) observe_pool(event, pool_calls[i].operation);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(event->name, calls[i].name) == 0) observe_call(event, i);
}

/* --- calls --- */

static const struct {
    const char *name;
    uint32_t id;
} told_calls[] = {
#define X(name, number, ...) {#name, number},
    CUPTI_CALLS(X)
#undef X
};
enum { TOLD_CALLS = sizeof told_calls / sizeof *told_calls };
static bool enabled[TOLD_CALLS];

static void observe_told(const struct sim_call *call) {
    for (size_t i = 0; i < TOLD_CALLS; i++)
        if (enabled[i] && strcmp(call->name, told_calls[i].name) == 0)
            callback(NULL, CUPTI_DOMAIN_DRIVER, told_calls[i].id,
                     &(struct cupti_call){.site = call->result ? CUPTI_EXIT : CUPTI_ENTER,
                                          .function = call->name,
                                          .parameters = call->arguments,
                                          .result = call->result,
                                          .context = (void *)(uintptr_t)call->context,
                                          .context_number = (uint32_t)call->context,
                                          .shared = call->shared});
}

/* --- CUPTI's functions, as abi.h has them --- */

#define F(name, parameters) EXPORTED int name parameters;
CUPTI_FUNCTIONS
F(cuptiActivityEnableAllocationSource, (uint8_t))
#undef F

int cuptiGetVersion(uint32_t *version) {
    *version = (uint32_t)setting("SIMCUPTI_VERSION", SIMCUDA_RUNTIME < 13000 ? CUPTI_CUDA_12 : CUPTI_CUDA_13);
    return CUPTI_OK;
}

int cuptiSubscribe(cupti_subscriber *out, cupti_callback *call, void *data) {
    int wanted = (int)setting("SIMCUPTI_SUBSCRIBE", CUPTI_OK);
    (void)data;
    if (wanted) return wanted;
    if (subscribed || getenv("SIMCUPTI_OTHER")) return CUPTI_ANOTHER_SUBSCRIBER;
    subscribed = true;
    callback = call;
    *out = &subscribed;
    to_drop = (size_t)setting("SIMCUPTI_DROP", 0);
    return CUPTI_OK;
}

static void *of_driver(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found) return found;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); /* it was opened with RTLD_LOCAL */
    return driver ? dlsym(driver, name) : NULL;
}

static void tell(sim_observer *call) {
    void (*set)(sim_observer *) = (void (*)(sim_observer *))of_driver("sim_observe");
    if (set) set(call);
}

static void tell_calls(sim_call_observer *call) {
    void (*set)(sim_call_observer *) = (void (*)(sim_call_observer *))of_driver("sim_observe_calls");
    if (set) set(call);
}

int cuptiUnsubscribe(cupti_subscriber subscriber) {
    if (subscriber != &subscribed || !subscribed) return INVALID_PARAMETER;
    tell(NULL);
    tell_calls(NULL);
    subscribed = several = false;
    return CUPTI_OK;
}

int cuptiEnableCallback(uint32_t enable, cupti_subscriber subscriber, int domain, uint32_t id) {
    long refused = setting("SIMCUPTI_CALLS", 0);
    if (subscriber != &subscribed) return INVALID_PARAMETER;
    for (size_t i = 0; i < TOLD_CALLS && domain == CUPTI_DOMAIN_DRIVER; i++)
        if (told_calls[i].id == id) {
            enabled[i] = enable && !refused;
            tell_calls(observe_told);
            return (int)refused;
        }
    return domain == CUPTI_DOMAIN_RESOURCE && id == CUPTI_CONTEXT_DESTROY_STARTING ? CUPTI_OK : INVALID_PARAMETER;
}

int cuptiGetContextId(cupti_context context, uint32_t *out) {
    *out = (uint32_t)(uintptr_t)context;
    return CUPTI_OK;
}

int cuptiActivityRegisterCallbacks(cupti_buffer_requested *requested, cupti_buffer_completed *completed) {
    if (several) return INVALID_PARAMETER;
    ask = requested;
    give = completed;
    return CUPTI_OK;
}

static int enable_kind(int kind) {
    int wanted = (int)setting("SIMCUPTI_ENABLE", CUPTI_OK);
    int no_pools = (int)setting("SIMCUPTI_NO_POOLS", CUPTI_OK);
    if (kind == CUPTI_KIND_MEMORY_POOL) {
        wants_pools = !no_pools;
        return no_pools;
    }
    if (wanted || kind != CUPTI_KIND_MEMORY2) return wanted ? wanted : INVALID_PARAMETER;
    tell(observe);
    return CUPTI_OK;
}

/* If CUPTI has several clients, it refuses these functions, and clients use others, such as cuptiActivityEnable_v2. */
int cuptiActivityEnable(int kind) { return several ? INVALID_PARAMETER : enable_kind(kind); }

int cuptiActivityDisable(int kind) {
    (void)kind;
    tell(NULL);
    return CUPTI_OK;
}

static int next_record(uint8_t *buffer, size_t valid, void **record) {
    uint8_t *next = *record ? (uint8_t *)*record + record_size(*record) : buffer;
    if (next + sizeof(uint32_t) > buffer + valid) return END;
    *record = next;
    return CUPTI_OK;
}

static int take_dropped(cupti_context context, uint32_t stream, size_t *out) {
    (void)context, (void)stream;
    *out = dropped;
    dropped = 0;
    return CUPTI_OK;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
    return several ? INVALID_PARAMETER : next_record(buffer, valid, record);
}

int cuptiActivityGetNumDroppedRecords(cupti_context context, uint32_t stream, size_t *out) {
    return several ? INVALID_PARAMETER : take_dropped(context, stream, out);
}

/* The library's own data is removed at exit, before handlers that were registered earlier run. */
static bool gone;
static void take_down(void) { gone = true; }
__attribute__((constructor)) static void load(void) { atexit(take_down); }

int cuptiActivityFlushAll(uint32_t flag) {
    if (gone) abort();
    pthread_mutex_lock(&lock);
    for (int i = LANES - 1; i >= 0; i--)
        if (lanes[i].buffer && (flag == CUPTI_FLUSH_FORCED || now_ns() >= lanes[i].complete_ns)) {
            struct lane lane = lanes[i];
            lanes[i] = (struct lane){0};
            hand_over(lane);
        }
    while (full_count || handing) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return CUPTI_OK;
}

int cuptiActivityEnableAllocationSource(uint8_t enable) {
    if (several || (SIMCUDA_RUNTIME < 13000 && !setting("SIMCUPTI_SOURCE", 0))) return INVALID_PARAMETER;
    wants_source = enable != 0;
    return CUPTI_OK;
}

/* --- one of several subscribers --- */

#if SIMCUDA_RUNTIME >= 13000
#define F(name, parameters) EXPORTED int name parameters;
CUPTI_FUNCTIONS_V2
#undef F

enum { ATTRIBUTE_SOURCE = 14 };

static cupti_buffer_requested_v2 *ask_v2;
static cupti_buffer_completed_v2 *give_v2;

static void ask_several(uint8_t **buffer, size_t *size, size_t *records) { ask_v2(buffer, size, records, NULL); }

static void give_several(cupti_context context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream;
    give_v2(buffer, size, valid, NULL);
}

int cuptiSubscribe_v2(cupti_subscriber *out, cupti_callback *call, void *data, struct cupti_subscriber_wish *wish) {
    const char *other = getenv("SIMCUPTI_OTHER");
    if (wish->size != sizeof *wish || strlen(wish->name) > 53) return INVALID_PARAMETER;
    if (other && wish->other_capacity >= 64) strcpy(wish->other, "CUPTI for another profiler");
    if (other && (strcmp(other, "several") || !wish->several)) return CUPTI_ANOTHER_SUBSCRIBER;
    int wanted = (int)setting("SIMCUPTI_SUBSCRIBE", CUPTI_OK);
    if (wanted) return wanted;
    (void)data;
    if (subscribed) return CUPTI_ANOTHER_SUBSCRIBER;
    subscribed = true;
    several = wish->several;
    callback = call;
    *out = &subscribed;
    to_drop = (size_t)setting("SIMCUPTI_DROP", 0);
    return CUPTI_OK;
}

static bool is_one_of_several(cupti_subscriber subscriber) {
    return subscriber == &subscribed && subscribed && several;
}

int cuptiActivityRegisterCallbacks_v2(cupti_subscriber subscriber, cupti_buffer_requested_v2 *requested,
                                      cupti_buffer_completed_v2 *completed) {
    if (!is_one_of_several(subscriber)) return INVALID_PARAMETER;
    ask_v2 = requested;
    give_v2 = completed;
    ask = ask_several;
    give = give_several;
    return CUPTI_OK;
}

int cuptiActivityEnable_v2(cupti_subscriber subscriber, int kind, void *config) {
    int wanted = (int)setting("SIMCUPTI_ENABLE_V2", CUPTI_OK);
    (void)config;
    if (!is_one_of_several(subscriber)) return INVALID_PARAMETER;
    return wanted ? wanted : enable_kind(kind);
}

int cuptiActivityDisable_v2(cupti_subscriber subscriber, int kind, void *config) {
    (void)config;
    return is_one_of_several(subscriber) ? cuptiActivityDisable(kind) : INVALID_PARAMETER;
}

int cuptiActivityGetNextRecord_v2(cupti_subscriber subscriber, uint8_t *buffer, size_t valid, void **record) {
    return is_one_of_several(subscriber) ? next_record(buffer, valid, record) : INVALID_PARAMETER;
}

int cuptiActivityGetNumDroppedRecords_v2(cupti_subscriber subscriber, cupti_context context, uint32_t stream,
                                         size_t *out) {
    return is_one_of_several(subscriber) ? take_dropped(context, stream, out) : INVALID_PARAMETER;
}

int cuptiActivitySetAttribute_v2(cupti_subscriber subscriber, int attribute, size_t *size, void *value) {
    if (!is_one_of_several(subscriber) || attribute != ATTRIBUTE_SOURCE || *size != 1) return INVALID_PARAMETER;
    wants_source = *(uint8_t *)value != 0;
    return CUPTI_OK;
}
#endif
