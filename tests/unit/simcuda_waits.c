// What a move or a free of device memory waits for: running work, streams, and captures. Neither a move nor a free
// breaks a capture. The driver is the simulated CUDA driver, a test double.
#include "moving_proof.h"

#include <inttypes.h>
#include <unistd.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/vram/vram_end.h"

/* Another thread begins to capture a stream just after memstow has found that no stream is being captured. */
static bool capture_at_wait;
static pthread_t capturer;
static CUresult capture_went;
static uint64_t capture_began_ns; /* atomic; 0: not yet */
static pthread_barrier_t capture_may_end;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *begin_and_end_capture(void *unused) {
    CUstream stream;
    CUgraph graph;
    cuCtxSetCurrent(proof_context);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    uint64_t listed = cuda_captures_begin((cuda_handle)stream, &(struct cuda_target){0});
    cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL);
    __atomic_store_n(&capture_began_ns, now_ns(), __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&capture_may_end);
    capture_went = cuStreamEndCapture(stream, &graph);
    cuda_captures_ended(listed);
    return unused;
}

static CUresult synchronise_late(void) {
    if (capture_at_wait) {
        capture_at_wait = false;
        pthread_create(&capturer, NULL, begin_and_end_capture, NULL);
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    return cuCtxSynchronize();
}

static void *function(const char *name) {
    return strcmp(name, "cuCtxSynchronize") ? moving_function(name) : (void *)synchronise_late;
}

static void begin(void) { moving_begin(function); }
TestSuite(simcuda_waits, .init = begin);

Test(simcuda_waits, what_is_running_is_waited_for) {
    uint64_t moved, at = served(4 * MIB, 1);
    CUstream stream;
    CUcontext other;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    vram_contexts_note((cuda_handle)other);
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(at, 77, MIB, stream)); /* from another context */
    OK(cuCtxSetCurrent(proof_context));
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    sim_set_latency_us(0);
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_DONE);
    uint32_t word;
    OK(cuMemcpyDtoH_v2(&word, at + 4 * MIB - 4, 4));
    cr_assert_eq(word, 77);
    cr_assert_eq(proof_usage(0).faults, 0);
}

Test(simcuda_waits, a_kernel_that_does_not_end) {
    uint64_t moved, at = served(4 * MIB, 1);
    struct vram_move_options options = ANY;
    fill(at, 4 * MIB, 3);
    options.milliseconds = 30;
    OK(proof_launch("sim_wait", NULL, 0, 0, 0));
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_BUSY);
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_BUSY);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    options.milliseconds = 5000;
    for (int i = 0; i < 100 && out(options, &moved) == VRAM_REFUSAL_BUSY; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL); /* until the waiting thread has come back */
    cr_assert_eq(moved, 4 * MIB);
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(holds(at, 4 * MIB, 3));
}

/* Memory that the driver does not take back does not count as memory that a request can now have. */
Test(simcuda_waits, what_the_driver_keeps_has_not_ended) {
    int result;
    uint64_t at = served(2 * MIB, 1);
    sim_count_reset();
    sim_fail("cuMemAddressFree", 1, 719, 1000);
    cr_assert(vram_memory_free(at, &result) && !result);
    cr_assert(vram_sums(0, UINT32_MAX).wrecks == 1 && !vram_memory_wait_freed());
    sim_fail(NULL, 0, 0, 0);
    cr_assert(vram_memory_wait_freed() && !vram_sums(0, UINT32_MAX).wrecks);
}

/* Each request looks at a few freed blocks only. In time all have their turn. */
Test(simcuda_waits, many_freed_blocks_do_not_delay_a_request) {
    enum { FREED = 40, STREAMS = 10, FEW = 8 };
    uint64_t at[FREED], other;
    CUstream streams[STREAMS];
    int result;
    for (int i = 0; i < FREED; i++) at[i] = served_in_stream(2 * MIB, 1);
    for (int i = 0; i < STREAMS; i++) {
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        OK(proof_launch("sim_wait", streams[i], 0, 0, 0));
    }
    for (int i = 0; i < FREED; i++)
        cr_assert(vram_memory_free_in(at[i], (cuda_handle)streams[i % STREAMS], &result) && !result);
    sim_count_reset();
    other = served(2 * MIB, 1);
    cr_assert(sim_count("cuEventQuery") && sim_count("cuEventQuery") <= FEW);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    cr_assert(vram_memory_free(other, &result) && !result);
    vram_memory_free(served(2 * MIB, 1), &result);
    cr_assert(!proof_usage(0).reserved_va, "all of them have ended");
}

