/* _faults.c — kernels that use missing memory, over the simulated driver (a test double). The first such kernel breaks
 * the context: all its later calls return error 700. The first argument is the case. A failed check ends the program
 * with a message. */
#include "_unet.h"

enum { ILLEGAL_ADDRESS = 700 };

const char *cudaGetErrorName(int);
const char *cudaGetErrorString(int);
CUresult cuGetErrorName(CUresult, const char **);
CUresult cuGetErrorString(CUresult, const char **);

static void use(void *at) {
    CUmodule module;
    CUfunction function;
    uint64_t bytes = 1;
    void *arguments[] = {&at, &bytes};
    MUST(!cuModuleLoadData(&module, "") && !cuModuleGetFunction(&function, module, "sim_touch"));
    MUST(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
}

static void fails(void *at) {
    use(at);
    MUST(cudaDeviceSynchronize() == ILLEGAL_ADDRESS);
    printf("at %llu\n", (unsigned long long)(uintptr_t)at);
}

/* A trigger stows a model, and then a kernel uses the model's memory. All later calls return the error, but memstow
 * reports it only once. */
static void stowed(void) {
    load();
    MUST(!memstow_owner_policy_(model, MEMSTOW_STOW, 0) && !memstow_owner_idle_(model, 1));
    MUST(memstow_trigger_(MEMSTOW_RUN_ENDED, "ok") >= 0 && stowed_bytes() == 14 * MIB);
    fails(plain);
    MUST(cuStreamSynchronize(NULL) == ILLEGAL_ADDRESS && cudaDeviceSynchronize() == ILLEGAL_ADDRESS);
}

/* The same as stowed(), but the model is stowed by a request, not by a trigger. */
static void asked(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 14 * (int64_t)MIB);
    fails(pooled);
}

__attribute__((noinline)) static void give_it_back(void) { MUST(!cudaFree(plain)); }

/* All memory is on its device: the missing memory is a block that was freed. */
static void freed(void) {
    load();
    MUST(!cudaFree(outside));
    give_it_back();
    fails(plain);
}

__attribute__((noinline)) static void give_it_back_in_order(void) { MUST(!cudaFreeAsync(pooled, NULL)); }

/* The same as freed(), for memory of cudaMallocAsync. The memory is gone when the stream has come to the free. */
static void freed_in_stream(void) {
    size_t available, total;
    load();
    give_it_back_in_order();
    MUST(!cudaDeviceSynchronize() && !cudaMemGetInfo(&available, &total));
    fails(pooled);
}

/* A free is the first call that returns the error, as in a program that waits for nothing. */
static void found_by_free(void) {
    load();
    give_it_back();
    use(plain);
    while (!usage().faults) usleep(1000);
    MUST(cudaFree(small) == ILLEGAL_ADDRESS);
}

/* The first call that returns the error has no hook, for example when a program copies a result (`.item()` in Python).
 * The program asks for the error's text, by the runtime's function or the driver's, and gives up. */
static void copy_fails(void) {
    char to;
    load();
    give_it_back();
    use(plain);
    while (!usage().faults) usleep(1000);
    MUST(cuMemcpyDtoH_v2(&to, (CUdeviceptr)(uintptr_t)outside, 1) == ILLEGAL_ADDRESS);
}

static void found_by_a_copy(void) {
    copy_fails();
    MUST(!strcmp(cudaGetErrorName(ILLEGAL_ADDRESS), "CUDA_ERROR_ILLEGAL_ADDRESS")); /* the double's only name */
    MUST(cudaGetErrorString(ILLEGAL_ADDRESS));
}

static void found_by_a_copy_of_the_driver(void) {
    const char *text;
    copy_fails();
    MUST(!cuGetErrorString(ILLEGAL_ADDRESS, &text) && text);
    MUST(!cuGetErrorName(ILLEGAL_ADDRESS, &text) && !strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

/* If a program asks for the text of error 700, memstow names the memory that a kernel may have used. Here the program
 * asks for the texts of other errors only. So memstow names the memory later, when cudaFree returns error 700. */
static void asks_of_others(void) {
    const char *text;
    copy_fails();
    MUST(!cuGetErrorString(2, &text) && text && cudaGetErrorString(2) && cudaGetErrorName(719));
    MUST(cudaFree(small) == ILLEGAL_ADDRESS);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"stowed", stowed},
                                              {"asked", asked},
                                              {"freed", freed},
                                              {"freed_in_stream", freed_in_stream},
                                              {"found_by_free", found_by_free},
                                              {"found_by_a_copy", found_by_a_copy},
                                              {"found_by_a_copy_of_the_driver", found_by_a_copy_of_the_driver},
                                              {"asks_of_others", asks_of_others}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
