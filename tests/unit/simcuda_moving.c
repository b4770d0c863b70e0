// Device memory that memstow serves, over the simulated CUDA driver (a test double): out to the host and back at the
// same addresses, with an error injected at each call in turn; which calls a move takes; what is refused.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda_captures.h"
#include "proof.h"
#include "stow_cuda.h"

/* Somebody writes to what is being moved, between the copy and the comparison. */
static int spoil_at;

/* Somebody wants to assign what is being moved. */
static pthread_t assigner;
static uint64_t wanted_by_assigner;
static bool held_by_assigner;
static int assigner_is_through; /* atomic */

static void *hold_it(void *unused) {
    struct vram_block *block;
    held_by_assigner = stow_cuda_hold(wanted_by_assigner, &block);
    if (held_by_assigner) stow_cuda_let_go(block);
    __atomic_store_n(&assigner_is_through, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void begin_to_assign(void) {
    if (!wanted_by_assigner || assigner) return;
    pthread_create(&assigner, NULL, hold_it, NULL);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    cr_assert_not(__atomic_load_n(&assigner_is_through, __ATOMIC_SEQ_CST), "it waits for the move");
}

static CUresult copy_and_spoil(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    begin_to_assign();
    if (spoil_at && !--spoil_at) cr_assert_eq(sim_poke(from, "x", 1), 0);
    return cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
}

/* Somebody begins to capture a stream, as a hook would, when memstow has just found that nobody does. */
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
    cuda_captures_begin((cuda_handle)stream, &(struct cuda_place){0});
    cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL);
    __atomic_store_n(&capture_began_ns, now_ns(), __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&capture_may_end);
    capture_went = cuStreamEndCapture(stream, &graph);
    cuda_captures_end((cuda_handle)stream);
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
    if (!strcmp(name, "cuMemcpyDtoHAsync_v2")) return (void *)copy_and_spoil;
    if (!strcmp(name, "cuCtxSynchronize")) return (void *)synchronise_late;
#define F(function_name, parameters)                                                                                   \
    if (!strcmp(name, #function_name)) return (void *)function_name;
    VRAM_FUNCTIONS(F)
#undef F
    return NULL;
}

static void begin(void) {
    proof_begin();
    cr_assert(stow_cuda_begin(function));
}
TestSuite(simcuda_moving, .init = begin);

static const struct stow_cuda_options ANY = {.milliseconds = 2000, .verify = true};

static int serve(uint64_t bytes, uint32_t owner, uint64_t *at) {
    struct stow_cuda_request request = {.bytes = bytes, .owner = owner, .context = (cuda_handle)proof_context};
    return stow_cuda_serve(&request, at);
}

static uint64_t served(uint64_t bytes, uint32_t owner) {
    uint64_t at;
    OK(serve(bytes, owner, &at));
    return at;
}

static enum stow_cuda_refusal out(struct stow_cuda_options options, uint64_t *moved) {
    enum stow_cuda_refusal refusal;
    int error;
    *moved = stow_cuda_out(&options, &refusal, &error);
    return refusal;
}

static enum stow_cuda_refusal in(struct stow_cuda_options options, uint64_t *moved) {
    enum stow_cuda_refusal refusal;
    int error;
    *moved = stow_cuda_in(&options, &refusal, &error);
    return refusal;
}

/* What a block holds is told by its seed: where in the noise it begins. */
enum { MOST = 40 << 20, SEEDS = 1 << 18, NOISE = MOST / 4 + SEEDS };
static uint32_t noise[NOISE];
static __thread uint32_t *words; /* as much as the largest */

static void make_noise(void) {
    for (uint32_t i = 0; i < NOISE; i++) noise[i] = i * 2654435761u ^ i >> 3;
}

static const uint32_t *wanted(uint32_t seed) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_noise);
    if (!words) words = malloc(MOST);
    return noise + seed % SEEDS;
}

static void fill(uint64_t at, uint64_t bytes, uint32_t seed) {
    const uint32_t *from = wanted(seed);
    while (cuMemcpyHtoD_v2(at, from, bytes)) continue;
}

static bool holds(uint64_t at, uint64_t bytes, uint32_t seed) {
    const uint32_t *like = wanted(seed);
    while (cuMemcpyDtoH_v2(words, at, bytes)) continue;
    return !memcmp(words, like, bytes);
}

static uint64_t served_in_stream(uint64_t bytes, uint32_t owner) {
    struct stow_cuda_request request = {
        .bytes = bytes, .owner = owner, .context = (cuda_handle)proof_context, .in_stream = true};
    uint64_t at;
    OK(stow_cuda_serve(&request, &at));
    return at;
}

