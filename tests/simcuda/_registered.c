/* _registered.c — a program whose model has host memory that is registered with a device, or that a device reads
 * without registration; over the simulated driver (a test double). The first argument is the case. A failed check ends
 * the program with a message. */
#include "_model.h"

#include <sys/mman.h>

int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);

static uint32_t model;
static char *host;

/* Makes a context, and a model with 4 MiB of host memory. */
static void load_host(void) {
    void *at;
    MUST(!cudaMalloc(&at, MIB));
    model = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "unet", "unet.safetensors", 1, 0);
    MUST(!memstow_owner_idle_(model, 1));
    MUST(!memstow_scope_enter_(model) && (host = malloc(4 * MIB)) && !memstow_scope_leave_(model));
    for (size_t i = 0; i < 4 * MIB; i++) host[i] = (char)(i * 7 + i / 4096);
}

static void look_at_host(void) {
    for (size_t i = 0; i < 4 * MIB; i++) MUST(host[i] == (char)(i * 7 + i / 4096));
}

static uint64_t host_stowed(void) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(!memstow_owner_figures_(model, &figures));
    return figures.stowed_bytes;
}

static void does_not_move(void) {
    MUST(memstow_stow_(model) == -ENOTSUP && !host_stowed());
    look_at_host();
}

static void moves_now(void) {
    MUST(memstow_stow_(model) == 4 * (int64_t)MIB && host_stowed() == 4 * MIB);
    look_at_host();
}

/* Memory that is registered as a whole or in part stays where it is until it is unregistered. */
static void registered(void) {
    load_host();
    MUST(!cudaHostRegister(host, 4 * MIB, 0));
    does_not_move();
    MUST(cudaHostRegister(host, 4 * MIB, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    does_not_move();
    MUST(!cudaHostUnregister(host) && cudaHostUnregister(host));
    moves_now();
    MUST(!cuMemHostRegister_v2(host + MIB, MIB, 0)); /* this part comes back first */
    MUST(host_stowed() == 3 * MIB);
    look_at_host();
    MUST(memstow_restore_(model) == 3 * (int64_t)MIB);
    does_not_move();
    MUST(!cuMemHostUnregister(host + MIB));
    moves_now();
}

/* The program never unregisters the memory, but its context or its device ends. */
static void registered_until_the_end(void) {
    CUcontext context;
    load_host();
    MUST(!cudaHostRegister(host, 4 * MIB, 0));
    does_not_move();
    MUST(!cudaDeviceReset());
    moves_now();
    MUST(!cuCtxCreate_v2(&context, 0, 0) && !cuMemHostRegister_v2(host, 4 * MIB, 0));
    does_not_move();
    MUST(!cuCtxDestroy_v2(context));
    moves_now();
}

/* Truncates the stow file that is mapped at `host`. The file has no name, so its path is one in /proc. */
static void lose_file_of_host(void) {
    char line[512], path[64];
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) != 2 || (uintptr_t)host < start || (uintptr_t)host >= end) continue;
        snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", start, end);
        MUST(!truncate(path, 0));
    }
    fclose(maps);
}

/* If stowed content cannot come back, the memory cannot be registered, and the driver is not called. */
static void registered_what_is_lost(void) {
    load_host();
    if (geteuid()) return; /* it may not reach the file */
    moves_now();
    lose_file_of_host();
    uint64_t asked = sim_count("cuMemHostRegister_v2") + sim_count("cuMemHostRegister");
    MUST(cudaHostRegister(host, 4 * MIB, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    MUST(sim_count("cuMemHostRegister_v2") + sim_count("cuMemHostRegister") == asked);
    MUST(cudaHostUnregister(host));
}

static void many_registered(void) {
    enum { MANY = 6000, PAGE = 4096 };
    load_host();
    char *others = mmap(NULL, MANY * 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(others != MAP_FAILED);
    for (size_t i = 0; i < MANY; i++) MUST(!cuMemHostRegister_v2(others + i * 2 * PAGE, PAGE, 0));
    MUST(!cuMemHostRegister_v2(host, 4 * MIB, 0));
    does_not_move();
    for (size_t i = 0; i < MANY; i++) MUST(!cuMemHostUnregister(others + i * 2 * PAGE));
    does_not_move();
    MUST(!cuMemHostUnregister(host));
    moves_now();
}

/* SIMCUDA_PAGEABLE: the device can read all host memory. So a move waits for the device, and only memory of idle owners
 * moves. */
static void read_by_the_device(void) {
    load_host();
    MUST(!memstow_owner_idle_(model, 0));
    does_not_move();
    MUST(memstow_restore_(model) == 0); /* nothing is out */
    MUST(!memstow_owner_idle_(model, 1));
    launch_endless(NULL);
    does_not_move(); /* after 5 seconds */
    sim_release_kernels(1);
    MUST(!cudaDeviceSynchronize());
    for (int i = 0; i < 500 && memstow_stow_(model) == -ENOTSUP; i++)
        usleep(10000); /* the thread that was left waiting comes back */
    MUST(host_stowed() == 4 * MIB && memstow_restore_(model) == 4 * (int64_t)MIB);
    uint64_t waits = sim_count("cuCtxSynchronize");
    moves_now();
    MUST(sim_count("cuCtxSynchronize") > waits);
    waits = sim_count("cuCtxSynchronize");
    MUST(!memstow_owner_idle_(model, 0));
    MUST(memstow_restore_(model) == -ENOTSUP &&
         host_stowed() == 4 * MIB); /* while the owner is in use, its memory does not come back, either */
    look_at_host();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_restore_(model) == 4 * (int64_t)MIB && sim_count("cuCtxSynchronize") > waits);
    look_at_host();
}

/* SIMCUDA_PAGEABLE: the program works in its own context, without a primary one, and memstow serves no memory. */
static void read_in_own_context(void) {
    CUcontext own;
    MUST(!cuInit(0) && !cuCtxCreate_v2(&own, 0, 0));
    model = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "unet", "unet.safetensors", 1, 0);
    MUST(!memstow_scope_enter_(model) && (host = malloc(4 * MIB)) && !memstow_scope_leave_(model));
    for (size_t i = 0; i < 4 * MIB; i++) host[i] = (char)(i * 7 + i / 4096);
    does_not_move(); /* the owner is not idle */
    MUST(!memstow_owner_idle_(model, 1));
    uint64_t waits = sim_count("cuCtxSynchronize");
    moves_now();
    MUST(sim_count("cuCtxSynchronize") == waits + 1);
    MUST(memstow_restore_(model) == 4 * (int64_t)MIB && !cuCtxDestroy_v2(own));
    moves_now(); /* without a wait, because the context is gone */
    MUST(sim_count("cuCtxSynchronize") == waits + 2);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"registered", registered},
                                              {"registered_until_the_end", registered_until_the_end},
                                              {"registered_what_is_lost", registered_what_is_lost},
                                              {"many_registered", many_registered},
                                              {"read_by_the_device", read_by_the_device},
                                              {"read_in_own_context", read_in_own_context}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
