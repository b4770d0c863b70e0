// memstow may keep a block's copy on the host after the content has come back to the device. The next move out then
// copies only what has changed, as shown by hashes that the device computes. The tests use the simulated CUDA driver, a
// test double, whose memstow_hash is a function in C.
#include "moving_proof.h"

#include "preload/copies/vram_stock.h"
#include "preload/vram/vram_backup.h"

/* Whether the driver accepts kernels, but never runs them. */
static bool runs_nothing;

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, CUstream stream, void **arguments, void **extra) {
    if (runs_nothing) return CUDA_SUCCESS;
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}

static void *function(const char *name) {
    return strcmp(name, "cuLaunchKernel") ? moving_function(name) : (void *)launch;
}

static void begin(void) { moving_begin(function); }
TestSuite(simcuda_keeping, .init = begin);

static struct vram_unchanged unchanged;

static struct vram_move_options keeping(void) {
    return (struct vram_move_options){
        .milliseconds = 2000, .limits = {.standby = 64 * MIB}, .unchanged = &unchanged, .owner = 1};
}

static void leaves(struct vram_move_options options, uint64_t bytes, uint64_t of_it_unchanged) {
    uint64_t moved;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(moved, bytes);
    cr_assert_eq(unchanged.bytes, of_it_unchanged, "%lu", (unsigned long)unchanged.bytes);
}