/* ---- captures */

/* Another thread's capture in global mode forbids calls that a free needs. The capture must go on undisturbed. */
static CUstream capturing;
static CUresult captured;

static void *capture(void *unused) {
    CUgraph graph;
    cuCtxSetCurrent(proof_context);
    cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING);
    cuStreamBeginCapture_v2(capturing, CU_CAPTURE_GLOBAL);
    pthread_barrier_wait(unused);
    pthread_barrier_wait(unused);
    captured = cuStreamEndCapture(capturing, &graph);
    return NULL;
}

Test(simcuda_waits, a_free_breaks_no_capture) {
    uint64_t before = proof_usage(0).used, plain = served(4 * MIB, 1), pooled = served_in_stream(4 * MIB, 1);
    uint64_t at_once = served_in_stream(4 * MIB, 1);
    pthread_barrier_t barrier;
    pthread_t thread;
    CUstream stream;
    int result;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, capture, &barrier);
    pthread_barrier_wait(&barrier);
    uint64_t listed = cuda_captures_begin((cuda_handle)capturing, &(struct cuda_target){0});
    cr_assert(vram_memory_free(plain, &result) && !result);
    cr_assert(vram_memory_free(at_once, &result) && !result);
    cr_assert(vram_memory_free_in(pooled, (cuda_handle)stream, &result) && !result);
    cr_assert(proof_settled());
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "cuMemFree's wait would break it");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    OK(captured);
    cuda_captures_ended(listed);
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).used, before);
}

/* Ends the capture that began during a wait, and asserts that the wait did not break it. */
static void capture_is_whole(void) {
    pthread_barrier_wait(&capture_may_end);
    pthread_join(capturer, NULL);
    OK(capture_went);
}

Test(simcuda_waits, a_capture_that_begins_at_a_wait_is_not_broken) {
    uint64_t moved, at = served(4 * MIB, 1), plain = served(4 * MIB, 2), late;
    struct vram_move_options options = ANY;
    int result;
    options.owner = 1;
    fill(at, 4 * MIB, 3);
    pthread_barrier_init(&capture_may_end, NULL, 2);
    capture_at_wait = true;
    out(options, &moved); /* may be refused, if the capture began before the first copy */
    capture_is_whole();
    capture_at_wait = true;
    cr_assert(vram_memory_free(plain, &result) && !result);
    capture_is_whole();
    OK(serve(4 * MIB, 1, &late));
    uint64_t listed = cuda_captures_begin((cuda_handle)1, &(struct cuda_target){0});
    cr_assert(vram_memory_free(late, &result) && !result);
    cuda_captures_ended(listed);
    capture_at_wait = true;
    vram_memory_reap(); /* memory that was freed meanwhile is waited for now */
    cr_assert_not(capture_at_wait);
    capture_is_whole();
    in(options, &moved);
    cr_assert(holds(at, 4 * MIB, 3));
}

/* Once the driver has destroyed a stream, a new stream may get the same handle before memstow's list knows that the
 * first has ended. */
