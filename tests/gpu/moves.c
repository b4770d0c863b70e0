// env: MEMSTOW_CUDA_MOVES=2M MEMSTOW_CUDA_VERIFY=1
/* moves.c — a model's memory leaves the device and comes back with the same bytes at the same addresses. While it is
 * away, others can have the device's memory. If a move is refused, nothing changes. */
#include "gpu.h"

enum { PLAIN = 96 << 20, POOLED = 34 << 20 };
/* At most this much memory goes to the driver itself when the first stream and the first pinned memory are made. */
enum { FIRST = 64 << 20 };

static uint32_t model;
static CUdeviceptr plain, pooled;
static CUstream stream;

static void load(void) {
    model = gpu_model("unet");
    OK(cu.stream(&stream, 1));
    plain = gpu_alloc_for(model, PLAIN, NULL);
    pooled = gpu_alloc_for(model, POOLED, &stream);
    OK(cu.stream_wait(stream));
    gpu_write(plain, PLAIN, 1);
    gpu_write(pooled, POOLED, 2);
}

static void unload(void) {
    MUST(!abi_memstow_owner_idle(model, 0));
    OK(cu.free(plain));
    OK(cu.free_async(pooled, stream));
    OK(cu.stream_wait(stream));
    MUST(!abi_memstow_owner_retire(model));
}

static void look(void) {
    MUST(gpu_holds(plain, PLAIN, 1));
    MUST(gpu_holds(pooled, POOLED, 2));
}

static void leave(void) {
    MUST(!abi_memstow_owner_idle(model, 1));
    MUST(abi_memstow_stow(model) == PLAIN + POOLED);
    MUST(gpu_out_of(model) == PLAIN + POOLED);
}

static void come_back(void) {
    MUST(abi_memstow_restore(model) == PLAIN + POOLED);
    MUST(gpu_out_of(model) == 0);
}

static void out_and_back(void) {
    CUdeviceptr start;
    size_t bytes, before;
    load();
    MUST(abi_memstow_stow(model) == -EBUSY); /* it is not declared idle */
    look();
    for (int round = 0; round < 3; round++) {
        before = gpu_free_bytes();
        leave();
        MUST(gpu_free_bytes() + (round ? 0 : FIRST) >= before + PLAIN + POOLED);
        OK(cu.range(&start, &bytes, plain + 12345)); /* works while the memory is out */
        MUST(start == plain && bytes == PLAIN);
        come_back();
        look();
    }
    unload();
}

/* Kernels can use memory that came back. The next move out takes their changes along. */
static void used_in_between(void) {
    CUdeviceptr ones = 0;
    load();
    OK(cu.alloc(&ones, POOLED));
    gpu_fill(ones, POOLED / 4, 1, stream);
    gpu_fill(pooled, POOLED / 4, 40, stream);
    gpu_add(pooled, ones, POOLED / 4, stream);
    leave(); /* this waits for the kernels */
    come_back();
    MUST(gpu_all_are(pooled, POOLED / 4, 41));
    gpu_add(pooled, ones, POOLED / 4, stream);
    OK(cu.stream_wait(stream));
    MUST(gpu_all_are(pooled, POOLED / 4, 42));
    OK(cu.free(ones));
    unload();
}

static void freed_while_out(void) {
    load();
    size_t before = gpu_free_bytes();
    leave();
    OK(cu.free(plain));
    OK(cu.free_async(pooled, stream));
    OK(cu.stream_wait(stream));
    MUST(gpu_out_of(model) == 0);
    MUST(abi_memstow_restore(model) == 0);
    MUST(gpu_free_bytes() >= before + PLAIN + POOLED);
    MUST(!abi_memstow_owner_retire(model));
}

/* If the device's memory is taken, restore fails, and the model stays out until there is room. */
static void no_room_to_come_back(void) {
    CUdeviceptr taken[64], small;
    int count = 0;
    load();
    leave();
    for (size_t size = gpu_free_bytes(); size >= 4 * MIB && count < 64; size /= 2)
        while (count < 64 && !cu.alloc(&taken[count], size)) count++;
    MUST(count && gpu_free_bytes() < PLAIN + POOLED);
    MUST(abi_memstow_restore(model) == -ENOMEM);
    MUST(gpu_out_of(model) == PLAIN + POOLED);
    while (count--) OK(cu.free(taken[count]));
    come_back();
    look();
    OK(cu.alloc(&small, 4 * MIB));
    OK(cu.free(small));
    unload();
}

/* Memory that does not move: a block of two models, blocks below the given size, and shared memory. */
static void refused(void) {
    CUipcMemHandle handle;
    uint32_t other;
    load();
    other = gpu_model("clip");
    CUdeviceptr small = gpu_alloc_for(other, MIB, NULL);
    gpu_write(small, MIB, 3);
    MUST(!abi_memstow_owner_idle(other, 1));
    MUST(abi_memstow_stow(other) == 0);
    MUST(cu.ipc(&handle, plain) != 0);                          /* cannot be given to another process */
    MUST(!abi_memstow_assign(other, (void *)plain, PLAIN / 2)); // NOLINT: an address of the device
    MUST(!abi_memstow_owner_idle(model, 1));
    MUST(abi_memstow_stow(model) == POOLED && gpu_out_of(model) == POOLED);
    MUST(abi_memstow_restore(model) == POOLED);
    look();
    MUST(gpu_holds(small, MIB, 3));
    OK(cu.free(small));
    unload();
}

/* Kernels of another thread go on during the moves. */
static bool stop;

static void *work(void *unused) {
    CUdeviceptr own, ones;
    CUstream mine;
    uint32_t sum = 0;
    OK(cu.set_current(gpu_context));
    OK(cu.stream(&mine, 1));
    OK(cu.alloc(&own, 4 * MIB));
    OK(cu.alloc(&ones, 4 * MIB));
    gpu_fill(own, MIB, 0, mine);
    gpu_fill(ones, MIB, 1, mine);
    for (; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); sum++) {
        gpu_add(own, ones, MIB, mine);
        OK(cu.stream_wait(mine));
    }
    MUST(sum && gpu_all_are(own, MIB, sum));
    OK(cu.free(own));
    OK(cu.free(ones));
    return unused;
}

static void beside_work(void) {
    pthread_t thread;
    load();
    MUST(!pthread_create(&thread, NULL, work, NULL));
    for (int round = 0; round < 3; round++) {
        leave();
        come_back();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    look();
    unload();
}

int main(void) {
    static void (*const cases[])(void) = {out_and_back, used_in_between,      freed_while_out,
                                          refused,      no_room_to_come_back, beside_work};
    gpu_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) cases[i]();
    puts("ok");
    return 0;
}