static void comes_back(struct vram_move_options options, uint64_t bytes) {
    uint64_t moved;
    cr_assert_eq(in(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(moved, bytes);
}

static void goes_round(struct vram_move_options options, uint64_t bytes, uint64_t of_it_unchanged) {
    leaves(options, bytes, of_it_unchanged);
    comes_back(options, bytes);
}

Test(simcuda_keeping, nothing_is_copied_if_nothing_has_changed) {
    uint64_t at[20];
    for (uint32_t pinned = 0; pinned < 2; pinned++) {
        struct vram_move_options options = keeping();
        options.limits.pinned = pinned * 64 * MIB;
        for (uint32_t i = 0; i < 20; i++) fill(at[i] = served(2 * MIB, 1), 2 * MIB, i);
        goes_round(options, 40 * MIB, 0);
        cr_assert_eq(vram_backup_standby(), 40 * MIB);
        for (int i = 0; i < 3; i++) {
            sim_count_reset();
            leaves(options, 40 * MIB, 40 * MIB);
            cr_assert(!sim_count("cuMemcpyDtoHAsync_v2") && !vram_backup_standby());
            comes_back(options, 40 * MIB);
        }
        for (uint32_t i = 0; i < 20; i++) cr_assert(holds(at[i], 2 * MIB, i));
        for (int i = 0, result; i < 20; i++) cr_assert(vram_memory_free(at[i], &result) && !result);
        cr_assert(!vram_backup_standby() && !vram_backup_bytes(VRAM_BACKUP_KINDS));
    }
}

/* One bit changes, in the first, the last and other words. This is noticed, and the changed bit comes back. */
Test(simcuda_keeping, one_bit_that_has_changed) {
    uint64_t at = served(4 * MIB, 1);
    fill(at, 4 * MIB, 7);
    goes_round(keeping(), 4 * MIB, 0);
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t where = at + i * (4 * MIB - 1) / 15;
        char byte;
        cr_assert_eq(sim_peek(&byte, where, 1), 0);
        byte ^= (char)(1 << i % 8);
        cr_assert_eq(sim_poke(where, &byte, 1), 0);
        goes_round(keeping(), 4 * MIB, 0);
        char back;
        cr_assert_eq(sim_peek(&back, where, 1), 0);
        cr_assert_eq(back, byte);
        goes_round(keeping(), 4 * MIB, 4 * MIB);
    }
}

Test(simcuda_keeping, only_the_block_that_has_changed_is_copied) {
    uint64_t first = served(6 * MIB, 1), second = served(4 * MIB, 1), third = served(2 * MIB, 1);
    goes_round(keeping(), 12 * MIB, 0);
    fill(second, 4 * MIB, 5);
    sim_count_reset();
    goes_round(keeping(), 12 * MIB, 8 * MIB);
    cr_assert_eq(sim_count("cuMemcpyDtoHAsync_v2"), 1);
    cr_assert(first && third && holds(second, 4 * MIB, 5));
    cr_assert_eq(vram_backup_standby(), 12 * MIB);
}

/* Content that is exchanged between two blocks, or between two places of one block, counts as changed. */
Test(simcuda_keeping, content_in_another_place_has_changed) {
    uint64_t first = served(4 * MIB, 1), second = served(4 * MIB, 1);
    fill(first, 4 * MIB, 1);
    fill(second, 4 * MIB, 2);
    goes_round(keeping(), 8 * MIB, 0);
    fill(first, 4 * MIB, 2);
    fill(second, 4 * MIB, 1);
    goes_round(keeping(), 8 * MIB, 0);
    fill(first, 2 * MIB, 1);
    fill(first + 2 * MIB, 2 * MIB, 2);
    goes_round(keeping(), 8 * MIB, 4 * MIB);
    fill(first, 2 * MIB, 2);
    fill(first + 2 * MIB, 2 * MIB, 1);
    goes_round(keeping(), 8 * MIB, 4 * MIB);
    cr_assert(holds(first, 2 * MIB, 2) && holds(first + 2 * MIB, 2 * MIB, 1) && holds(second, 4 * MIB, 1));
}

/* With the option verify, a kept copy is compared with the content, like any other copy. */
Test(simcuda_keeping, verified) {
    struct vram_move_options options = keeping();
    options.verify = true;
    fill(served(4 * MIB, 1), 4 * MIB, 1);
    goes_round(options, 4 * MIB, 0);
    sim_count_reset();
    goes_round(options, 4 * MIB, 4 * MIB);
    cr_assert_gt(sim_count("cuMemcpyDtoHAsync_v2"), 0);
}

/* --- what is kept, and for how long */

Test(simcuda_keeping, no_more_than_the_limit) {
    struct vram_move_options options = keeping();
    for (int i = 0; i < 6; i++) served(2 * MIB, 1);
    options.limits.standby = 7 * MIB;
    goes_round(options, 12 * MIB, 0);
    cr_assert_eq(vram_backup_standby(), 6 * MIB);
    goes_round(options, 12 * MIB, 6 * MIB);
    options.limits.standby = 0;
    options.unchanged = NULL;
    sim_count_reset();
    goes_round(options, 12 * MIB, 6 * MIB); /* kept by the move before */
    cr_assert(!vram_backup_standby() && !sim_count("cuLaunchKernel"));
}

/* Blocks that leave a device have priority in host memory: kept copies of another model make room for them. */
Test(simcuda_keeping, makes_room_for_what_leaves) {
    struct vram_move_options options = keeping();
    uint64_t at = served(8 * MIB, 2);
    served(4 * MIB, 1);
    served(4 * MIB, 1);
    fill(at, 8 * MIB, 2);
    options.limits.memory = 12 * MIB;
    goes_round(options, 8 * MIB, 0);
    cr_assert_eq(vram_backup_standby(), 8 * MIB);
    options.owner = 2;
    leaves(options, 8 * MIB, 0);
    cr_assert_eq(vram_backup_standby(), 4 * MIB, "no more than was needed");
    comes_back(options, 8 * MIB);
    cr_assert(holds(at, 8 * MIB, 2));
}

Test(simcuda_keeping, given_back_on_demand) {
    struct vram_move_options options = keeping();
    options.limits.pinned = 4 * MIB;
    served(4 * MIB, 1);
    served(4 * MIB, 1);
    goes_round(options, 8 * MIB, 0);
    cr_assert_eq(vram_backup_standby(), 8 * MIB);
    vram_move_shrink();
    cr_assert(!vram_backup_standby() && !vram_backup_bytes(VRAM_BACKUP_KINDS) && !vram_stock_bytes());
    goes_round(options, 8 * MIB, 0);
}

Test(simcuda_keeping, not_for_content_that_is_given_up) {
    struct vram_move_options options = keeping();
    uint64_t moved;
    served(4 * MIB, 1);
    goes_round(options, 4 * MIB, 0);
    options.discard = true;
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_DONE);
    cr_assert(moved == 4 * MIB && !vram_backup_standby() && !vram_backup_bytes(VRAM_BACKUP_KINDS));
    comes_back(options, 4 * MIB);
    cr_assert_eq(vram_backup_standby(), 0);
}

/* --- no hash, no proof: everything is copied */

Test(simcuda_keeping, a_kernel_that_cannot_be_loaded) {
    sim_fail("cuModuleLoadData", 1, 222, 1);
    fill(served(4 * MIB, 1), 4 * MIB, 1);
    goes_round(keeping(), 4 * MIB, 0);
    cr_assert_eq(unchanged.error, 222);
    goes_round(keeping(), 4 * MIB, 0);
    cr_assert(!vram_backup_standby() && sim_count("cuModuleLoadData") == 1, "it is tried once");
}