static bool is_live(uint64_t at) {
    struct stow_cuda_found block;
    return stow_cuda_find(at, &block) && block.state == VRAM_LIVE;
}

Test(simcuda_moving, out_and_back) {
    uint64_t before = proof_usage(0).used, moved, at = served(5 * MIB + 100, 1), other = served(3 * MIB, 2);
    fill(at, 5 * MIB, 7);
    fill(other, 3 * MIB, 8);
    cr_assert_eq(proof_usage(0).used, before + 10 * MIB);
    struct stow_cuda_options options = ANY;
    options.owner = 1;
    cr_assert_eq(out(options, &moved), STOW_CUDA_DONE);
    cr_assert_eq(moved, 6 * MIB);
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "its memory is free for others");
    cr_assert_eq(stow_cuda_sums(1, UINT32_MAX).stowed, 6 * MIB);
    cr_assert(holds(other, 3 * MIB, 8));
    cr_assert_eq(in(options, &moved), STOW_CUDA_DONE);
    cr_assert_eq(moved, 6 * MIB);
    cr_assert(holds(at, 5 * MIB, 7));
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).backup, 0);
    int result;
    cr_assert(stow_cuda_free(at, &result) && !result);
    cr_assert(stow_cuda_free(other, &result) && !result);
    cr_assert_not(stow_cuda_free(other, &result));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_moving, stowed_memory_faults_when_used) {
    uint64_t moved, at = served(4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(simcuda_moving, what_is_running_is_waited_for) {
    uint64_t moved, at = served(4 * MIB, 1);
    CUstream stream;
    CUcontext other;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    stow_cuda_context((cuda_handle)other);
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(at, 77, MIB, stream)); /* of another context */
    OK(cuCtxSetCurrent(proof_context));
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    sim_set_latency_us(0);
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_DONE);
    uint32_t word;
    OK(cuMemcpyDtoH_v2(&word, at + 4 * MIB - 4, 4));
    cr_assert_eq(word, 77);
    cr_assert_eq(proof_usage(0).faults, 0);
}

Test(simcuda_moving, a_kernel_that_does_not_end) {
    uint64_t moved, at = served(4 * MIB, 1);
    struct stow_cuda_options options = ANY;
    fill(at, 4 * MIB, 3);
    options.milliseconds = 30;
    OK(proof_launch("sim_wait", NULL, 0, 0, 0));
    cr_assert_eq(out(options, &moved), STOW_CUDA_BUSY);
    cr_assert_eq(out(options, &moved), STOW_CUDA_BUSY);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    options.milliseconds = 5000;
    for (int i = 0; i < 100 && out(options, &moved) == STOW_CUDA_BUSY; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL); /* until the waiting thread has come back */
    cr_assert_eq(moved, 4 * MIB);
    cr_assert_eq(in(options, &moved), STOW_CUDA_DONE);
    cr_assert(holds(at, 4 * MIB, 3));
}

Test(simcuda_moving, no_room_on_the_device_to_come_back_to) {
    uint64_t moved, at = served(40 * MIB, 1), others;
    fill(at, 40 * MIB, 5);
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    OK(cuMemAlloc_v2(&others, 100 * MIB));
    uint64_t used = proof_usage(0).used;
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_NO_VRAM);
    cr_assert_eq(moved, 0);
    cr_assert_eq(proof_usage(0).used, used, "what it got is given back");
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).stowed, 40 * MIB);
    OK(cuMemFree_v2(others));
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_DONE);
    cr_assert(holds(at, 40 * MIB, 5));
}

Test(simcuda_moving, refusals) {
    uint64_t moved;
    struct stow_cuda_options options = ANY;
    cr_assert_eq(out(options, &moved), STOW_CUDA_EMPTY);
    uint64_t at = served(4 * MIB, 1);
    options.owner = 2;
    cr_assert_eq(out(options, &moved), STOW_CUDA_EMPTY);
    options.owner = 1;
    cuda_captures_begin((cuda_handle)1, &(struct cuda_place){0});
    cr_assert_eq(out(options, &moved), STOW_CUDA_CAPTURE);
    cuda_captures_end((cuda_handle)1);
    bool told_to_end = true;
    options.cancelled = &told_to_end;
    cr_assert_eq(out(options, &moved), STOW_CUDA_CANCELLED);
    options.cancelled = NULL;
    options.limits.memory = 2 * MIB;
    cr_assert_eq(out(options, &moved), STOW_CUDA_NO_ROOM);
    options.limits.memory = 0;
    stow_cuda_refuse(at + 100, STOW_CUDA_RDMA);
    stow_cuda_refuse(at, STOW_CUDA_HANDLE);
    cr_assert_eq(out(options, &moved), STOW_CUDA_RDMA, "the first reason counts");
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).live, 4 * MIB);
    for (uint32_t i = 0; i < STOW_CUDA_REFUSALS; i++) cr_assert(stow_cuda_refusal_text(i)[0]);
}