Test(simcuda_waits, what_ends_is_not_the_next_of_its_name) {
    struct cuda_target place = {.context = (cuda_handle)5};
    cuda_handle stream = (cuda_handle)7;
    uint64_t first = cuda_captures_begin(stream, &place);
    cuda_captures_began(first, 100);
    cr_assert(cuda_captures_of_stream(stream) == first && cuda_captures_of_context(place.context) == first);
    cuda_captures_leave(first, true);
    cr_assert_eq(cuda_captures_find(stream), 0);
    cuda_captures_leave(first, false);
    cr_assert_eq(cuda_captures_find(stream), 100);
    cuda_captures_leave(first, true);
    uint64_t second = cuda_captures_begin(stream, &place);
    cr_assert_eq(cuda_captures_of_context(place.context), 0, "it has not begun");
    cuda_captures_began(second, 0);
    uint32_t number = cuda_captures_find(stream);
    cr_assert(number && number != 100, "the driver did not say");
    cuda_captures_ended(first);
    cr_assert(cuda_captures_any() && cuda_captures_find(stream) == number);
    cr_assert_eq(cuda_captures_of_context(place.context), second);
    cuda_captures_ended(second);
    cr_assert_not(cuda_captures_any());
}

/* A kernel that does not end must not block captures: the first capture waits for a while, later ones do not wait. */
Test(simcuda_waits, a_capture_does_not_wait_for_long) {
    uint64_t moved, before = now_ns();
    struct vram_move_options options = ANY;
    served(4 * MIB, 1);
    OK(proof_launch("sim_wait", NULL, 0, 0, 0));
    options.milliseconds = 30;
    pthread_barrier_init(&capture_may_end, NULL, 2);
    capture_at_wait = true;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_BUSY);
    while (!__atomic_load_n(&capture_began_ns, __ATOMIC_SEQ_CST)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    cr_assert_gt(capture_began_ns, before + 900000000u, "it waits for a while");
    capture_is_whole();
    before = now_ns();
    uint64_t listed = cuda_captures_begin((cuda_handle)1, &(struct cuda_target){0});
    cuda_captures_ended(listed);
    cr_assert_lt(now_ns(), before + 900000000u, "not for what the one before it has waited for");
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
}

/* ---- frees */

Test(simcuda_waits, freed_in_the_order_of_a_stream) {
    uint64_t before = proof_usage(0).used, at = served(4 * MIB, 1), moved;
    CUstream stream;
    int result;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(proof_launch("sim_wait", stream, 0, 0, 0));
    OK(cuMemsetD32Async(at, 1, 1, stream));
    cr_assert(vram_memory_free_in(at, stream, &result) && !result);
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "work that was begun still finds it");
    cr_assert_not(vram_memory_free_in(at, stream, &result), "only once");
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_EMPTY);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    served(2 * MIB, 1); /* a request gives back what was freed before */
    cr_assert_eq(proof_usage(0).used, before + 2 * MIB);
    cr_assert_eq(proof_usage(0).faults, 0);
}

Test(simcuda_waits, freed_while_stowed) {
    uint64_t before = proof_usage(0).used, at = served(4 * MIB, 1), other = served(4 * MIB, 1), moved;
    int result;
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert(vram_memory_free(at, &result) && vram_memory_free_in(other, NULL, &result));
    cr_assert_eq(vram_sums(0, UINT32_MAX).backup, 0);
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_EMPTY);
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert_eq(proof_usage(0).reserved_va, 0);
}

/* cuMemFree of plain memory waits for the work that uses it, whichever context the thread is in. cuMemFree of a pool's
 * memory does not. */
Test(simcuda_waits, plain_memory_is_freed_when_nothing_uses_it) {
    CUcontext other;
    uint64_t at = served(4 * MIB, 1), pooled = served_in_stream(4 * MIB, 1);
    int result;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxSetCurrent(proof_context));
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(at, 77, MIB, NULL));
    cr_assert(vram_memory_free(pooled, &result) && !result);
    cr_assert_eq(proof_usage(0).pending, 1);
    OK(cuCtxSetCurrent(other));
    cr_assert(vram_memory_free(at, &result) && !result);
    cr_assert_eq(proof_usage(0).pending, 0);
    cr_assert_eq(proof_usage(0).faults, 0);
}

/* A thread frees blocks in a stream of a context that is not current on the thread. The stream's context may end before
 * memstow has looked at the work on the stream. */