Test(simcuda_keeping, each_call_in_turn_fails) {
    static const char *const names[] = {"cuModuleLoadData", "cuModuleGetFunction", "cuStreamCreate", "cuEventCreate",
                                        "cuMemHostAlloc",   "cuLaunchKernel",      "cuEventRecord",  "cuEventQuery"};
    uint64_t at = served(4 * MIB, 1), moved;
    fill(at, 4 * MIB, 3);
    for (uint32_t i = 0; i < 8; i++) {
        for (uint64_t nth = 1; nth < 7; nth++) {
            sim_fail(names[i], nth, 719, 1);
            out(keeping(), &moved);
            sim_fail(NULL, 0, 0, 0);
            in(keeping(), &moved);
            cr_assert(holds(at, 4 * MIB, 3), "%s", names[i]);
        }
    }
}

/* Each wait for the hash fails, so a kernel may still read the block, and the block stays on the device. Every later
 * move waits for that hash first, even a move that wants no hash itself. */
Test(simcuda_keeping, a_move_that_wants_no_hash_after_waits_that_failed) {
    uint64_t at = served(4 * MIB, 1), moved;
    fill(at, 4 * MIB, 3);
    sim_fail("cuEventQuery", 1, 719, 1000);
    cr_assert_eq(out(keeping(), &moved), VRAM_REFUSAL_DRIVER);
    sim_fail(NULL, 0, 0, 0);
    cr_assert_eq(out(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert_eq(in(ANY, &moved), VRAM_REFUSAL_DONE);
    cr_assert(moved == 4 * MIB && holds(at, 4 * MIB, 3));
}

Test(simcuda_keeping, a_kernel_that_hashes_nothing_proves_nothing) {
    uint64_t at = served(4 * MIB, 1);
    runs_nothing = true;
    fill(at, 4 * MIB, 1);
    goes_round(keeping(), 4 * MIB, 0);
    fill(at, 4 * MIB, 2);
    goes_round(keeping(), 4 * MIB, 0);
    cr_assert(holds(at, 4 * MIB, 2) && !vram_backup_standby());
}

static void *no_kernels(const char *name) {
    return !strncmp(name, "cuLaunch", 8) || !strncmp(name, "cuModule", 8) ? NULL : moving_function(name);
}

Test(simcuda_keeping_without, kernels) {
    moving_begin(no_kernels);
    served(4 * MIB, 1);
    goes_round(keeping(), 4 * MIB, 0);
    goes_round(keeping(), 4 * MIB, 0);
    cr_assert(!vram_backup_standby() && unchanged.error);
}

/* --- a kernel that does not begin, because the program keeps the device busy */

static int holds_now;

static void hold_the_device(void) { sim_hold(1), holds_now++; }

Test(simcuda_keeping, a_kernel_that_does_not_end) {
    struct vram_move_options options = keeping();
    uint64_t moved, at = served(4 * MIB, 1), other = served(4 * MIB, 1);
    int result;
    fill(at, 4 * MIB, 1);
    goes_round(options, 8 * MIB, 0);
    options.milliseconds = 100;
    sim_tell("cuLaunchKernel", hold_the_device);
    cr_assert_eq(out(options, &moved), VRAM_REFUSAL_BUSY);
    cr_assert(!moved && vram_sums(1, UINT32_MAX).live == 8 * MIB && unchanged.error);
    sim_tell(NULL, NULL);
    sim_hold(-holds_now);
    cr_assert(vram_memory_free(other, &result) && !result);
    OK(cuCtxSynchronize());
    cr_assert_eq(proof_usage(0).faults, 0);
    options.milliseconds = 2000;
    goes_round(options, 4 * MIB, 0);
    goes_round(options, 4 * MIB, 4 * MIB);
    cr_assert(holds(at, 4 * MIB, 1));
}

/* --- contexts */

Test(simcuda_keeping, of_several_contexts) {
    CUcontext second;
    struct vram_move_options options = keeping();
    uint64_t at[4];
    for (uint32_t turn = 0; turn < 2; turn++) {
        OK(cuCtxCreate_v2(&second, 0, 0));
        for (uint32_t i = 0; i < 4; i++) {
            cuda_handle context = (cuda_handle)(i % 2 ? second : proof_context);
            struct vram_request request = {.bytes = 2 * MIB, .owner = 1, .context = context};
            OK(vram_memory_serve(&request, &at[i]));
            fill(at[i], 2 * MIB, i);
        }
        options.owner = 0;
        goes_round(options, 8 * MIB + turn * 4 * MIB, turn * 4 * MIB);
        goes_round(options, 8 * MIB + turn * 4 * MIB, 8 * MIB + turn * 4 * MIB);
        for (uint32_t i = 0; i < 4; i++) cr_assert(holds(at[i], 2 * MIB, i));
        uint64_t end = vram_contexts_end_begins();
        OK(cuCtxDestroy_v2(second));
        OK(cuCtxSetCurrent(proof_context));
        vram_contexts_ended((cuda_handle)second, NULL, end);
        cr_assert_eq(vram_backup_standby(), 4 * MIB + turn * 4 * MIB);
    }
}
