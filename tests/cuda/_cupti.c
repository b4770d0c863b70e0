/* The CUDA calls of a program in the tests of the comparison with CUPTI. The first argument chooses the case. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/life/cupti.h"
#include "memstow.h"

int cudaMalloc(void **, size_t);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMallocAsync(void **, size_t, void *);
int cudaMallocHost(void **, size_t);
int cudaFree(void *);
int cudaFreeAsync(void *, void *);
int cudaFreeHost(void *);
int cudaDeviceReset(void);

struct properties { /* CUmemAllocationProp */
    int type, handle_types, location_type, location_id;
    void *windows;
    unsigned char rest[8];
};
int cuMemAddressReserve(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
int cuMemAddressFree(uint64_t, size_t);
int cuMemCreate(uint64_t *, size_t, const struct properties *, unsigned long long);
int cuMemRelease(uint64_t);
int cuMemMap(uint64_t, size_t, size_t, uint64_t, unsigned long long);
int cuMemUnmap(uint64_t, size_t);
int cuMemRetainAllocationHandle(uint64_t *, void *);

struct pool_properties { /* CUmemPoolProps */
    int type, handle_types, location_type, location_id;
    unsigned char rest[72];
};
int cuMemPoolCreate(void **, const struct pool_properties *);
int cuMemPoolDestroy(void *);
int cuMemPoolTrimTo(void *, size_t);
int cuMemAllocFromPoolAsync(uint64_t *, size_t, void *, void *);

static void *device(size_t bytes) {
    void *at;
    if (cudaMalloc(&at, bytes)) abort();
    return at;
}

/* The same addresses are used again and again, with other sizes. */
static void *churn(void *from) {
    void *at[40];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 40; i++)
            if (i % 2 ? cudaMallocAsync(&at[i], 4096 + 512 * i * (size_t)round, NULL)
                      : cudaMalloc(&at[i], 512 + i * 700))
                abort();
        for (size_t i = 0; i < 40; i++)
            if (i % 2 ? cudaFreeAsync(at[i], NULL) : cudaFree(at[i])) abort();
    }
    return from;
}

static void equal(void) {
    void *at;
    pthread_t threads[3];
    device(100), device(3 << 20);
    if (cudaMallocManaged(&at, 5 << 20, 1) || cudaMallocAsync(&at, 7 << 20, NULL) || cudaMallocHost(&at, 1 << 20))
        abort();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static void unseen(void) {
    void *library = dlopen("./libunseen.so", RTLD_NOW);
    int (*take)(size_t, int) = library ? (int (*)(size_t, int))dlsym(library, "take") : NULL;
    device(1 << 20);
    if (!take || take(2 << 20, 1) || take(3 << 20, 1) || take(4 << 20, 0)) abort();
}

enum { GRANULE = 2 << 20 };
static const struct properties on_device = {.type = 1, .location_type = 1};

static void *churn_physical(void *from) {
    for (int round = 0; round < 200; round++) {
        uint64_t at, memory;
        if (cuMemAddressReserve(&at, GRANULE, 0, 0, 0) || cuMemCreate(&memory, GRANULE, &on_device, 0) ||
            cuMemMap(at, GRANULE, 0, memory, 0) || cuMemRelease(memory) || cuMemUnmap(at, GRANULE) ||
            cuMemAddressFree(at, GRANULE))
            abort();
    }
    return from;
}

/* At the end, three of four pieces of physical memory live: the first has a handle, the second a handle and a mapping,
 * the third a mapping. The fourth has neither, and its handle is released once too often. Calls that fail change
 * nothing. */
static void physical(void) {
    uint64_t at, memory[4], again;
    pthread_t threads[3];
    device(100);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn_physical, NULL);
    if (cuMemAddressReserve(&at, 8 * GRANULE, 0, 0, 0)) abort();
    for (int i = 0; i < 4; i++)
        if (cuMemCreate(&memory[i], GRANULE * (size_t)(i + 1), &on_device, 0)) abort();
    for (int i = 1; i < 4; i++)
        if (cuMemMap(at + (uint64_t)i * GRANULE * (i == 3 ? 1 : 2) - GRANULE, GRANULE, 0, memory[i], 0)) abort();
    if (cuMemRetainAllocationHandle(&again, (void *)(at + GRANULE)) || again != memory[1]) abort();
    if (cuMemRelease(again) || cuMemRelease(memory[2]) || cuMemRelease(memory[3])) abort();
    if (cuMemUnmap(at + 2 * GRANULE, GRANULE)) abort(); /* the last hold on the fourth piece */
    if (!cuMemRelease(memory[3]) || !cuMemUnmap(at, 8 * GRANULE) || !cuMemAddressFree(at, 8 * GRANULE)) abort();
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

/* Three pools: one stays, one is destroyed empty, and one is destroyed while it has a live block. */
static void pools(void) {
    static const struct pool_properties on_device_0 = {.type = 1, .location_type = 1};
    uint64_t at;
    void *pool[3], *of_default;
    if (cudaFree(NULL)) abort(); /* a context */
    for (int i = 0; i < 3; i++)
        if (cuMemPoolCreate(&pool[i], &on_device_0)) abort();
    if (cuMemAllocFromPoolAsync(&at, 100, pool[0], NULL) || cuMemAllocFromPoolAsync(&at, 3 << 20, pool[0], NULL) ||
        cuMemAllocFromPoolAsync(&at, 1 << 20, pool[2], NULL) || cudaMallocAsync(&of_default, 5 << 20, NULL) ||
        cudaMallocAsync(&of_default, 7 << 20, NULL) || cudaFreeAsync(of_default, NULL))
        abort();
    if (cuMemPoolTrimTo(pool[0], 0) || cuMemPoolDestroy(pool[1]) || cuMemPoolDestroy(pool[2])) abort();
}

static void unseen_in_pool(void) {
    void *(*inner)(const char *) = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "sim_inner_entry");
    int (*allocate)(uint64_t *, size_t, void *) = inner("cuMemAllocAsync");
    uint64_t at;
    pools();
    if (allocate(&at, 2 << 20, NULL)) abort();
}

