/* _rescue.c — a program that asks a device of 48 MiB for more than is left, while unused models have the rest; over the
 * simulated driver (a test double). The first argument is the case. */
#include "_model.h"

#include <time.h>

/* A model with 20 of the 40 MiB that the context leaves. */
static struct model held(uint32_t policy, int idle) { return model_load("held", 20 * MIB, policy, idle); }

static int ask_in_pool(size_t bytes, void **at) { return cudaMallocAsync(at, bytes, NULL); }

static void is_whole_again(const struct model *self) {
    MUST(model_out(self) == self->bytes && memstow_restore_(self->owner) == (int64_t)self->bytes);
    MUST(model_holds(self) && !usage().faults);
}

/* A model that the program loads gets the device memory of an idle model. */
static void makes_room(void) {
    struct model self = held(MEMSTOW_STOW, 1), next = model_open("next");
    void *at;
    MUST(!memstow_scope_enter_(next.owner) && !ask_in_pool(24 * MIB, &at) && !memstow_scope_leave_(next.owner));
    MUST(model_out(&self) == 20 * MIB);
    MUST(!cudaFreeAsync(at, NULL) && !cudaDeviceSynchronize());
    is_whole_again(&self);
}

/* A rescue for plain memory begins at the second request: at the first refusal a program may free a cache of its own,
 * as PyTorch does. */
static void asked_twice(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    void *at;
    MUST(cudaMalloc(&at, 24 * MIB) == OUT_OF_MEMORY && !model_out(&self));
    MUST(!cudaMalloc(&at, 24 * MIB) && model_out(&self) == 20 * MIB);
    MUST(!cudaFree(at));
    is_whole_again(&self);
}

/* A program tries how much it can get, and is given the memory that is free. */
static void probe(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    size_t bytes = 36 * MIB;
    void *at;
    uint64_t waits = sim_count("cuCtxSynchronize");
    while (cudaMalloc(&at, bytes)) bytes /= 2;
    MUST(bytes == 18 * MIB && !model_out(&self) && sim_count("cuCtxSynchronize") == waits);
}

/* Each entry that requests device memory starts a rescue. */
static void other_entries(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemAllocationProp physical = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemGenericAllocationHandle memory;
    CUmemoryPool pool;
    CUdeviceptr at;
    size_t pitch;
    MUST(!cuMemPoolCreate(&pool, &properties));
    MUST(!cuMemAllocFromPoolAsync(&at, 24 * MIB, pool, NULL) && !cuMemFreeAsync(at, NULL));
    MUST(!cudaDeviceSynchronize() && !cuMemPoolTrimTo(pool, 0));
    is_whole_again(&self);
    MUST(cuMemAllocPitch_v2(&at, &pitch, MIB, 24, 4) == OUT_OF_MEMORY);
    MUST(!cuMemAllocPitch_v2(&at, &pitch, MIB, 24, 4) && !cuMemFree_v2(at));
    is_whole_again(&self);
    MUST(cuMemCreate(&memory, 24 * MIB, &physical, 0) == OUT_OF_MEMORY);
    MUST(!cuMemCreate(&memory, 24 * MIB, &physical, 0) && !cuMemRelease(memory));
    is_whole_again(&self);
}

/* A refused request for host memory starts no rescue: a rescue would take more host memory. */
static void of_the_host(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    CUmemAllocationProp physical = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_HOST, 0}};
    CUmemGenericAllocationHandle memory;
    sim_fail("cuMemCreate", 1, OUT_OF_MEMORY, 10);
    for (int i = 0; i < 2; i++) MUST(cuMemCreate(&memory, 24 * MIB, &physical, 0) == OUT_OF_MEMORY);
    MUST(!model_out(&self));
}

static void refused_for(struct model self) {
    void *at;
    MUST(ask_in_pool(24 * MIB, &at) == OUT_OF_MEMORY && !model_out(&self) && model_holds(&self));
}

static void in_use(void) { refused_for(held(MEMSTOW_STOW, 0)); }
static void is_kept(void) { refused_for(held(MEMSTOW_KEEP, 1)); }
static void nothing_said(void) { refused_for(held(0, 1)); }
static void turned_off(void) { refused_for(held(MEMSTOW_STOW, 1)); }

/* MEMSTOW_CUDA_RESCUE=kept: a rescue also stows models with the policy "keep". */
static void kept_is_taken(void) {
    struct model self = held(MEMSTOW_KEEP, 1);
    void *at;
    MUST(!ask_in_pool(24 * MIB, &at) && !cudaFreeAsync(at, NULL) && !cudaDeviceSynchronize());
    is_whole_again(&self);
}

/* A rescue stows a model with the policy "free", because only the program could free it, and a rescue does not ask the
 * program. */
static void to_be_freed(void) {
    struct model self = held(MEMSTOW_FREE, 1);
    void *at;
    MUST(!ask_in_pool(24 * MIB, &at) && !cudaFreeAsync(at, NULL) && !cudaDeviceSynchronize());
    is_whole_again(&self);
}