Test(simcuda_moving, what_is_out_or_on_its_way_is_not_assigned) {
    struct vram_block *block;
    uint64_t moved, at = served(4 * MIB, 1);
    fill(at, 4 * MIB, 2);
    cr_assert(stow_cuda_hold(at, &block) && block);
    stow_cuda_assign(block, 7, false);
    stow_cuda_let_go(block);
    cr_assert(stow_cuda_hold(at + 1, &block) && !block, "none of ours");
    wanted_by_assigner = at;
    struct stow_cuda_options options = ANY;
    options.owner = 7;
    cr_assert_eq(out(options, &moved), STOW_CUDA_DONE);
    cr_assert_eq(moved, 4 * MIB);
    pthread_join(assigner, NULL);
    cr_assert_not(held_by_assigner, "by then it was out");
    cr_assert_not(stow_cuda_hold(at, &block));
    cr_assert_eq(in(options, &moved), STOW_CUDA_DONE);
    cr_assert(holds(at, 4 * MIB, 2));
}

Test(simcuda_moving, what_changes_meanwhile_stays) {
    uint64_t moved, at = served(4 * MIB, 1);
    fill(at, 4 * MIB, 6);
    spoil_at = 2;
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_CHANGED);
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).live, 4 * MIB);
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).backup, 0);
    cr_assert_not(holds(at, 4 * MIB, 6), "what was written is there");
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
}

Test(simcuda_moving, freed_in_the_order_of_a_stream) {
    uint64_t before = proof_usage(0).used, at = served(4 * MIB, 1), moved;
    CUstream stream;
    int result;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(proof_launch("sim_wait", stream, 0, 0, 0));
    OK(cuMemsetD32Async(at, 1, 1, stream));
    cr_assert(stow_cuda_free_in(at, stream, &result) && !result);
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "work that was begun still finds it");
    cr_assert_not(stow_cuda_free_in(at, stream, &result), "only once");
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_EMPTY);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    served(2 * MIB, 1); /* whoever comes by */
    cr_assert_eq(proof_usage(0).used, before + 2 * MIB);
    cr_assert_eq(proof_usage(0).faults, 0);
}

Test(simcuda_moving, freed_while_stowed) {
    uint64_t before = proof_usage(0).used, at = served(4 * MIB, 1), other = served(4 * MIB, 1), moved;
    int result;
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    cr_assert(stow_cuda_free(at, &result) && stow_cuda_free_in(other, NULL, &result));
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).backup, 0);
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_EMPTY);
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert_eq(proof_usage(0).reserved_va, 0);
}

Test(simcuda_moving, a_context_that_ends_takes_its_blocks) {
    CUcontext other;
    uint64_t before = proof_usage(0).used, at, moved;
    OK(cuCtxCreate_v2(&other, 0, 0));
    struct stow_cuda_request request = {.bytes = 4 * MIB, .owner = 1, .context = (cuda_handle)other};
    OK(stow_cuda_serve(&request, &at));
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE); /* its ring is in that context, too */
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(proof_context));
    stow_cuda_context_ended((cuda_handle)other, NULL);
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).blocks, 0);
    cr_assert_eq(proof_usage(0).used, before);
    at = served(4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
}

Test(simcuda_moving, comes_back_whole_or_not_at_all) {
    uint64_t moved, first = served(4 * MIB, 1), second = served(60 * MIB, 1), others;
    fill(first, 4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    OK(cuMemAlloc_v2(&others, 80 * MIB));
    uint64_t used = proof_usage(0).used;
    sim_count_reset();
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_NO_VRAM);
    cr_assert_eq(moved, 0);
    cr_assert_eq(proof_usage(0).used, used);
    cr_assert_eq(sim_count("cuMemcpyHtoDAsync_v2"), 0, "nothing is copied in vain");
    cr_assert_eq(stow_cuda_sums(1, UINT32_MAX).stowed, 64 * MIB);
    OK(cuMemFree_v2(others));
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_DONE);
    cr_assert_eq(moved, 64 * MIB);
    cr_assert(is_live(first) && is_live(second) && holds(first, 4 * MIB, 1));
}

