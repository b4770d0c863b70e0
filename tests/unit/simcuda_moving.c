// Device memory that memstow serves, over the simulated CUDA driver (a test double). The memory moves out to the host,
// and comes back at the same addresses. The tests also check which driver calls a move makes, and when a move is
// refused.
#include "moving_proof.h"

#include <stdio.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/copies/vram_stock.h"

/* A move that verifies copies memory from the device, and then copies the memory again to compare it. The test can
 * change the memory just before one of these copies, as if a thread wrote to it. 1: before the next copy. 2: before the
 * copy after the next one. 0: never. */
static int spoil_at;

/* A thread wants to assign the memory that moves. */
static pthread_t assigner;
static uint64_t wanted_by_assigner;
static bool held_by_assigner;
static int assigner_is_through; /* atomic */

static void *hold_it(void *unused) {
    struct vram_block *block;
    held_by_assigner = vram_owned_hold(wanted_by_assigner, &block);
    if (held_by_assigner) vram_owned_let_go(block);
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

static void *function(const char *name) {
    return strcmp(name, "cuMemcpyDtoHAsync_v2") ? moving_function(name) : (void *)copy_and_spoil;
}

static void begin(void) { moving_begin(function); }
TestSuite(simcuda_moving, .init = begin);

static bool is_live(uint64_t at) {
    struct vram_found block;
    return vram_memory_find(at, &block) && block.state == VRAM_LIVE;
}

Test(simcuda_moving, out_and_back) {
    uint64_t before = proof_usage(0).used, moved, at = served(5 * MIB + 100, 1), other = served(3 * MIB, 2);
    fill(at, 5 * MIB, 7);
    fill(other, 3 * MIB, 8);
    cr_assert_eq(proof_usage(0).used, before + 10 * MIB);
    struct vram_move_options options = ANY;
    options.owner = 1;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(moved, 6 * MIB);
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "its memory is free for others");
    cr_assert_eq(vram_sums(1, UINT32_MAX).stowed, 6 * MIB);
    cr_assert(holds(other, 3 * MIB, 8));
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(moved, 6 * MIB);
    cr_assert(holds(at, 5 * MIB, 7));
    cr_assert_eq(vram_sums(0, UINT32_MAX).backup, 0);
    int result;
    cr_assert(vram_memory_free(at, &result) && !result);
    cr_assert(vram_memory_free(other, &result) && !result);
    cr_assert_not(vram_memory_free(other, &result));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_moving, stowed_memory_faults_when_used) {
    uint64_t moved, at = served(4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(simcuda_moving, no_room_on_the_device_to_come_back_to) {
    uint64_t moved, at = served(40 * MIB, 1), others;
    fill(at, 40 * MIB, 5);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    OK(cuMemAlloc_v2(&others, 100 * MIB));
    uint64_t used = proof_usage(0).used;
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_NO_VRAM);
    cr_assert_eq(moved, 0);
    cr_assert_eq(proof_usage(0).used, used, "what it got is given back");
    cr_assert_eq(vram_sums(0, UINT32_MAX).stowed, 40 * MIB);
    OK(cuMemFree_v2(others));
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert(holds(at, 40 * MIB, 5));
}

Test(simcuda_moving, refusals) {
    uint64_t moved;
    struct vram_move_options options = ANY;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_EMPTY);
    uint64_t at = served(4 * MIB, 1);
    options.owner = 2;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_EMPTY);
    options.owner = 1;
    uint64_t listed = cuda_captures_begin((cuda_handle)1, &(struct cuda_target){0});
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_CAPTURE);
    cuda_captures_ended(listed);
    uint64_t told_to_end = 7;
    options.end = (struct move_end){&told_to_end, 7};
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_CANCELLED);
    options.end.word = NULL;
    options.limits.memory = 2 * MIB;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_NO_MEMORY);
    options.limits.memory = 0;
    vram_refusal_note(at + 100, VRAM_REFUSAL_RDMA);
    vram_refusal_note(at, VRAM_REFUSAL_HANDLE);
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_RDMA, "the first reason counts");
    cr_assert_eq(vram_sums(0, UINT32_MAX).live, 4 * MIB);
    for (uint32_t i = 0; i < VRAM_REFUSALS; i++) cr_assert(vram_refusal_text(i)[0]);
}