Test(simcuda_waits, freed_in_a_stream_of_another_context) {
    uint64_t before = proof_usage(0).used, context, at = served_in_stream(4 * MIB, 1);
    uint64_t later = served_in_stream(4 * MIB, 1);
    CUcontext other;
    CUstream stream;
    int result;
    OK(cuCtxCreate_v2(&other, 0, 0));
    context = proof_usage(0).contexts;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(proof_context));
    cr_assert(vram_memory_free_in(at, (cuda_handle)stream, &result));
    cr_assert_eq(result, 0);
    cr_assert(proof_settled());
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).used, before + context / 2 + 4 * MIB);
    cr_assert(vram_memory_free_in(later, (cuda_handle)stream, &result) && !result);
    uint64_t end = vram_contexts_end_begins();
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(proof_context));
    vram_contexts_ended((cuda_handle)other, NULL, end);
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert(!vram_sums(0, UINT32_MAX).wrecks);
}

Test(simcuda_waits, memory_that_was_freed_is_waited_for) {
    uint64_t at = served_in_stream(4 * MIB, 1);
    int result;
    cr_assert_not(vram_memory_wait_freed(), "nothing is to come");
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    cr_assert(vram_memory_free_in(at, NULL, &result) && !result);
    cr_assert_eq(vram_sums(0, UINT32_MAX).wrecks, 0);
    cr_assert(vram_memory_wait_freed());
    cr_assert(!proof_usage(0).blocks && !proof_usage(0).faults);
}

enum { IN_EACH = 20 };

/* Blocks are freed in two streams, one of which makes no progress. */
static void free_in_both(CUstream stuck, CUstream free) {
    uint64_t at[2 * IN_EACH];
    int result;
    for (int i = 0; i < 2 * IN_EACH; i++) at[i] = served_in_stream(2 * MIB, 1);
    for (int i = 0; i < 2 * IN_EACH; i++)
        cr_assert(vram_memory_free_in(at[i], (cuda_handle)(i % 2 ? stuck : free), &result) && !result);
}

Test(simcuda_waits, a_stream_that_does_not_get_on_is_asked_a_few_times) {
    CUstream stuck, free;
    OK(cuStreamCreate(&stuck, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
    OK(proof_launch("sim_wait", stuck, 0, 0, 0));
    free_in_both(stuck, free);
    OK(cuStreamSynchronize(free));
    cr_assert_eq(vram_sums(0, UINT32_MAX).blocks, 0);
    sim_count_reset();
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).blocks, IN_EACH, "the other stream's memory is free: %" PRIu64, proof_usage(0).blocks);
    cr_assert_leq(sim_count("cuEventQuery"), IN_EACH + IN_EACH / 2, "%" PRIu64 " queries", sim_count("cuEventQuery"));
    sim_release_kernels(1);
    OK(cuStreamSynchronize(stuck));
    vram_memory_reap();
    cr_assert(!proof_usage(0).blocks && !proof_usage(0).faults);
}

/* A search must find the freed blocks whose work is done, even if the queue has blocks in front of them that were freed
 * later and whose work is not done. The queue gets this order when an earlier search gives up: it has moved the blocks
 * that it has looked at to the end. */
Test(simcuda_waits, what_was_freed_before_is_not_skipped) {
    uint64_t at[IN_EACH];
    CUstream stream;
    int result;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < IN_EACH; i++) at[i] = served_in_stream(2 * MIB, 1);
    sim_hold(1);
    for (int i = 0; i < IN_EACH; i++) {
        if (i == IN_EACH / 2) OK(proof_launch("sim_wait", stream, 0, 0, 0));
        cr_assert(vram_memory_free_in(at[i], (cuda_handle)stream, &result) && !result);
    }
    vram_end_some(&vram_driver); /* turns the queue */
    sim_hold(-1);
    while (proof_usage(0).pending > 1 + IN_EACH / 2) usleep(1000); /* the kernel, and what was freed after it */
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).blocks, IN_EACH / 2, "%" PRIu64 " blocks", proof_usage(0).blocks);
    sim_release_kernels(1);
    OK(cuStreamSynchronize(stream));
    vram_memory_reap();
    cr_assert(!proof_usage(0).blocks);
}