/* What the program has freed, and the driver's pool keeps, is there for what comes back. */
Test(simcuda_moving, the_pool_gives_up_what_it_keeps) {
    uint64_t moved, at = served(40 * MIB, 1), kept, forever = UINT64_MAX;
    CUmemoryPool pool;
    fill(at, 40 * MIB, 5);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &forever));
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    OK(cuMemAllocAsync(&kept, 100 * MIB, NULL));
    OK(cuMemFreeAsync(kept, NULL));
    OK(cuCtxSynchronize());
    cr_assert_gt(proof_usage(0).used, 100 * MIB);
    cr_assert_eq(in(ANY, &moved), STOW_CUDA_DONE);
    cr_assert(holds(at, 40 * MIB, 5));
}

/* Another thread's capture in global mode forbids what a free takes; it must go on as if nothing had been. */
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

Test(simcuda_moving, a_free_breaks_no_capture) {
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
    cuda_captures_begin((cuda_handle)capturing, &(struct cuda_place){0});
    cr_assert(stow_cuda_free(plain, &result) && !result);
    cr_assert(stow_cuda_free(at_once, &result) && !result);
    cr_assert(stow_cuda_free_in(pooled, (cuda_handle)stream, &result) && !result);
    cr_assert(proof_settled());
    stow_cuda_reap();
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "cuMemFree's wait would break it");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    OK(captured);
    cuda_captures_end((cuda_handle)capturing);
    stow_cuda_reap();
    cr_assert_eq(proof_usage(0).used, before);
}

/* Ends the capture that began at a wait; it must not have been broken. */
static void capture_is_whole(void) {
    pthread_barrier_wait(&capture_may_end);
    pthread_join(capturer, NULL);
    OK(capture_went);
}

Test(simcuda_moving, a_capture_that_begins_at_a_wait_is_not_broken) {
    uint64_t moved, at = served(4 * MIB, 1), plain = served(4 * MIB, 2), late;
    struct stow_cuda_options options = ANY;
    int result;
    options.owner = 1;
    fill(at, 4 * MIB, 3);
    pthread_barrier_init(&capture_may_end, NULL, 2);
    capture_at_wait = true;
    out(options, &moved); /* done, or refused: the capture may have begun before the first copy */
    capture_is_whole();
    capture_at_wait = true;
    cr_assert(stow_cuda_free(plain, &result) && !result);
    capture_is_whole();
    OK(serve(4 * MIB, 1, &late));
    cuda_captures_begin((cuda_handle)1, &(struct cuda_place){0});
    cr_assert(stow_cuda_free(late, &result) && !result);
    cuda_captures_end((cuda_handle)1);
    capture_at_wait = true;
    stow_cuda_reap(); /* what was freed meanwhile is waited for now */
    cr_assert_not(capture_at_wait);
    capture_is_whole();
    in(options, &moved);
    cr_assert(holds(at, 4 * MIB, 3));
}

/* A kernel that does not end must not keep anybody from capturing: the first waits, and none that comes later. */
Test(simcuda_moving, a_capture_does_not_wait_for_long) {
    uint64_t moved, before = now_ns();
    struct stow_cuda_options options = ANY;
    served(4 * MIB, 1);
    OK(proof_launch("sim_wait", NULL, 0, 0, 0));
    options.milliseconds = 30;
    pthread_barrier_init(&capture_may_end, NULL, 2);
    capture_at_wait = true;
    cr_assert_eq(out(options, &moved), STOW_CUDA_BUSY);
    while (!__atomic_load_n(&capture_began_ns, __ATOMIC_SEQ_CST)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    cr_assert_gt(capture_began_ns, before + 900000000u, "it waits for a while");
    capture_is_whole();
    before = now_ns();
    cuda_captures_begin((cuda_handle)1, &(struct cuda_place){0});
    cuda_captures_end((cuda_handle)1);
    cr_assert_lt(now_ns(), before + 900000000u, "not for what the one before it has waited for");
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
}

/* cuMemFree of plain memory waits for what uses it, whichever context the thread is in; of a pool's it does not. */
Test(simcuda_moving, plain_memory_is_freed_when_nothing_uses_it) {
    CUcontext other;
    uint64_t at = served(4 * MIB, 1), pooled = served_in_stream(4 * MIB, 1);
    int result;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxSetCurrent(proof_context));
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(at, 77, MIB, NULL));
    cr_assert(stow_cuda_free(pooled, &result) && !result);
    cr_assert_eq(proof_usage(0).pending, 1);
    OK(cuCtxSetCurrent(other));
    cr_assert(stow_cuda_free(at, &result) && !result);
    cr_assert_eq(proof_usage(0).pending, 0);
    cr_assert_eq(proof_usage(0).faults, 0);
}