/* The rescue does not stow the model whose scope made the request. */
static void own_scope(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    MUST(!memstow_scope_enter_(self.owner));
    refused_for(self);
    MUST(!memstow_scope_leave_(self.owner));
}

static void captured(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    CUstream stream, other;
    CUgraph graph;
    void *at;
    MUST(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) && !cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(!cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED));
    uint64_t waits = sim_count("cuCtxSynchronize");
    MUST(cudaMallocAsync(&at, 24 * MIB, other) == OUT_OF_MEMORY && !model_out(&self));
    MUST(sim_count("cuCtxSynchronize") == waits && !cuStreamEndCapture(stream, &graph));
    MUST(!cudaMallocAsync(&at, 24 * MIB, other) && model_out(&self) == 20 * MIB);
}

static int result_in_callback;
static void ask_in_callback(void *unused) {
    void *at;
    (void)unused;
    for (int i = 0; i < 2; i++) result_in_callback = cudaMalloc(&at, 24 * MIB);
}

static void in_callback(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    uint64_t waits = sim_count("cuCtxSynchronize");
    MUST(!cuLaunchHostFunc(NULL, ask_in_callback, NULL) && !cuStreamSynchronize(NULL));
    MUST(result_in_callback && !model_out(&self) && sim_count("cuCtxSynchronize") == waits);
}

/* A rescue moves as few owners as it needs, in the order of decisions. */
static void in_order(void) {
    struct model later = model_load("later", 10 * MIB, MEMSTOW_STOW, 1);
    struct model first = model_load("first", 10 * MIB, MEMSTOW_STOW, 1);
    void *at, *rest;
    MUST(!memstow_owner_policy_(later.owner, MEMSTOW_STOW, 1) && !memstow_owner_policy_(first.owner, MEMSTOW_STOW, 0));
    MUST(!cudaMalloc(&rest, 18 * MIB) && !ask_in_pool(8 * MIB, &at));
    MUST(model_out(&first) == 10 * MIB && !model_out(&later));
    MUST(!ask_in_pool(8 * MIB, &at) && model_out(&later) == 10 * MIB);
    MUST(!cudaFree(rest));
    is_whole_again(&first);
}

/* Several threads are refused at the same time: one rescue serves all. */
static pthread_barrier_t together;
static int results[4];

static void *ask_with_others(void *index) {
    void *at;
    pthread_barrier_wait(&together);
    results[(uintptr_t)index] = ask_in_pool(9 * MIB, &at);
    return NULL;
}

static void threads(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    pthread_t all[4];
    MUST(!pthread_barrier_init(&together, NULL, 4));
    for (uintptr_t i = 0; i < 4; i++) MUST(!pthread_create(&all[i], NULL, ask_with_others, (void *)i));
    for (int i = 0; i < 4; i++) MUST(!pthread_join(all[i], NULL));
    for (int i = 0; i < 4; i++) MUST(!results[i]);
    MUST(model_out(&self) == 20 * MIB);
}

/* Another thread is already moving out enough memory. The request waits for that move. */
static struct model moving;
static void *stow_it(void *unused) {
    MUST(memstow_stow_(moving.owner) == 20 * (int64_t)MIB);
    return unused;
}

static void beside_a_move(void) {
    pthread_t thread;
    void *at;
    moving = held(MEMSTOW_KEEP, 1);
    sim_set_latency_us(50000);
    uint64_t copies = sim_count("cuMemcpyDtoHAsync_v2");
    MUST(!pthread_create(&thread, NULL, stow_it, NULL));
    while (sim_count("cuMemcpyDtoHAsync_v2") == copies) usleep(100);
    MUST(!ask_in_pool(24 * MIB, &at));
    sim_set_latency_us(0);
    MUST(!pthread_join(thread, NULL) && model_out(&moving) == 20 * MIB);
}

/* The same as beside_a_move(), but the move does not end. The request does not wait for ever, but is refused. */
static void behind_a_long_move(void) {
    pthread_t thread;
    void *at;
    moving = held(MEMSTOW_STOW, 1);
    uint64_t copies = sim_count("cuMemcpyDtoHAsync_v2");
    sim_hold(1);
    MUST(!pthread_create(&thread, NULL, stow_it, NULL));
    while (sim_count("cuMemcpyDtoHAsync_v2") == copies) usleep(100);
    for (int i = 0; i < 2; i++) MUST(cudaMalloc(&at, 24 * MIB) == OUT_OF_MEMORY && !model_out(&moving));
    sim_hold(-1);
    MUST(!pthread_join(thread, NULL) && model_out(&moving) == 20 * MIB);
}

/* A kernel does not end. The rescue must not wait for it for ever, because the program may hold locks meanwhile. So the
 * request is refused. */