Test(simcuda_moving, what_is_out_or_on_its_way_is_not_assigned) {
    struct vram_block *block;
    uint64_t moved, at = served(4 * MIB, 1);
    fill(at, 4 * MIB, 2);
    cr_assert(vram_owned_hold(at, &block) && block);
    vram_owned_assign(block, 7, false);
    vram_owned_let_go(block);
    cr_assert(vram_owned_hold(at + 1, &block) && !block, "none of ours");
    wanted_by_assigner = at;
    struct vram_move_options options = ANY;
    options.owner = 7;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(moved, 4 * MIB);
    pthread_join(assigner, NULL);
    cr_assert_not(held_by_assigner, "by then it was out");
    cr_assert_not(vram_owned_hold(at, &block));
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(holds(at, 4 * MIB, 2));
}

Test(simcuda_moving, what_changes_meanwhile_stays) {
    uint64_t moved, at = served(4 * MIB, 1);
    fill(at, 4 * MIB, 6);
    spoil_at = 2;
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_CHANGED);
    cr_assert_eq(vram_sums(0, UINT32_MAX).live, 4 * MIB);
    cr_assert_eq(vram_sums(0, UINT32_MAX).backup, 0);
    cr_assert_not(holds(at, 4 * MIB, 6), "what was written is there");
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
}

Test(simcuda_moving, a_context_that_ends_takes_its_blocks) {
    CUcontext other;
    uint64_t before = proof_usage(0).used, at, moved;
    OK(cuCtxCreate_v2(&other, 0, 0));
    struct vram_request request = {.bytes = 4 * MIB, .owner = 1, .context = (cuda_handle)other};
    OK(vram_memory_serve(&request, &at));
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE); /* the move's buffers are in that context, too */
    uint64_t end = vram_contexts_end_begins();
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(proof_context));
    vram_contexts_ended((cuda_handle)other, NULL, end);
    cr_assert_eq(vram_sums(0, UINT32_MAX).blocks, 0);
    cr_assert_eq(proof_usage(0).used, before);
    at = served(4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
}

/* A new context may get the handle of a context that has ended. Another thread may be at work in the new context before
 * memstow knows that the old context has ended. */
Test(simcuda_moving, what_was_served_in_the_next_context_stays) {
    cuda_handle contexts[VRAM_CONTEXTS], context = (cuda_handle)proof_context;
    uint64_t moved;
    bool missing;
    int result;
    vram_contexts_note(context);
    served(4 * MIB, 1);
    uint64_t end = vram_contexts_end_begins(), next = served(4 * MIB, 1), freed = served_in_stream(4 * MIB, 1);
    vram_contexts_note(context);
    OK(proof_launch("sim_wait", NULL, 0, 0, 0));
    cr_assert(vram_memory_free_in(freed, NULL, &result) && !result);
    vram_contexts_ended(context, context, end);
    uint64_t used = proof_usage(0).used;
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).used, used, "what was freed in the next one is still in use");
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    cr_assert_eq(vram_sums(1, UINT32_MAX).live, 4 * MIB);
    fill(next, 4 * MIB, 7);
    cr_assert(holds(next, 4 * MIB, 7));
    cr_assert_eq(vram_contexts_all(contexts, &missing), 1);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
}

Test(simcuda_moving, comes_back_whole_or_not_at_all) {
    uint64_t moved, first = served(4 * MIB, 1), second = served(60 * MIB, 1), others;
    fill(first, 4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    OK(cuMemAlloc_v2(&others, 80 * MIB));
    uint64_t used = proof_usage(0).used;
    sim_count_reset();
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_NO_VRAM);
    cr_assert_eq(moved, 0);
    cr_assert_eq(proof_usage(0).used, used);
    cr_assert_eq(sim_count("cuMemcpyHtoDAsync_v2"), 0, "nothing is copied in vain");
    cr_assert_eq(vram_sums(1, UINT32_MAX).stowed, 64 * MIB);
    OK(cuMemFree_v2(others));
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(moved, 64 * MIB);
    cr_assert(is_live(first) && is_live(second) && holds(first, 4 * MIB, 1));
}

/* The driver's pool keeps memory that the program has freed. This memory is given up when moved memory comes back. */
Test(simcuda_moving, the_pool_gives_up_what_it_keeps) {
    uint64_t moved, at = served(40 * MIB, 1), kept, forever = UINT64_MAX;
    CUmemoryPool pool;
    fill(at, 40 * MIB, 5);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &forever));
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    OK(cuMemAllocAsync(&kept, 100 * MIB, NULL));
    OK(cuMemFreeAsync(kept, NULL));
    OK(cuCtxSynchronize());
    cr_assert_gt(proof_usage(0).used, 100 * MIB);
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert(holds(at, 40 * MIB, 5));
}