/* Its stream is of another context than the thread's, which may end before what is on the stream has been looked at. */
Test(simcuda_moving, freed_in_a_stream_of_another_context) {
    uint64_t before = proof_usage(0).used, context, at = served_in_stream(4 * MIB, 1);
    uint64_t later = served_in_stream(4 * MIB, 1);
    CUcontext other;
    CUstream stream;
    int result;
    OK(cuCtxCreate_v2(&other, 0, 0));
    context = proof_usage(0).contexts;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(proof_context));
    cr_assert(stow_cuda_free_in(at, (cuda_handle)stream, &result));
    cr_assert_eq(result, 0);
    cr_assert(proof_settled());
    stow_cuda_reap();
    cr_assert_eq(proof_usage(0).used, before + context / 2 + 4 * MIB);
    cr_assert(stow_cuda_free_in(later, (cuda_handle)stream, &result) && !result);
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(proof_context));
    stow_cuda_context_ended((cuda_handle)other, NULL);
    stow_cuda_reap();
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert(!stow_cuda_sums(0, UINT32_MAX).wrecks);
}

Test(simcuda_moving, memory_that_was_freed_is_waited_for) {
    uint64_t at = served_in_stream(4 * MIB, 1);
    int result;
    cr_assert_not(stow_cuda_wait_freed(), "nothing is to come");
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    cr_assert(stow_cuda_free_in(at, NULL, &result) && !result);
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).wrecks, 0);
    cr_assert(stow_cuda_wait_freed());
    cr_assert(!proof_usage(0).blocks && !proof_usage(0).faults);
}

/* Contexts that end leave what is pinned; it is 64 MiB for all of them together. */
Test(simcuda_moving, contexts_share_what_is_pinned) {
    CUcontext other;
    uint64_t at, moved, first = served(4 * MIB, 1);
    fill(first, 4 * MIB, 1);
    OK(cuCtxCreate_v2(&other, 0, 0));
    struct stow_cuda_request request = {.bytes = 4 * MIB, .owner = 1, .context = (cuda_handle)other};
    OK(stow_cuda_serve(&request, &at));
    fill(at, 4 * MIB, 2);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
        cr_assert_eq(proof_usage(0).pinned, 64 * MIB);
        cr_assert_eq(in(ANY, &moved), STOW_CUDA_DONE);
    }
    cr_assert(holds(first, 4 * MIB, 1) && holds(at, 4 * MIB, 2));
}

/* When not all of them can be waited for, nothing moves. */
Test(simcuda_moving, more_contexts_than_can_be_waited_for) {
    uint64_t moved;
    served(4 * MIB, 1);
    for (uintptr_t i = 1; i <= 64; i++) stow_cuda_context((cuda_handle)(i << 12));
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_CONTEXTS);
    cr_assert_eq(stow_cuda_sums(0, UINT32_MAX).live, 4 * MIB);
}

/* "dc": not there after a fork. */
static uint64_t kept_from_children(void) {
    char line[512];
    uint64_t kib = 0, sum = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Size: %lu kB", &kib) == 1) continue;
        if (!strncmp(line, "VmFlags:", 8) && strstr(line, " dc")) sum += kib << 10;
    }
    fclose(file);
    return sum;
}

Test(simcuda_moving, a_forked_child_has_no_copy_of_what_is_out) {
    uint64_t moved, before = kept_from_children();
    served(4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), STOW_CUDA_DONE);
    cr_assert_eq(kept_from_children(), before + 4 * MIB);
}

/* ---- what a move takes of the driver */

static void expect_calls(const char *const *names, const uint64_t *counts, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        cr_assert_eq(sim_count(names[i]), counts[i], "%s: %lu calls, not %lu", names[i],
                     (unsigned long)sim_count(names[i]), (unsigned long)counts[i]);
}

static void in_order(const char *const *names, uint32_t n) {
    static char text[1 << 16];
    const char *at = text;
    cr_assert(sim_log_text(text, sizeof text) < sizeof text);
    for (uint32_t i = 0; i < n; i++) {
        at = strstr(at, names[i]);
        cr_assert(at, "%s is missing, or comes too soon", names[i]);
    }
}

/* The last call of one comes before the first of the other. */
static void is_over_before(const char *first, const char *second) {
    static char text[1 << 16];
    cr_assert(sim_log_text(text, sizeof text) < sizeof text);
    char *then = strstr(text, second);
    cr_assert(then && strstr(text, first) < then && !strstr(then, first), "%s after %s", first, second);
}

static void a_quarter_of_a_gibibyte(void) {
    setenv("SIMCUDA_CAPACITY", "300M", 1);
    setenv("SIMCUDA_FILL", "0", 1);
    begin();
}

