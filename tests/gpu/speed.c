// only: speed.py
/* speed.c — the measured program of tests/gpu/speed.py: speed pairs | kernels | moves BYTES. It prints "NAME SECONDS"
 * lines; over the simulated driver, a test double, it prints only that it ran. */
#include "gpu.h"

/* seconds of work. WARM: before a measurement. USED: before a model's memory is moved out of the device */
static const double WARM = 1, USED = 3;
enum { TURNS = 200, EACH = 500, LIVE = 1000, STEPS = 400, WORDS = 16 << 20 };

static void say(const char *name, double seconds) {
    if (gpu_is_double)
        printf("%s: over a test double, no figure\n", name);
    else
        printf("%s %.9f\n", name, seconds);
}

/* Works for some seconds before a measurement, because at first the driver loads kernels, pools grow, and clocks
 * rise. */
static void work_for(double seconds, void (*work)(void)) {
    double until = gpu_seconds() + seconds;
    for (; gpu_seconds() < until; OK(cu.synchronize())) work();
}

static void some_pairs(void) {
    for (int i = 0; i < EACH; i++) {
        CUdeviceptr at;
        OK(cu.alloc_async(&at, 4096, NULL));
        OK(cu.free_async(at, NULL));
    }
}

static double turn(void) {
    double begin = gpu_seconds();
    some_pairs();
    double took = (gpu_seconds() - begin) / EACH;
    OK(cu.synchronize());
    return took;
}

/* Measures the least time of many short turns, while as many tensors are live as a model has. */
static void pairs(void) {
    double least = 1e9;
    int turns = gpu_is_double ? 2 : TURNS;
    for (int i = 0; i < LIVE; i++) {
        CUdeviceptr at;
        OK(cu.alloc_async(&at, 4096, NULL));
    }
    work_for(WARM, some_pairs);
    for (int i = 0; i < turns; i++) {
        double took = turn();
        if (took < least) least = took;
    }
    say("pair", least);
}

/* Work that keeps the device busy: an allocation, kernels over 64 MiB, a free. */
static CUdeviceptr from;
static size_t words;

static void step(void) {
    CUdeviceptr to;
    OK(cu.alloc_async(&to, words * 4, NULL));
    gpu_fill(to, words, 2, NULL);
    gpu_add(to, from, words, NULL);
    OK(cu.free_async(to, NULL));
}

static void kernels(void) {
    int steps = gpu_is_double ? 2 : STEPS;
    words = gpu_is_double ? MIB : WORDS;
    OK(cu.alloc(&from, words * 4));
    gpu_fill(from, words, 1, NULL);
    work_for(WARM, step);
    double begin = gpu_seconds();
    for (int i = 0; i < steps; i++) step();
    OK(cu.synchronize());
    say("kernels", gpu_seconds() - begin);
}

/* Measures the driver's own copies of this size between pinned memory and the device. Moves are compared with them. */
static void copies(size_t bytes) {
    void *pinned;
    CUdeviceptr at;
    double to_host = 1e9, to_device = 1e9;
    OK(cu.alloc(&at, bytes));
    OK(cu.host_alloc(&pinned, bytes, 0));
    memset(pinned, 1, bytes);
    for (int i = 0; i < 4; i++) {
        double begin = gpu_seconds();
        OK(cu.to_host(pinned, at, bytes));
        double between = gpu_seconds();
        OK(cu.to_device(at, pinned, bytes));
        double end = gpu_seconds();
        if (between - begin < to_host) to_host = between - begin;
        if (end - between < to_device) to_device = end - between;
    }
    OK(cu.host_free(pinned));
    OK(cu.free(at));
    say("copy_out", to_host);
    say("copy_back", to_device);
}

static void fill(void) { gpu_fill(from, words, 77, NULL); }

/* The plain copies are measured before there is a model, so that memstow does not pin memory for the model meanwhile.
 * It may pin memory later, while the model is used. */
static void moves(size_t bytes) {
    copies(bytes);
    uint32_t model = gpu_model("unet");
    CUdeviceptr at = gpu_alloc_for(model, bytes, NULL);
    double out = 1e9, back = 1e9;
    from = at;
    words = bytes / 4;
    work_for(gpu_is_double ? 0 : USED, fill);
    gpu_write(at, 64 * MIB, 1);
    gpu_write(at + bytes - 64 * MIB, 64 * MIB, 2);
    MUST(!abi_memstow_owner_idle(model, 1));
    for (int i = 0; i < 4; i++) {
        double begin = gpu_seconds();
        MUST(abi_memstow_stow(model) == (int64_t)bytes);
        double between = gpu_seconds();
        MUST(abi_memstow_restore(model) == (int64_t)bytes);
        double end = gpu_seconds();
        if (!i) say("first_out", between - begin), say("first_back", end - between);
        if (i && between - begin < out) out = between - begin;
        if (i && end - between < back) back = end - between;
    }
    say("later_out", out);
    say("later_back", back);
    MUST(gpu_holds(at, 64 * MIB, 1) && gpu_holds(at + bytes - 64 * MIB, 64 * MIB, 2));
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    gpu_begin();
    if (!strcmp(what, "pairs"))
        pairs();
    else if (!strcmp(what, "kernels"))
        kernels();
    else if (!strcmp(what, "moves") && count > 2)
        moves(strtoull(arguments[2], NULL, 10));
    else
        return 2;
    puts("ok");
    return 0;
}
