// The simulated CUDA driver, a test double: threads allocate, use and free by every kind of call at the same time,
// while calls fail now and then. A thread reads what it wrote, and at the end nothing is left.
#include <pthread.h>

#include "proof.h"

enum { THREADS = 4, STEPS = 400, SLOTS = 12 };

struct slot {
    enum { NOTHING, PLAIN, POOLED, MAPPED } kind;
    CUdeviceptr at;
    size_t size;
    CUmemGenericAllocationHandle handle;
    uint32_t word;
};

struct worker {
    unsigned seed;
    CUstream stream;
    struct slot slots[SLOTS];
    int wrong;
};

static unsigned next(struct worker *self, unsigned below) {
    self->seed = self->seed * 1103515245u + 12345u;
    return (self->seed >> 8) % below;
}

static bool map(struct slot *slot) {
    CUmemAllocationProp prop = proof_prop(0);
    CUmemAccessDesc access = proof_access(0);
    slot->size = 2 * MIB;
    if (cuMemAddressReserve(&slot->at, slot->size, 0, 0, 0)) return false;
    if (cuMemCreate(&slot->handle, slot->size, &prop, 0)) goto no_handle;
    if (cuMemMap(slot->at, slot->size, 0, slot->handle, 0)) goto no_map;
    if (!cuMemSetAccess(slot->at, slot->size, &access, 1)) return true;
    while (cuMemUnmap(slot->at, slot->size)) continue;
no_map:
    while (cuMemRelease(slot->handle)) continue;
no_handle:
    while (cuMemAddressFree(slot->at, slot->size)) continue;
    return false;
}

static void fill(struct worker *self, struct slot *slot) {
    slot->word = next(self, 1u << 24);
    while (cuMemsetD32Async(slot->at, slot->word, 1, self->stream)) continue;
    while (cuMemsetD32Async(slot->at + slot->size - 4, slot->word, 1, self->stream)) continue;
}

static void take(struct worker *self, struct slot *slot) {
    bool got;
    slot->kind = (int)next(self, 3) + PLAIN;
    slot->size = (next(self, 3000) + 1) * 512;
    if (slot->kind == PLAIN)
        got = !cuMemAlloc_v2(&slot->at, slot->size);
    else if (slot->kind == POOLED)
        got = !cuMemAllocAsync(&slot->at, slot->size, self->stream);
    else
        got = map(slot);
    if (got)
        fill(self, slot);
    else
        slot->kind = NOTHING;
}

static void look(struct worker *self, const struct slot *slot) {
    uint32_t ends[2] = {0};
    while (cuMemcpyDtoHAsync_v2(&ends[0], slot->at, 4, self->stream)) continue;
    while (cuMemcpyDtoHAsync_v2(&ends[1], slot->at + slot->size - 4, 4, self->stream)) continue;
    while (cuStreamSynchronize(self->stream)) continue;
    self->wrong += ends[0] != slot->word || ends[1] != slot->word;
}

static void drop(struct worker *self, struct slot *slot) {
    if (slot->kind == PLAIN) {
        while (cuMemFree_v2(slot->at)) continue;
    } else if (slot->kind == POOLED) {
        while (cuMemFreeAsync(slot->at, self->stream)) continue;
    } else {
        while (cuStreamSynchronize(self->stream)) continue;
        while (cuMemUnmap(slot->at, slot->size)) continue;
        while (cuMemRelease(slot->handle)) continue;
        while (cuMemAddressFree(slot->at, slot->size)) continue;
    }
    slot->kind = NOTHING;
}

static void *work(void *argument) {
    struct worker *self = argument;
    while (cuCtxSetCurrent(proof_context)) continue;
    while (cuStreamCreate(&self->stream, self->seed % 2)) continue;
    for (int i = 0; i < STEPS; i++) {
        struct slot *slot = &self->slots[next(self, SLOTS)];
        if (!slot->kind)
            take(self, slot);
        else if (next(self, 2))
            look(self, slot);
        else
            drop(self, slot);
    }
    for (int i = 0; i < SLOTS; i++)
        if (self->slots[i].kind) drop(self, &self->slots[i]);
    while (cuStreamDestroy_v2(self->stream)) continue;
    return NULL;
}

Test(simcuda_churn, threads_and_failures) {
    pthread_t threads[THREADS];
    struct worker workers[THREADS] = {0};
    proof_begin();
    uint64_t before = proof_usage(0).used;
    for (unsigned i = 1; i < 30; i++) sim_fail("*", i * 97, 719, 1 + i % 2);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(workers[i].wrong, 0, "thread %d read what it did not write %d times", i, workers[i].wrong);
    }
    sim_fail(NULL, 0, 0, 0);
    OK(cuCtxSynchronize());
    struct sim_usage usage = proof_usage(0);
    cr_assert_eq(usage.used, before);
    cr_assert(!usage.blocks && !usage.reserved_va && !usage.pending && !usage.faults);
}