/* All contexts together have 64 MiB of pinned buffers. */
Test(simcuda_moving, contexts_share_what_is_pinned) {
    CUcontext other;
    uint64_t at, moved, first = served(4 * MIB, 1);
    fill(first, 4 * MIB, 1);
    OK(cuCtxCreate_v2(&other, 0, 0));
    struct vram_request request = {.bytes = 4 * MIB, .owner = 1, .context = (cuda_handle)other};
    OK(vram_memory_serve(&request, &at));
    fill(at, 4 * MIB, 2);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
        cr_assert_eq(proof_usage(0).pinned, 64 * MIB);
        cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_DONE);
    }
    cr_assert(holds(first, 4 * MIB, 1) && holds(at, 4 * MIB, 2));
}

/* If some contexts cannot be waited for, nothing moves. */
Test(simcuda_moving, more_contexts_than_can_be_waited_for) {
    uint64_t moved;
    served(4 * MIB, 1);
    for (uintptr_t i = 1; i <= 64; i++) vram_contexts_note((cuda_handle)(i << 12));
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_CONTEXTS);
    cr_assert_eq(vram_sums(0, UINT32_MAX).live, 4 * MIB);
}

/* Returns how many bytes are in mappings that a forked child does not get (the mark "dc" in smaps). */
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
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(kept_from_children(), before + 4 * MIB);
}

/* ---- which calls of the driver a move makes */

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

/* Asserts that the last call of `first` comes before the first call of `second`. */
static void is_over_before(const char *first, const char *second) {
    static char text[1 << 16];
    cr_assert(sim_log_text(text, sizeof text) < sizeof text);
    char *then = strstr(text, second);
    cr_assert(then && strstr(text, first) < then && !strstr(then, first), "%s after %s", first, second);
}

static void more_than_a_quarter_of_a_gibibyte(void) {
    setenv("SIMCUDA_CAPACITY", "400M", 1);
    setenv("SIMCUDA_FILL", "0", 1);
    begin();
}

/* A move of 288 MiB takes two pieces (256 MiB and 32 MiB) and 18 copies of 16 MiB; it sets access once, and unmaps
 * once. A move of 1 GiB would take 4 pieces and 64 copies. */
Test(simcuda_moving_calls, per_gibibyte, .init = more_than_a_quarter_of_a_gibibyte) {
    static const char *const names[] = {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemUnmap",
                                        "cuMemRelease",         "cuMemCreate",          "cuMemMap",
                                        "cuMemSetAccess",       "cuMemHostAlloc"};
    static const uint64_t going[] = {18, 0, 1, 2, 0, 0, 0, 4}, coming[] = {0, 18, 0, 0, 2, 2, 1, 0};
    static const char *const out_order[] = {"cuCtxSynchronize", "cuMemcpyDtoHAsync_v2", "cuEventSynchronize",
                                            "cuMemUnmap", "cuMemRelease"};
    static const char *const in_order_of[] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemcpyHtoDAsync_v2",
                                              "cuStreamSynchronize"};
    uint64_t moved;
    struct vram_move_options options = {.milliseconds = 10000};
    uint64_t at = served(288 * MIB, 1);
    for (uint32_t i = 0; i < 9; i++) fill(at + i * 32 * MIB, 32 * MIB, i);
    sim_set_latency_us(3000); /* reusing a buffer too soon would be noticed */
    sim_count_reset();
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    expect_calls(names, going, 8);
    cr_assert_leq(sim_count("*"), 76, "%lu calls", (unsigned long)sim_count("*"));
    is_over_before("cuEventSynchronize", "cuMemUnmap");
    is_over_before("cuMemUnmap", "cuMemRelease");
    in_order(out_order, 5);
    cr_assert_eq(proof_usage(0).pinned, 64 * MIB, "4 x 16 MiB");
    sim_count_reset();
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    expect_calls(names, coming, 8);
    cr_assert_leq(sim_count("*"), 76, "%lu calls", (unsigned long)sim_count("*"));
    is_over_before("cuMemCreate", "cuMemMap");
    is_over_before("cuMemMap", "cuMemSetAccess");
    is_over_before("cuMemSetAccess", "cuMemcpyHtoDAsync_v2");
    in_order(in_order_of, 5);
    sim_set_latency_us(0);
    for (uint32_t i = 0; i < 9; i++) cr_assert(holds(at + i * 32 * MIB, 32 * MIB, i));
}