/* Of 256 MiB, 4 pieces of 64 MiB and 8 copies of 32 MiB; access and the end of mappings once. So 16 and 32 of 1 GiB. */
Test(simcuda_moving_calls, per_gibibyte, .init = a_quarter_of_a_gibibyte) {
    static const char *const names[] = {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemUnmap",
                                        "cuMemRelease",         "cuMemCreate",          "cuMemMap",
                                        "cuMemSetAccess",       "cuMemHostAlloc"};
    static const uint64_t going[] = {8, 0, 1, 4, 0, 0, 0, 2}, coming[] = {0, 8, 0, 0, 4, 4, 1, 0};
    static const char *const out_order[] = {"cuCtxSynchronize", "cuMemcpyDtoHAsync_v2", "cuEventSynchronize",
                                            "cuMemUnmap", "cuMemRelease"};
    static const char *const in_order_of[] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemcpyHtoDAsync_v2",
                                              "cuStreamSynchronize"};
    uint64_t moved;
    struct stow_cuda_options options = {.milliseconds = 10000};
    uint64_t at = served(256 * MIB, 1);
    for (uint32_t i = 0; i < 8; i++) fill(at + i * 32 * MIB, 32 * MIB, i);
    sim_set_latency_us(3000); /* a buffer that is used again too soon would be seen */
    sim_count_reset();
    cr_assert_eq(out(options, &moved), STOW_CUDA_DONE);
    expect_calls(names, going, 8);
    cr_assert_leq(sim_count("*"), 42, "%lu calls", (unsigned long)sim_count("*"));
    is_over_before("cuEventSynchronize", "cuMemUnmap");
    is_over_before("cuMemUnmap", "cuMemRelease");
    in_order(out_order, 5);
    cr_assert_eq(proof_usage(0).pinned, 64 * MIB, "2 x 32 MiB");
    sim_count_reset();
    cr_assert_eq(in(options, &moved), STOW_CUDA_DONE);
    expect_calls(names, coming, 8);
    cr_assert_leq(sim_count("*"), 42, "%lu calls", (unsigned long)sim_count("*"));
    is_over_before("cuMemCreate", "cuMemMap");
    is_over_before("cuMemMap", "cuMemSetAccess");
    is_over_before("cuMemSetAccess", "cuMemcpyHtoDAsync_v2");
    in_order(in_order_of, 5);
    sim_set_latency_us(0);
    for (uint32_t i = 0; i < 8; i++) cr_assert(holds(at + i * 32 * MIB, 32 * MIB, i));
}

/* Pinned backups take one copy for a block, and none by way of the buffers. */
Test(simcuda_moving_calls, of_pinned_memory, .init = a_quarter_of_a_gibibyte) {
    uint64_t moved, at = served(64 * MIB, 1);
    struct stow_cuda_options options = {.milliseconds = 10000, .limits = {.pinned = 64 * MIB}};
    fill(at, 32 * MIB, 3);
    sim_count_reset();
    cr_assert_eq(out(options, &moved), STOW_CUDA_DONE);
    cr_assert(sim_count("cuMemcpyDtoHAsync_v2") == 1 && sim_count("cuMemHostRegister_v2") == 1);
    cr_assert_leq(sim_count("*"), 24, "%lu calls", (unsigned long)sim_count("*"));
    is_over_before("cuMemcpyDtoHAsync_v2", "cuMemUnmap");
    sim_count_reset();
    cr_assert_eq(in(options, &moved), STOW_CUDA_DONE);
    cr_assert(sim_count("cuMemcpyHtoDAsync_v2") == 1 && sim_count("cuMemHostUnregister") == 1);
    cr_assert_leq(sim_count("*"), 24, "%lu calls", (unsigned long)sim_count("*"));
    is_over_before("cuMemcpyHtoDAsync_v2", "cuMemHostUnregister");
    cr_assert(holds(at, 32 * MIB, 3));
}

/* ---- an error at each call in turn */

static uint32_t random_below(uint32_t *state, uint32_t n) {
    *state = *state * 1103515245u + 12345u;
    return (*state >> 8) % n;
}

enum { SLOTS = 6, OWNERS = 3 };
struct slot {
    uint64_t at, bytes;
    uint32_t owner, seed;
};

/* Who takes steps: one thread for all owners, or a thread for each, with its own blocks. */
struct walker {
    struct slot slots[SLOTS];
    uint32_t random, owner; /* 0: any */
};

/* Whose memory is used does not move meanwhile, as an owner that is not idle does not. Moves of all take all of them,
 * in this order. Frees ask nobody. */
static pthread_mutex_t using[OWNERS + 1] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                            PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void stop_use(uint32_t owner) {
    for (uint32_t i = 1; i <= OWNERS; i++)
        if (!owner || i == owner) pthread_mutex_lock(&using[i]);
}