static void a_kernel_does_not_end(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    CUstream stream;
    void *at;
    struct timespec begin, end;
    MUST(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch_endless(stream);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 20; i++) MUST(cudaMalloc(&at, 24 * MIB) == OUT_OF_MEMORY); /* only the first waits */
    clock_gettime(CLOCK_MONOTONIC, &end);
    MUST(end.tv_sec - begin.tv_sec < 10 && !model_out(&self));
    sim_release_kernels(1);
    MUST(!cudaDeviceSynchronize() && model_holds(&self));
}

/* A rescue that freed nothing is not repeated at once: a program may ask a thousand times. */
static void not_again_at_once(void) {
    struct model self = held(MEMSTOW_STOW, 0);
    void *at;
    for (int i = 0; i < 100; i++) MUST(ask_in_pool(24 * MIB, &at) == OUT_OF_MEMORY);
    MUST(!memstow_owner_idle_(self.owner, 1));
    for (int i = 0; i < 100 && ask_in_pool(24 * MIB, &at); i++) usleep(100000);
    MUST(model_out(&self) == 20 * MIB);
}

/* A program declares a model in use while the model is on its way out. After that call the model is whole, either out
 * or in, and does not move any more. */
static struct model wanted;
static void *ask_slowly(void *unused) {
    void *at;
    MUST(!ask_in_pool(24 * MIB, &at) && !cudaFreeAsync(at, NULL));
    return unused;
}

static void *let_go_later(void *unused) {
    usleep(200000);
    sim_hold(-1);
    return unused;
}

static void used_again(void) {
    pthread_t thread, later;
    wanted = held(MEMSTOW_STOW, 1);
    uint64_t copies = sim_count("cuMemcpyDtoHAsync_v2"), unmapped = sim_count("cuMemUnmap");
    sim_hold(1);
    MUST(!pthread_create(&thread, NULL, ask_slowly, NULL));
    while (sim_count("cuMemcpyDtoHAsync_v2") == copies) usleep(100);
    MUST(sim_count("cuMemUnmap") == unmapped && !pthread_create(&later, NULL, let_go_later, NULL));
    MUST(!memstow_owner_idle_(wanted.owner, 0));
    MUST(sim_count("cuMemUnmap") == unmapped + 1 && model_out(&wanted) == 20 * MIB);
    MUST(!pthread_join(thread, NULL) && !pthread_join(later, NULL) && !cudaDeviceSynchronize());
    is_whole_again(&wanted);
}

/* While the program is in the middle of a trigger of its own, there is no rescue. */
static void in_a_trigger(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    MUST(memstow_trigger_begin_(MEMSTOW_RUN_ENDED, "", 0, NULL, 0, 0) == 1);
    refused_for(self);
    MUST(memstow_trigger_end_() >= 20 * (int64_t)MIB && model_out(&self) == 20 * MIB);
}

/* A program cannot begin a trigger with the reason that only memstow itself may give. */
static void not_by_the_program(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    MUST(memstow_trigger_(5, "") == -EINVAL && memstow_trigger_begin_(5, "", 0, NULL, 0, 0) == -EINVAL);
    MUST(!model_out(&self));
}

/* Moving models out is not enough: the program gets the error, and the models come back on request. */
static void too_much(void) {
    struct model self = held(MEMSTOW_STOW, 1);
    void *at;
    MUST(ask_in_pool(45 * MIB, &at) == OUT_OF_MEMORY);
    is_whole_again(&self);
}

/* Memory on another device does not help. */
static void other_device(void) {
    struct model self = held(MEMSTOW_STOW, 1), other;
    void *at;
    MUST(!cudaSetDevice(1));
    other = model_load("other", 20 * MIB, MEMSTOW_STOW, 1);
    MUST(!ask_in_pool(24 * MIB, &at) && !model_out(&self) && model_out(&other) == 20 * MIB);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"makes_room", makes_room},
                                              {"asked_twice", asked_twice},
                                              {"probe", probe},
                                              {"other_entries", other_entries},
                                              {"of_the_host", of_the_host},
                                              {"in_use", in_use},
                                              {"is_kept", is_kept},
                                              {"nothing_said", nothing_said},
                                              {"turned_off", turned_off},
                                              {"kept_is_taken", kept_is_taken},
                                              {"to_be_freed", to_be_freed},
                                              {"own_scope", own_scope},
                                              {"captured", captured},
                                              {"in_callback", in_callback},
                                              {"in_order", in_order},
                                              {"threads", threads},
                                              {"beside_a_move", beside_a_move},
                                              {"behind_a_long_move", behind_a_long_move},
                                              {"a_kernel_does_not_end", a_kernel_does_not_end},
                                              {"not_again_at_once", not_again_at_once},
                                              {"used_again", used_again},
                                              {"in_a_trigger", in_a_trigger},
                                              {"not_by_the_program", not_by_the_program},
                                              {"too_much", too_much},
                                              {"other_device", other_device}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
