// Device memory that memstow serves, over the simulated CUDA driver (a test double). The tests:
// - Each call of the driver fails in turn.
// - One thread takes random steps while calls of the driver fail. Another test does the same with several threads.
// - Several threads allocate, free and move memory at the same time.
// timeout: 600
#include "moving_proof.h"

#include "preload/copies/vram_stock.h"

static void begin(void) { moving_begin(moving_function); }
TestSuite(simcuda_random, .init = begin);

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

/* A thread that takes steps, with its own blocks. Either one thread takes them for all owners, or each owner has a
 * thread. */
struct walker {
    struct slot slots[SLOTS];
    uint32_t random, owner; /* 0: any */
};

/* A lock for each owner. Whoever uses or moves memory of an owner holds the owner's lock, so that no memory moves while
 * a thread uses it. A move of all owners takes all locks, in the order of this array. A free takes no lock. */
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
    struct vram_found block;
    cr_assert(vram_memory_find(at, &block));
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

/* A free that fails leaves the block, and can be tried again. */
static void free_surely(uint64_t at) {
    for (int result = 1; result;) cr_assert(vram_memory_free(at, &result));
}

static void release(struct walker *self, struct slot *slot) {
    int result = 1;
    while (result)
        cr_assert(random_below(&self->random, 2) ? vram_memory_free(slot->at, &result)
                                                 : vram_memory_free_in(slot->at, NULL, &result));
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
    struct vram_move_options options = {.owner = random_below(&self->random, OWNERS + 1),
                                        .milliseconds = 5000,
                                        .verify = random_below(&self->random, 2)};
    options.limits.pinned = random_below(&self->random, 2) * 4 * MIB;
    options.limits.standby = random_below(&self->random, 3) * 4 * MIB;
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
        cr_assert(vram_memory_free(slot->at, &result) && !result);
        slot->at = 0;
    }
}

/* Makes one more copy, because a copy that failed to end keeps its memory until another copy has ended. */
static void one_more_copy(void) {
    uint64_t moved, at = served(2 * MIB, 1);
    int result;
    cr_assert_eq(out((struct vram_move_options){.milliseconds = 5000}, &moved), VRAM_REFUSAL_DONE);
    in((struct vram_move_options){.milliseconds = 5000}, &moved);
    vram_memory_free(at, &result);
}

/* Brings everything back, checks it, and frees it. Gives the pinned memory of backups back, too. After that memstow has
 * nothing in the driver but its ring (vram_ring.h). */
static void finish(struct walker *walkers, int count, uint64_t before) {
    uint64_t moved;
    int result;
    sim_fail(NULL, 0, 0, 0);
    in((struct vram_move_options){.milliseconds = 5000}, &moved);
    for (int i = 0; i < count; i++) look_and_free(&walkers[i]);
    OK(cuCtxSynchronize());
    one_more_copy();
    vram_memory_free(served(2 * MIB, 1), &result); /* a request gives back what was freed before */
    vram_stock_shrink(&vram_driver);
    struct sim_usage usage = proof_usage(0);
    struct vram_sums sums = vram_sums(0, UINT32_MAX);
    cr_assert_eq(usage.used, before);
    cr_assert(!usage.blocks && !usage.reserved_va && !usage.faults && !usage.pending && !usage.registered);
    cr_assert_eq(vram_stock_bytes(), 0);
    cr_assert(!sums.live && !sums.stowed && !sums.asked && !sums.backup && !sums.blocks && !sums.wrecks &&
                  !sums.in_streams && !sums.streams_taken,
              "live %lu, stowed %lu, asked %lu, backup %lu, blocks %lu, wrecks %lu, in streams %lu, streams taken %lu",
              (unsigned long)sums.live, (unsigned long)sums.stowed, (unsigned long)sums.asked,
              (unsigned long)sums.backup, (unsigned long)sums.blocks, (unsigned long)sums.wrecks,
              (unsigned long)sums.in_streams, (unsigned long)sums.streams_taken);
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
        struct vram_move_options options = ANY;
        options.limits.pinned = pinned;
        out(options, &moved);
        in(ANY, &moved);
        release(&self, &self.slots[1]);
        if (!serve(2 * MIB, 1, &served_late)) free_surely(served_late);
        calls = sim_count("*");
        finish(&self, 1, before);
    } while (calls >= nth); /* until the error would come after the last call */
    cr_assert_gt(nth, 50);
}

Test(simcuda_random, an_error_at_each_call_in_turn) { fail_at_each_call(0); }

Test(simcuda_random, the_same_with_pinned_backups) { fail_at_each_call(64 * MIB); }

static uint32_t number_asked(const char *variable, uint32_t otherwise) {
    const char *asked = getenv(variable);
    return asked ? (uint32_t)atoi(asked) : otherwise;
}

/* simcuda/moving_long.py asks for many. */
enum { STEPS = 60 };
static uint32_t rounds(uint32_t few) { return number_asked("SIMCUDA_ROUNDS", few); }

/* Makes one call of the driver fail in each round: the first call in the first round, the second call in the second
 * round, and so on. When a round has had fewer calls than that, the next round begins with the first call again. In
 * every second round, a few random calls fail, too. */
static void inject(uint32_t round, uint32_t *random) {
    static uint64_t nth;
    if (sim_count("*") < nth) nth = 0;
    sim_count_reset();
    sim_fail("*", ++nth, round % 3 ? 719 : CUDA_ERROR_OUT_OF_MEMORY, 1 + round % 2);
    for (uint32_t i = 0; round % 2 && i < 6; i++)
        sim_fail("*", random_below(random, 900) + 1, 719, 1 + random_below(random, 2));
}

Test(simcuda_random, random_steps_with_errors, .timeout = 36000) {
    uint64_t before = proof_usage(0).used;
    struct walker self = {.random = number_asked("SIMCUDA_SEED", 1)};
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

Test(simcuda_random, random_steps_of_threads_with_errors, .timeout = 36000) {
    uint64_t before = proof_usage(0).used;
    struct walker walkers[OWNERS] = {0};
    uint32_t random = number_asked("SIMCUDA_SEED", 1);
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
        cr_assert(i % 2 ? vram_memory_free(at, &result) : vram_memory_free_in(at, NULL, &result));
    }
    return NULL;
}

static void *move_to_and_fro(void *unused) {
    uint64_t moved;
    cuCtxSetCurrent(proof_context);
    for (int i = 0; i < 15; i++) {
        out((struct vram_move_options){.owner = 9, .milliseconds = 5000}, &moved);
        in((struct vram_move_options){.owner = 9, .milliseconds = 5000}, &moved);
    }
    return unused;
}

Test(simcuda_random, threads) {
    pthread_t threads[4];
    uint64_t at = served(4 * MIB, 9), moved;
    fill(at, 4 * MIB, 11);
    for (uintptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 2; i < 4; i++) pthread_create(&threads[i], NULL, move_to_and_fro, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    in(ANY, &moved);
    cr_assert(holds(at, 4 * MIB, 11));
}