/* A block with a pinned backup is copied by one call, and not through the buffers. What was pinned stays pinned: from
 * the second time on, nothing is pinned or unpinned. */
Test(simcuda_moving_calls, of_pinned_memory, .init = more_than_a_quarter_of_a_gibibyte) {
    uint64_t moved, at = served(64 * MIB, 1);
    struct vram_move_options options = {.milliseconds = 10000, .limits = {.pinned = 64 * MIB}};
    for (uint64_t turn = 0; turn < 3; turn++) {
        fill(at, 32 * MIB, 3 + (uint32_t)turn);
        sim_count_reset();
        cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
        cr_assert(sim_count("cuMemcpyDtoHAsync_v2") == 1 && sim_count("cuMemHostRegister_v2") == !turn);
        cr_assert_leq(sim_count("*"), 26, "%lu calls", (unsigned long)sim_count("*"));
        sim_count_reset();
        cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
        cr_assert(sim_count("cuMemcpyHtoDAsync_v2") == 1 && !sim_count("cuMemHostUnregister"));
        cr_assert_leq(sim_count("*"), 26, "%lu calls", (unsigned long)sim_count("*"));
        cr_assert(holds(at, 32 * MIB, 3 + (uint32_t)turn));
        cr_assert_eq(proof_usage(0).registered, 64 * MIB);
    }
    vram_stock_shrink(&vram_driver);
    cr_assert_eq(proof_usage(0).registered, 0);
}

/* When a context ends, its pinning ends. A block that outlives the context keeps its content. */
Test(simcuda_moving, content_outlives_the_context_that_pinned_it) {
    struct vram_move_options options = ANY;
    CUcontext other;
    uint64_t at, moved;
    options.limits.pinned = 16 * MIB;
    OK(cuCtxCreate_v2(&other, 0, 0));
    struct vram_request request = {.bytes = 4 * MIB, .owner = 1, .context = (cuda_handle)other, .in_stream = true};
    OK(vram_memory_serve(&request, &at));
    fill(at, 4 * MIB, 3);
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(proof_usage(0).registered, 4 * MIB);
    uint64_t end = vram_contexts_end_begins();
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(proof_context));
    vram_contexts_ended((cuda_handle)other, (cuda_handle)proof_context, end);
    cr_assert_eq(proof_usage(0).registered, 0);
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(holds(at, 4 * MIB, 3));
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(proof_usage(0).registered, 4 * MIB, "it is pinned again");
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(holds(at, 4 * MIB, 3));
}

/* The content lies in two pieces of host memory, each pinned by a call of its own. It is copied in two calls, because
 * the driver copies no further than to the end of such a piece. */
Test(simcuda_moving, content_in_two_pieces_of_pinned_memory) {
    struct vram_move_options options = ANY;
    uint64_t moved, first = served(4 * MIB, 1), second = served(4 * MIB, 2), both;
    int result;
    options.limits.pinned = 16 * MIB;
    for (options.owner = 1; options.owner <= 2; options.owner++) cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(vram_memory_free(first, &result) && vram_memory_free(second, &result));
    both = served(8 * MIB, 3);
    fill(both, 8 * MIB, 5);
    sim_count_reset();
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(!sim_count("cuMemHostRegister_v2") && sim_count("cuMemcpyHtoDAsync_v2") == 2);
    cr_assert(holds(both, 8 * MIB, 5));
}

/* While the device copies one block, memstow works on another block. On the way out, it unmaps the block that was
 * copied before. On the way back, it makes memory for the block that is copied next. */
static void log_of(char *text, size_t room) { cr_assert(sim_log_text(text, room) < room); }

Test(simcuda_moving, blocks_follow_one_another) {
    static char text[1 << 16];
    struct vram_move_options options = {.milliseconds = 10000, .limits = {.pinned = 32 * MIB}};
    uint64_t moved, at[8];
    for (uint32_t i = 0; i < 8; i++) fill(at[i] = served(2 * MIB, 1), 2 * MIB, i);
    sim_count_reset();
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    log_of(text, sizeof text);
    char *first_unmap = strstr(text, "cuMemUnmap");
    cr_assert(first_unmap && strstr(first_unmap, "cuMemcpyDtoHAsync_v2"), "copies go on behind the first unmapping");
    cr_assert_eq(sim_count("cuStreamSynchronize"), 0);
    sim_count_reset();
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    log_of(text, sizeof text);
    char *last_create = text;
    for (char *next = text; (next = strstr(next, "cuMemCreate")); next++) last_create = next;
    cr_assert(strstr(text, "cuMemcpyHtoDAsync_v2") < last_create, "copies have begun");
    cr_assert_eq(sim_count("cuStreamSynchronize"), 1);
    for (uint32_t i = 0; i < 8; i++) cr_assert(holds(at[i], 2 * MIB, i));
}