static void let_use(uint32_t owner) {
    for (uint32_t i = 1; i <= OWNERS; i++)
        if (!owner || i == owner) pthread_mutex_unlock(&using[i]);
}

static bool is_stowed(uint64_t at) {
    struct stow_cuda_found block;
    cr_assert(stow_cuda_find(at, &block));
    return block.state == VRAM_STOWED;
}

static void allocate(struct walker *self, struct slot *slot) {
    slot->bytes = (random_below(&self->random, 3) + 1) * MIB;
    slot->owner = self->owner ? self->owner : random_below(&self->random, OWNERS) + 1;
    slot->seed = random_below(&self->random, 1000000);
    if (serve(slot->bytes, slot->owner, &slot->at))
        slot->at = 0;
    else
        fill(slot->at, slot->bytes, slot->seed);
}

/* What fails stays, and can be tried again. */
static void free_surely(uint64_t at) {
    for (int result = 1; result;) cr_assert(stow_cuda_free(at, &result));
}

static void release(struct walker *self, struct slot *slot) {
    int result = 1;
    while (result)
        cr_assert(random_below(&self->random, 2) ? stow_cuda_free(slot->at, &result)
                                                 : stow_cuda_free_in(slot->at, NULL, &result));
    slot->at = 0;
}

static void use(struct walker *self, struct slot *slot) {
    uint32_t owner = slot->at ? slot->owner : self->owner;
    stop_use(owner);
    if (!slot->at)
        allocate(self, slot);
    else if (!is_stowed(slot->at))
        cr_assert(holds(slot->at, slot->bytes, slot->seed), "a block of owner %u has changed", slot->owner);
    let_use(owner);
}

static void step(struct walker *self) {
    struct slot *slot = &self->slots[random_below(&self->random, SLOTS)];
    struct stow_cuda_options options = {.owner = random_below(&self->random, OWNERS + 1),
                                        .milliseconds = 5000,
                                        .verify = random_below(&self->random, 2)};
    options.limits.pinned = random_below(&self->random, 2) * 4 * MIB;
    uint64_t moved;
    switch (random_below(&self->random, 5)) {
    case 0:
        stop_use(options.owner);
        out(options, &moved);
        let_use(options.owner);
        break;
    case 1:
        stop_use(options.owner);
        in(options, &moved);
        let_use(options.owner);
        break;
    case 2:
        if (slot->at) release(self, slot);
        break;
    default:
        use(self, slot);
    }
}

static void look_and_free(struct walker *self) {
    int result;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &self->slots[i];
        if (!slot->at) continue;
        cr_assert(!is_stowed(slot->at), "all of it has come back");
        cr_assert(holds(slot->at, slot->bytes, slot->seed), "block %d has changed", i);
        cr_assert(stow_cuda_free(slot->at, &result) && !result);
        slot->at = 0;
    }
}

/* A copy that did not end holds on to its memory until another has. */
static void one_more_copy(void) {
    uint64_t moved, at = served(2 * MIB, 1);
    int result;
    cr_assert_eq(out((struct stow_cuda_options){.milliseconds = 5000}, &moved), STOW_CUDA_DONE);
    in((struct stow_cuda_options){.milliseconds = 5000}, &moved);
    stow_cuda_free(at, &result);
}

/* All of it back, looked at, and freed; nothing is left in the driver but the ring. */
static void finish(struct walker *walkers, int count, uint64_t before) {
    uint64_t moved;
    int result;
    sim_fail(NULL, 0, 0, 0);
    in((struct stow_cuda_options){.milliseconds = 5000}, &moved);
    for (int i = 0; i < count; i++) look_and_free(&walkers[i]);
    OK(cuCtxSynchronize());
    one_more_copy();
    stow_cuda_free(served(2 * MIB, 1), &result); /* whoever comes by */
    struct sim_usage usage = proof_usage(0);
    struct stow_cuda_sums sums = stow_cuda_sums(0, UINT32_MAX);
    cr_assert_eq(usage.used, before);
    cr_assert(!usage.blocks && !usage.reserved_va && !usage.faults && !usage.pending && !usage.registered);
    cr_assert(!sums.live && !sums.stowed && !sums.asked && !sums.backup && !sums.blocks && !sums.wrecks);
    cr_assert(!sums.in_streams && !sums.streams_taken);
}

