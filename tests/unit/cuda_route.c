// The tests check which entry point of CUDA a name means, both alone and in cuGetProcAddress, where a version and flags
// come with it. They also check which function a caller is bound to.
// build: -Wl,--wrap=cuda_scope_any
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/cuda/cuda_route.h"

Test(cuda_route, each_name_leads_to_its_entry) {
    for (int i = 0; i < CUDA_ENTRIES; i++) cr_assert_eq(cuda_route_named(cuda_entries[i].name), i);
    cr_assert_eq(cuda_route_named("cuInit"), -1);
    cr_assert_eq(cuda_route_named("cuda"), -1);
    cr_assert_eq(cuda_route_named(""), -1);
}

static pthread_barrier_t together;

static void *look_up_all(void *wrong) {
    pthread_barrier_wait(&together);
    for (int i = CUDA_ENTRIES; i-- > 0;)
        if (cuda_route_named(cuda_entries[i].name) != i) __atomic_fetch_add((int *)wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Runs in a process of its own, in which these look-ups are the first. */
static void be_first(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int wrong = 0;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, look_up_all, &wrong);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    _exit(wrong != 0);
}

/* If cuda_route_named does not find a name, dlsym returns the real function without a hook, and the program may call
 * this function from then on. So even the first look-ups must find all names, whichever thread makes them. */
Test(cuda_route, each_name_is_found_by_all_who_ask_first) {
    for (int i = 0; i < 1500; i++) {
        int status = 0;
        pid_t child = fork();
        if (!child) be_first();
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert_eq(status, 0, "process %d did not find all names", i);
    }
}

static void means(const char *base, int version, uint64_t flags, const char *name) {
    int entry = cuda_route_meant(base, version, flags);
    const char *found = entry < 0 ? "nothing" : cuda_entries[entry].name;
    cr_assert_str_eq(found, name, "%s of %d with %d is %s, not %s", base, version, (int)flags, found, name);
}

Test(cuda_route, versions_repeat_base_names) {
    means("cuMemAlloc", 2000, 0, "cuMemAlloc");
    means("cuMemAlloc", 3010, 0, "cuMemAlloc");
    means("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    means("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
    means("cuMemAlloc", 1000, 0, "nothing");
    means("cuMemAlloc_v2", 13000, 0, "nothing");
    means("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    means("cuGetProcAddress", 11080, 0, "cuGetProcAddress");
    means("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    means("cuGraphAddNode", 12020, 0, "cuGraphAddNode");
    means("cuGraphAddNode", 13040, 0, "cuGraphAddNode_v2");
    means("cudaMalloc", 13000, 0, "nothing");
}

Test(cuda_route, a_flag_asks_for_the_threads_own_default_stream) {
    means("cuMemAllocAsync", 11020, 0, "cuMemAllocAsync");
    means("cuMemAllocAsync", 13000, CUDA_FLAG_LEGACY_STREAM, "cuMemAllocAsync");
    means("cuMemAllocAsync", 13000, CUDA_FLAG_PER_THREAD_STREAM, "cuMemAllocAsync_ptsz");
    means("cuMemFree", 13000, CUDA_FLAG_PER_THREAD_STREAM, "cuMemFree_v2");
}

/* An entry's name agrees with the other columns of its line in the table: its suffix, its side, and its base name. */
Test(cuda_route, suffixes_say_what_the_table_says) {
    for (int i = 0; i < CUDA_ENTRIES; i++) {
        const struct cuda_entry *entry = &cuda_entries[i];
        const char *end = entry->name + strlen(entry->name);
        bool ptsz = end - entry->name > 5 && !strcmp(end - 5, "_ptsz");
        cr_assert_eq(ptsz, entry->per_thread, "%s", entry->name);
        cr_assert_eq(!strncmp(entry->name, "cuda", 4), entry->side == CUDA_RUNTIME, "%s", entry->name);
        cr_assert(!entry->base[0] || !strncmp(entry->name, entry->base, strlen(entry->base)), "%s", entry->name);
        cr_assert_eq(entry->base[0] != 0, entry->side == CUDA_DRIVER, "%s", entry->name);
    }
}

Test(cuda_route, what_may_be_memory_and_is_not_known_is_told_apart) {
    cr_assert(cuda_route_is_unknown_memory("cuMemConjure"));
    cr_assert(cuda_route_is_unknown_memory("cuArrayConjure"));
    cr_assert(cuda_route_is_unknown_memory("cuStreamBeginCaptureToOrb"));
    cr_assert(cuda_route_is_unknown_memory("cuMulticastBindOrb"));
    cr_assert(cuda_route_is_unknown_memory("cuIpcOpenOrb"));
    cr_assert(cuda_route_is_unknown_memory("cuGraphAddNode_v9"));
    cr_assert(cuda_route_is_unknown_memory("cuMemGetOrb"), "no newer name is taken for a harmless one");
    cr_assert(cuda_route_is_unknown_memory("cuMemSetAccessOfOrbs"));
    cr_assert(cuda_route_is_unknown_memory("cuMemBatchConjureAsync"));
    cr_assert(cuda_route_is_unknown_memory("cuMemMapArrayAsync_v2x"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemMapArrayAsync_ptsz"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemPrefetchAsync_v2_ptsz"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemHostGetDevicePointer_v2"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemcpyAsync_ptsz"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemsetD8_v2_ptds"));
    cr_assert_not(cuda_route_is_unknown_memory("cuIpcOpenEventHandle"));
    cr_assert_not(cuda_route_is_unknown_memory("cuStreamSynchronize"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemcpyDtoH"));
    cr_assert_not(cuda_route_is_unknown_memory("cuArray3DGetDescriptor"));
    cr_assert_not(cuda_route_is_unknown_memory("cuMemGetAddressRange"));
    cr_assert_not(cuda_route_is_unknown_memory("cuLaunchKernel"));
}

static int one, two, three;
static void *const one_entry[CUDA_ENTRIES][CUDA_SLOTS] = {[CUDA_ENTRY_cudaMalloc] = {&one, &two, &three}};

/* memstow gives no hooks to functions of the object that contains memstow's code. In a unit test this object is the
 * test program, so the functions that get hooks here are libc's. */
Test(cuda_route, each_address_gets_a_hook_of_its_own_until_there_are_no_more) {
    cuda_route_begin(one_entry);
    void *a = (void *)strlen, *b = (void *)abort, *c = (void *)exit;
    cr_assert_eq(cuda_route_hook(CUDA_ENTRY_cudaMalloc, a), &two);
    cr_assert_eq(cuda_route_hook(CUDA_ENTRY_cudaMalloc, a), &two);
    cr_assert_eq(cuda_route_hook(CUDA_ENTRY_cudaMalloc, b), &three);
    cr_assert_eq(cuda_route_hook(CUDA_ENTRY_cudaMalloc, c), c, "passed on as it is");
    cr_assert_eq(cuda_route_real(CUDA_ENTRY_cudaMalloc, 1, 0), a);
    cr_assert_eq(cuda_route_without_hook(&three), b);
    cr_assert_null(cuda_route_real(CUDA_ENTRY_cudaMalloc, 0, 0), "no library has it");
}

static uint32_t looks;

void *__real_cuda_scope_any(const char *name, uint32_t *count);
void *__wrap_cuda_scope_any(const char *name, uint32_t *count);
void *__wrap_cuda_scope_any(const char *name, uint32_t *count) {
    looks++;
    return __real_cuda_scope_any(name, count);
}

static void bind_all(const char *name, uint32_t callers, const void *to) {
    for (uint32_t i = 0; i < callers; i++)
        cr_assert_eq(cuda_route_bound(name, 0x1000 + i * (uintptr_t)4096), to, "caller %d", (int)i);
}

/* A look-up goes through all loaded libraries, so it is not repeated for a caller that has been bound. */
Test(cuda_route, each_caller_is_bound_once) {
    enum { CALLERS = 3000 };
    static const char name[] = "strlen", other[] = "memcpy";
    const void *to = cuda_route_bound(name, 0), *to_other = cuda_route_bound(other, 0);
    cr_assert(to && to_other);
    bind_all(name, CALLERS, to);
    bind_all(other, CALLERS, to_other);
    looks = 0;
    bind_all(name, CALLERS, to);
    bind_all(other, CALLERS, to_other);
    cr_assert_eq(looks, 0, "%d looks for callers that had been bound", (int)looks);
}