/* Content that is given up costs no copy, no buffer and no host memory. Blocks whose content was given up come back
 * together with the other blocks. */
Test(simcuda_moving, content_that_is_given_up) {
    struct vram_move_options options = ANY, keep = ANY;
    uint64_t before = proof_usage(0).used, moved, cache = served(4 * MIB, 1), weights = served(4 * MIB, 2);
    fill(cache, 4 * MIB, 1);
    fill(weights, 4 * MIB, 2);
    options.discard = true;
    options.owner = 1;
    options.limits.memory = 1;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(moved == 4 * MIB && proof_usage(0).used == before + 4 * MIB);
    cr_assert(!vram_sums(0, UINT32_MAX).backup && !proof_usage(0).pinned);
    keep.owner = 2;
    cr_assert_eq(out(keep, &moved), VRAM_REFUSAL_DONE);
    keep.owner = 0;
    cr_assert_eq(in(keep, &moved), VRAM_REFUSAL_DONE);
    cr_assert(moved == 8 * MIB && holds(weights, 4 * MIB, 2) && !holds(cache, 4 * MIB, 1));
    cr_assert(is_live(cache));
}

/* The copy of the third of eight blocks fails. That block stays, whole; the others leave. */
Test(simcuda_moving, a_copy_that_fails_among_others) {
    struct vram_move_options options = {.milliseconds = 10000};
    for (uint64_t pinned = 0; pinned <= 32 * MIB; pinned += 32 * MIB) {
        uint64_t moved, at[8];
        int result;
        options.limits.pinned = pinned;
        for (uint32_t i = 0; i < 8; i++) fill(at[i] = served(2 * MIB, 1), 2 * MIB, i);
        sim_fail("cuMemcpyDtoHAsync_v2", 3, 719, 1);
        cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DRIVER);
        cr_assert_eq(moved, 14 * MIB);
        cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
        for (uint32_t i = 0; i < 8; i++) cr_assert(holds(at[i], 2 * MIB, i));
        for (uint32_t i = 0; i < 8; i++) cr_assert(vram_memory_free(at[i], &result) && !result);
        cr_assert_eq(vram_sums(0, UINT32_MAX).backup, 0);
    }
}

/* ---- a copy that the driver does not end */

/* Moves memory out, or back if `back` is set. The driver reports no copy as ended, so the move is broken off. The copy
 * itself runs on for a while. */
static void break_off(bool back, uint64_t pinned) {
    struct vram_move_options options = ANY;
    uint64_t moved;
    options.limits.pinned = pinned;
    if (back) cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    sim_set_latency_us(100000);
    sim_fail("cuStreamSynchronize", 1, 719, 6);
    sim_fail("cuEventSynchronize", 1, 719, 6);
    cr_assert_eq(back ? in(options, &moved) : out(options, &moved), VRAM_REFUSAL_DRIVER);
    sim_fail(NULL, 0, 0, 0);
}

/* A block is freed while a copy that was broken off still runs. The memory of the copy must stay until the copy has
 * ended, whether the block is freed in stream order or at once. */
static void free_beside_copy(bool back, uint64_t pinned, bool in_stream) {
    uint64_t moved, before = proof_usage(0).used, at = served(4 * MIB, 1);
    int result;
    fill(at, 4 * MIB, 3);
    break_off(back, pinned);
    cr_assert(in_stream ? vram_memory_free_in(at, NULL, &result) : vram_memory_free(at, &result));
    cr_assert_eq(result, 0);
    OK(cuCtxSynchronize());
    vram_memory_reap();
    cr_assert_eq(proof_usage(0).faults, 0);
    sim_set_latency_us(0);
    at = served(4 * MIB, 1);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE); /* this settles the ring */
    cr_assert(vram_memory_free(at, &result) && !result);
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert_eq(vram_sums(0, UINT32_MAX).backup, 0);
}

Test(simcuda_moving, free_beside_a_copy_that_goes_on) {
    for (int i = 0; i < 8; i++) free_beside_copy(i & 1, i & 2 ? 64 * MIB : 0, i & 4);
}