static void fail_at_each_call(uint64_t pinned) {
    uint64_t before = proof_usage(0).used, moved, calls, nth = 0, served_late;
    do {
        struct walker self = {.random = (uint32_t)nth};
        self.slots[0] = (struct slot){served(3 * MIB, 1), 3 * MIB, 1, (uint32_t)nth};
        self.slots[1] = (struct slot){served(MIB, 2), MIB, 2, (uint32_t)nth + 1};
        for (int i = 0; i < 2; i++) fill(self.slots[i].at, self.slots[i].bytes, self.slots[i].seed);
        sim_count_reset();
        sim_fail("*", ++nth, nth % 2 ? 719 : CUDA_ERROR_OUT_OF_MEMORY, 1);
        struct stow_cuda_options options = ANY;
        options.limits.pinned = pinned;
        out(options, &moved);
        in(ANY, &moved);
        release(&self, &self.slots[1]);
        if (!serve(2 * MIB, 1, &served_late)) free_surely(served_late);
        calls = sim_count("*");
        finish(&self, 1, before);
    } while (calls >= nth); /* until the error comes too late */
    cr_assert_gt(nth, 50);
}

Test(simcuda_moving, an_error_at_each_call_in_turn) { fail_at_each_call(0); }

Test(simcuda_moving, the_same_with_pinned_backups) { fail_at_each_call(64 * MIB); }

/* simcuda/moving_long.py asks for many. */
enum { STEPS = 60 };
static uint32_t rounds(uint32_t few) {
    const char *asked = getenv("SIMCUDA_ROUNDS");
    return asked ? (uint32_t)atoi(asked) : few;
}

/* An error at one call of each round: at the first in the first round, at the second in the second, and so on until
 * a round has fewer calls; then again from the first. Every other round has a few more, anywhere. */
static void inject(uint32_t round, uint32_t *random) {
    static uint64_t nth;
    if (sim_count("*") < nth) nth = 0;
    sim_count_reset();
    sim_fail("*", ++nth, round % 3 ? 719 : CUDA_ERROR_OUT_OF_MEMORY, 1 + round % 2);
    for (uint32_t i = 0; round % 2 && i < 6; i++)
        sim_fail("*", random_below(random, 900) + 1, 719, 1 + random_below(random, 2));
}

Test(simcuda_moving, random_steps_with_errors, .timeout = 36000) {
    uint64_t before = proof_usage(0).used;
    struct walker self = {.random = 1};
    for (uint32_t round = 0, all = rounds(60); round < all; round++) {
        inject(round, &self.random);
        for (int i = 0; i < STEPS; i++) step(&self);
        finish(&self, 1, before);
    }
}

static void *walk(void *walker) {
    struct walker *self = walker;
    while (cuCtxSetCurrent(proof_context)) continue;
    for (int i = 0; i < STEPS / OWNERS; i++) step(self);
    free(words);
    words = NULL;
    return NULL;
}

Test(simcuda_moving, random_steps_of_threads_with_errors, .timeout = 36000) {
    uint64_t before = proof_usage(0).used;
    struct walker walkers[OWNERS] = {0};
    uint32_t random = 1;
    for (uint32_t round = 0, all = rounds(60); round < all; round++) {
        pthread_t threads[OWNERS];
        inject(round, &random);
        for (uint32_t i = 0; i < OWNERS; i++) {
            walkers[i].owner = i + 1;
            walkers[i].random = random_below(&random, UINT16_MAX);
            cr_assert_eq(pthread_create(&threads[i], NULL, walk, &walkers[i]), 0);
        }
        for (int i = 0; i < OWNERS; i++) pthread_join(threads[i], NULL);
        finish(walkers, OWNERS, before);
    }
}

/* ---- threads */

static void *churn(void *argument) {
    uint32_t owner = (uint32_t)(uintptr_t)argument;
    uint64_t at;
    int result;
    cuCtxSetCurrent(proof_context);
    for (int i = 0; i < 40; i++) {
        if (serve(2 * MIB, owner, &at)) continue;
        cr_assert(i % 2 ? stow_cuda_free(at, &result) : stow_cuda_free_in(at, NULL, &result));
    }
    return NULL;
}

static void *move_to_and_fro(void *unused) {
    uint64_t moved;
    cuCtxSetCurrent(proof_context);
    for (int i = 0; i < 15; i++) {
        out((struct stow_cuda_options){.owner = 9, .milliseconds = 5000}, &moved);
        in((struct stow_cuda_options){.owner = 9, .milliseconds = 5000}, &moved);
    }
    return unused;
}

Test(simcuda_moving, threads) {
    pthread_t threads[4];
    uint64_t at = served(4 * MIB, 9), moved;
    fill(at, 4 * MIB, 11);
    for (uintptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 2; i < 4; i++) pthread_create(&threads[i], NULL, move_to_and_fro, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    in(ANY, &moved);
    cr_assert(holds(at, 4 * MIB, 11));
}