/* Takes physical memory on a route that the hooks do not see. */
static void unseen_physical(void) {
    void *(*inner)(const char *) = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "sim_inner_entry");
    __typeof__(&cuMemCreate) create = inner("cuMemCreate");
    __typeof__(&cuMemAddressReserve) reserve = inner("cuMemAddressReserve");
    uint64_t at, memory;
    device(100);
    if (create(&memory, 3 * GRANULE, &on_device, 0) || reserve(&at, 5 * GRANULE, 0, 0, 0) ||
        cuMemMap(at, 3 * GRANULE, 0, memory, 0))
        abort();
}

static void reset(void) {
    device(1 << 20), device(3 << 20);
    if (cudaDeviceReset()) abort();
    device(2 << 20);
}

/* The parent has no profiler. A profiler in the child, and the child's exit, do not concern the parent. */
static void forks(void) {
    device(1 << 20);
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    int (*flush)(uint32_t) = cupti ? (int (*)(uint32_t))dlsym(cupti, "cuptiActivityFlushAll") : NULL;
    if (!flush) abort();
    if (fork() == 0) flush(1), exit(0);
    wait(NULL);
    _exit(3);
}

/* A child calls memstow_cupti_begin at once. Then the parent is killed, before it could repair anything that the child
 * has written to the parent's ledger. */
static void child(void) {
    __typeof__(&memstow_cupti_begin) begin = dlsym(RTLD_DEFAULT, "memstow_cupti_begin");
    struct cupti_sections sections;
    int status;
    device(1 << 20);
    if (!begin) abort();
    if (fork() == 0) _exit(begin(CUPTI_SEAM, &sections) != 0);
    if (wait(&status) < 0 || status) abort();
    raise(SIGKILL);
}

/* Allocates and frees until CUDA has ended. */
static void *go_on(void *from) {
    void *at;
    while (!cudaMalloc(&at, 1 << 16)) cudaFree(at);
    for (;;) pause();
    return from;
}

static void others(void) {
    pthread_t thread;
    device(1 << 20);
    pthread_create(&thread, NULL, go_on, NULL);
    usleep(20000);
}

static void served(void) {
    __typeof__(&memstow_owner_open) owner_open = dlsym(RTLD_DEFAULT, "memstow_owner_open");
    __typeof__(&memstow_scope_enter) scope_enter = dlsym(RTLD_DEFAULT, "memstow_scope_enter");
    device(1 << 20);
    if (!owner_open || !scope_enter || scope_enter((uint32_t)owner_open(MEMSTOW_MODEL, "unet", "", 1, 0))) abort();
    device(8 << 20);
}

/* Records of the first half second are read in time; those of the last moment are not. */
static void killed_later(void) {
    device(1 << 20);
    sleep(2);
    device(2 << 20);
    raise(SIGKILL);
}

/* Lives as long as the program that started it wants. */
static void waits(void) {
    equal();
    puts("ready");
    fflush(stdout);
    getchar();
}

/* libmemstow_cupti.so keeps a ledger already. Then the program opens the library that LATE names. */
static void late(void) {
    device(1 << 20);
    if (!dlopen(getenv("LATE"), RTLD_NOW)) fputs(dlerror(), stderr), abort();
    device(2 << 20);
}

/* Opens a library whose constructor makes records. They are read while the constructor holds the loader's lock. */
static void loads(void) {
    alarm(20);
    device(1 << 20);
    if (!dlopen("./libresets.so", RTLD_NOW)) fputs(dlerror(), stderr), abort();
    device(3 << 20);
}

/* Only the child uses CUDA. */
static void in_child(void) {
    if (fork() == 0) {
        device(3 << 20);
        exit(0);
    }
    wait(NULL);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "equal") == 0) equal();
    if (strcmp(what, "unseen") == 0) unseen();
    if (strcmp(what, "pools") == 0) pools();
    if (strcmp(what, "unseen_in_pool") == 0) unseen_in_pool();
    if (strcmp(what, "physical") == 0) physical();
    if (strcmp(what, "unseen_physical") == 0) unseen_physical();
    if (strcmp(what, "reset") == 0) reset();
    if (strcmp(what, "forks") == 0) forks();
    if (strcmp(what, "child") == 0) child();
    if (strcmp(what, "others") == 0) others();
    if (strcmp(what, "served") == 0) served();
    if (strcmp(what, "killed_later") == 0) killed_later();
    if (strcmp(what, "waits") == 0) waits();
    if (strcmp(what, "late") == 0) late();
    if (strcmp(what, "in_child") == 0) in_child();
    if (strcmp(what, "loads") == 0) loads();
    if (strcmp(what, "quick") == 0) device(1 << 20), quick_exit(3);
    if (strcmp(what, "killed") == 0) device(1 << 20), _exit(3);
    if (strcmp(what, "none") != 0) puts("done");
    return 0;
}
