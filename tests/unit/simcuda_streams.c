// The simulated CUDA driver, a test double: streams and events, copies (which read pinned memory only when they are
// executed), and functions of the program that run on streams.
#include <pthread.h>

#include "proof.h"

TestSuite(simcuda_streams, .init = proof_begin);

static uint32_t word_at(CUdeviceptr at) {
    uint32_t word;
    cr_assert_eq(sim_peek(&word, at, 4), 0);
    return word;
}

Test(simcuda_streams, nothing_is_executed_before_its_time) {
    CUdeviceptr at;
    CUevent event;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(cuMemsetD32_v2(at, 1, 1));
    OK(cuCtxSynchronize());
    OK(cuEventCreate(&event, 0));
    sim_hold(1);
    OK(cuMemsetD32Async(at, 2, 1, NULL));
    OK(cuEventRecord(event, NULL));
    REFUSED(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    REFUSED(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    cr_assert_eq(word_at(at), 1);
    sim_hold(-1);
    OK(cuEventSynchronize(event));
    cr_assert_eq(word_at(at), 2);
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamQuery(NULL));
}

Test(simcuda_streams, pinned_memory_is_read_late_and_pageable_memory_at_once) {
    CUdeviceptr at;
    uint32_t *pinned, pageable = 10;
    CUstream stream;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    *pinned = 10;
    sim_hold(1);
    OK(cuMemcpyHtoDAsync_v2(at, pinned, 4, stream));
    OK(cuMemcpyHtoDAsync_v2(at + 4, &pageable, 4, stream));
    *pinned = pageable = 11;
    sim_hold(-1);
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(word_at(at), 11);
    cr_assert_eq(word_at(at + 4), 10);
}

/* Whether `other` finishes its work within this many milliseconds while a kernel still runs on `busy`. */
static bool goes_beside(CUstream busy, CUstream other, CUdeviceptr at, int most_ms) {
    sim_release_kernels(0);
    OK(cuMemsetD32Async(at, 1, 1, other));
    OK(cuCtxSynchronize());
    OK(proof_launch("sim_wait", busy, 0, 0, 0));
    OK(cuMemsetD32Async(at, 2, 1, other));
    for (int ms = 0; ms < most_ms && word_at(at) != 2; ms++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    bool done = word_at(at) == 2;
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    cr_assert_eq(word_at(at), 2);
    return done;
}

Test(simcuda_streams, who_waits_for_whom) {
    enum { SOON = 20, AT_LAST = 30000 }; /* on a busy machine it may take long for work to begin */
    CUdeviceptr at;
    CUstream blocking, another, free_one;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&another, 0));
    OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
    cr_assert_not(goes_beside(blocking, blocking, at, SOON), "a stream is in order");
    cr_assert(goes_beside(blocking, another, at, AT_LAST), "streams do not wait for each other");
    cr_assert_not(goes_beside(blocking, NULL, at, SOON), "the legacy stream waits for blocking ones");
    cr_assert_not(goes_beside(NULL, blocking, at, SOON), "and they for it");
    cr_assert(goes_beside(NULL, free_one, at, AT_LAST));
    cr_assert(goes_beside(free_one, NULL, at, AT_LAST));
    cr_assert_not(goes_beside(CU_STREAM_PER_THREAD, NULL, at, SOON), "a thread's own stream is a blocking one");
    cr_assert(goes_beside(CU_STREAM_PER_THREAD, blocking, at, AT_LAST));
}

static void *in_thread(void *at) {
    cuCtxSetCurrent(proof_context);
    cuMemsetD32Async_ptsz((CUdeviceptr)(uintptr_t)at, 2, 1, NULL);
    cuStreamSynchronize(CU_STREAM_PER_THREAD);
    return NULL;
}

Test(simcuda_streams, each_thread_has_its_own) {
    CUdeviceptr at;
    pthread_t thread;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(proof_launch("sim_wait", CU_STREAM_PER_THREAD, 0, 0, 0));
    pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)at);
    pthread_join(thread, NULL);
    cr_assert_eq(word_at(at), 2);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
}

Test(simcuda_streams, events_order_streams) {
    CUdeviceptr at;
    CUstream first, second;
    CUevent event;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(proof_launch("sim_wait", first, 0, 0, 0));
    OK(cuMemsetD32Async(at, 1, 1, first));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(cuMemsetD32Async(at, 2, 1, second));
    sim_release_kernels(1);
    OK(cuStreamSynchronize(second));
    cr_assert_eq(word_at(at), 2);
    OK(cuEventQuery(event));
}

Test(simcuda_streams, synchronising_one_context_leaves_others_alone) {
    CUcontext other;
    CUstream stream;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(proof_launch("sim_wait", stream, 0, 0, 0));
    OK(cuCtxSetCurrent(proof_context));
    OK(cuCtxSynchronize());
    cr_assert_eq(proof_usage(0).pending, 1);
    sim_release_kernels(1);
    OK(cuCtxSetCurrent(other));
    OK(cuCtxSynchronize());
    cr_assert_eq(proof_usage(0).pending, 0);
}

static CUresult in_function[3];

static void function(void *data) {
    CUdeviceptr at;
    int count;
    in_function[0] = cuMemAlloc_v2(&at, 100);
    in_function[1] = cuStreamSynchronize(NULL);
    in_function[2] = cuDeviceGetCount(&count);
    *(int *)data = 1;
}

Test(simcuda_streams, functions_of_the_program_may_not_call) {
    int called = 0;
    OK(cuLaunchHostFunc(NULL, function, &called));
    OK(cuStreamSynchronize(NULL));
    cr_assert_eq(called, 1);
    for (int i = 0; i < 3; i++) cr_assert_eq(in_function[i], CUDA_ERROR_NOT_PERMITTED);
}

Test(simcuda_streams, latency) {
    struct timespec before, after;
    CUdeviceptr at;
    OK(cuMemAlloc_v2(&at, MIB));
    sim_set_latency_us(5000);
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < 4; i++) OK(cuMemsetD32Async(at, 1, 1, NULL));
    OK(cuCtxSynchronize());
    clock_gettime(CLOCK_MONOTONIC, &after);
    double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
    cr_assert(ms >= 20, "four operations of 5 ms took %g ms", ms);
}

Test(simcuda_streams, a_stream_that_is_gone) {
    CUstream stream;
    CUdeviceptr at;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemsetD32Async(at, 3, 1, stream));
    OK(cuStreamDestroy_v2(stream));
    cr_assert_eq(word_at(at), 3, "what was on it is executed");
    REFUSED(cuMemsetD32Async(at, 3, 1, stream), CUDA_ERROR_INVALID_HANDLE);
}
