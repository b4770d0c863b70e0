// The simulated CUDA driver, a test double: it does not live on in a forked child, nor after the end of the process.
// The answers of its resolvers are tested, too.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proof.h"

static int status_of(pid_t child) {
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

Test(simcuda_process, after_fork) {
    CUdeviceptr at;
    proof_begin();
    OK(cuMemAlloc_v2(&at, MIB));
    pid_t child = fork();
    if (!child) _exit(cuMemFree_v2(at) * 16 + cuInit(0));
    cr_assert_eq(status_of(child), CUDA_ERROR_NOT_INITIALIZED * 16 + CUDA_ERROR_NOT_INITIALIZED);
    OK(cuMemFree_v2(at));
}

static CUdeviceptr leftover;

/* This function is registered before the driver's own end, so it runs after the driver's end. */
static void late(void) { _exit(cuMemFree_v2(leftover)); }

Test(simcuda_process, after_exit) {
    pid_t child = fork();
    if (!child) {
        atexit(late);
        proof_begin();
        OK(cuMemAlloc_v2(&leftover, MIB));
        exit(0);
    }
    cr_assert_eq(status_of(child), CUDA_ERROR_DEINITIALIZED);
}

static void *without_context(void *result) {
    CUdeviceptr at;
    *(CUresult *)result = cuMemAlloc_v2(&at, 100);
    return NULL;
}

Test(simcuda_process, a_thread_without_context) {
    pthread_t thread;
    CUresult result;
    proof_begin();
    pthread_create(&thread, NULL, without_context, &result);
    pthread_join(thread, NULL);
    cr_assert_eq(result, CUDA_ERROR_INVALID_CONTEXT);
}

Test(simcuda_process, before_init) {
    CUdeviceptr at;
    int count;
    REFUSED(cuMemAlloc_v2(&at, 100), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

Test(simcuda_process, no_device) {
    setenv("SIMCUDA_DEVICES", "0", 1);
    REFUSED(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

/* ---- resolvers */

static void *found(const char *name, int version, uint64_t flags, int expected) {
    void *address = (void *)1;
    int status = -1;
    OK(cuGetProcAddress_v2(name, &address, version, flags, &status));
    cr_assert_eq(status, expected, "%s at %d: %d", name, version, status);
    return address;
}

Test(simcuda_resolver, versions_and_streams) {
    void *old = found("cuMemAlloc", 2000, 0, CU_PROC_FOUND), *young = found("cuMemAlloc", 12000, 0, CU_PROC_FOUND);
    cr_assert_neq(old, young, "the 32-bit one and the 64-bit one");
    cr_assert_eq(found("cuMemAlloc", 3020, 0, CU_PROC_FOUND), young);
    cr_assert_neq(young, (void *)cuMemAlloc_v2, "not the exported symbol");
    void *legacy = found("cuMemAllocAsync", 12000, CU_GET_PROC_LEGACY, CU_PROC_FOUND);
    void *own = found("cuMemAllocAsync", 12000, CU_GET_PROC_PER_THREAD, CU_PROC_FOUND);
    cr_assert_neq(legacy, own);
    cr_assert_eq(found("cuMemAllocAsync", 12000, 0, CU_PROC_FOUND), legacy);
    cr_assert_eq(found("cuMemAlloc", 12000, CU_GET_PROC_PER_THREAD, CU_PROC_FOUND), young, "has no stream");
    cr_assert_null(found("cuMemAllocAsync", 11000, 0, CU_PROC_VERSION_NOT_SUFFICIENT));
    cr_assert_null(found("cuMemAllocAsync_ptsz", 12000, 0, CU_PROC_NOT_FOUND));
    cr_assert_null(found("cuNoSuchThing", 12000, 0, CU_PROC_NOT_FOUND));
    void *address;
    REFUSED(cuGetProcAddress_v2("cuMemAlloc", &address, 99000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGetProcAddress("cuNoSuchThing", &address, 12000, 0), CUDA_ERROR_NOT_FOUND);
    address = &address;
    OK(cuGetProcAddress_v2("cuNoSuchThing", &address, 12000, 0, NULL)); /* cuda.h: success, and NULL */
    cr_assert_null(address);
}

Test(simcuda_resolver, both_generations) {
    CUresult (*four)(const char *, void **, int, uint64_t);
    CUresult (*five)(const char *, void **, int, uint64_t, int *);
    void *one, *two;
    int status;
    *(void **)&four = found("cuGetProcAddress", 11030, 0, CU_PROC_FOUND);
    *(void **)&five = found("cuGetProcAddress", 12000, 0, CU_PROC_FOUND);
    cr_assert_neq((void *)four, (void *)five);
    OK(four("cuMemCreate", &one, 12000, 0));
    OK(five("cuMemCreate", &two, 12000, 0, &status));
    cr_assert_eq(one, two);
}

Test(simcuda_resolver, an_old_driver) {
    setenv("SIMCUDA_VERSION", "11080", 1);
    proof_begin();
    cr_assert_null(found("cuCtxGetId", 11080, 0, CU_PROC_NOT_FOUND));
    REFUSED(cuGetProcAddress_v2("cuMemAlloc", (void *[]){NULL}, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

#define E(name, symbol, since, per_thread) {#name, #symbol, since, per_thread},
static const struct {
    const char *name, *symbol;
    int since, per_thread;
} ENTRIES[] = {
#include "entries.def"
};

Test(simcuda_resolver, every_entry_is_found) {
    setenv("SIMCUDA_VERSION", "99000", 1); /* newer than any of them */
    proof_begin();
    for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++)
        cr_assert(
            found(ENTRIES[i].name, ENTRIES[i].since, ENTRIES[i].per_thread ? CU_GET_PROC_PER_THREAD : 0, CU_PROC_FOUND),
            "%s", ENTRIES[i].symbol);
}
