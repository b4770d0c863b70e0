/* _model.h — shared by programs whose models move over the simulated driver (a test double): memstow's entry points, as
 * a program finds them, and memory with known content. A failed check ends the program with a message. */
#ifndef SIMCUDA_MODEL_H
#define SIMCUDA_MODEL_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "memstow.h"
#include "simcuda.h"

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMallocAsync(void **, size_t, CUstream);
int cudaFreeAsync(void *, CUstream);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemGetInfo(size_t *, size_t *);
int cudaDeviceReset(void);
int cudaDeviceSynchronize(void);
int cudaSetDevice(int);
int cudaStreamCreateWithFlags(CUstream *, unsigned);

#define MIB ((size_t)1 << 20)
#define OUT_OF_MEMORY 2
#define MUST(holds) must(!!(holds), #holds, __LINE__)
static inline void must(int holds, const char *what, int line) {
    if (holds) return;
    fprintf(stderr, "line %d: not so: %s\n", line, what);
    exit(1);
}

#define MODEL_FUNCTIONS(F)                                                                                             \
    F(memstow_owner_open)                                                                                              \
    F(memstow_owner_idle)                                                                                              \
    F(memstow_owner_discard)                                                                                           \
    F(memstow_owner_figures)                                                                                           \
    F(memstow_owner_policy)                                                                                            \
    F(memstow_owner_adopt)                                                                                             \
    F(memstow_owner_retire)                                                                                            \
    F(memstow_scope_enter)                                                                                             \
    F(memstow_scope_leave)                                                                                             \
    F(memstow_load_begin)                                                                                              \
    F(memstow_load_end)                                                                                                \
    F(memstow_assign)                                                                                                  \
    F(memstow_release_range)                                                                                           \
    F(memstow_trigger)                                                                                                 \
    F(memstow_trigger_begin)                                                                                           \
    F(memstow_trigger_end)                                                                                             \
    F(memstow_stow)                                                                                                    \
    F(memstow_restore)                                                                                                 \
    F(memstow_error)
#define F(name) static __typeof__(name) *name##_ __attribute__((unused));
MODEL_FUNCTIONS(F)
#undef F

static inline void find_memstow(void) {
#define F(name) MUST(name##_ = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name));
    MODEL_FUNCTIONS(F)
#undef F
}

/* How many pinned buffers a move out makes in a context: four for copies and, if MEMSTOW_CUDA_KEEP is set, a small one
 * for hashes. */
static inline uint64_t buffers(void) { return 4 + (getenv("MEMSTOW_CUDA_KEEP") != NULL); }

/* Fills device memory with content that follows from the seed. */
static inline void fill(void *at, size_t bytes, uint32_t seed) {
    char *data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) data[i] = (char)(i * 13 + seed + i / 4096);
    MUST(!cudaMemcpy(at, data, bytes, 1));
    free(data);
}

static inline int holds(void *at, size_t bytes, uint32_t seed) {
    char *data = malloc(bytes);
    int same = 1;
    MUST(!cudaMemcpy(data, at, bytes, 2));
    for (size_t i = 0; i < bytes && same; i++) same = data[i] == (char)(i * 13 + seed + i / 4096);
    free(data);
    return same;
}

/* Words that several threads read and write. */
static inline int now_is(const int *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static inline void becomes(int *word, int value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

static inline struct sim_usage usage_of(int device) {
    struct sim_usage found;
    sim_usage(device, &found);
    return found;
}
static inline struct sim_usage usage(void) { return usage_of(0); }

/* Runs until sim_release_kernels. */
static inline void launch_endless(CUstream stream) {
    CUmodule module;
    CUfunction function;
    void *none[1] = {NULL};
    MUST(!cuModuleLoadData(&module, "") && !cuModuleGetFunction(&function, module, "sim_wait"));
    MUST(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, none, NULL));
}

/* A model with `bytes` of device memory, whose content is known. */
struct model {
    uint32_t owner;
    void *at;
    size_t bytes;
};

static inline struct model model_open(const char *name) {
    static uint64_t key;
    struct model self = {.owner = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, name, "", ++key, 0)};
    return self;
}

static inline void model_fill(const struct model *self) { fill(self->at, self->bytes, self->owner); }
static inline int model_holds(const struct model *self) { return holds(self->at, self->bytes, self->owner); }

static inline struct model model_load(const char *name, size_t bytes, uint32_t policy, int idle) {
    struct model self = model_open(name);
    self.bytes = bytes;
    MUST(!memstow_scope_enter_(self.owner) && !cudaMalloc(&self.at, bytes) && !memstow_scope_leave_(self.owner));
    model_fill(&self);
    if (policy) MUST(!memstow_owner_policy_(self.owner, policy, 0));
    MUST(!memstow_owner_idle_(self.owner, idle));
    return self;
}

static inline uint64_t model_out(const struct model *self) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(!memstow_owner_figures_(self->owner, &figures));
    return figures.device_stowed_bytes;
}

struct model_case {
    const char *name;
    void (*run)(void);
};

/* Calls `begin`, if it is not NULL, and then runs the case that the argument names. Without an argument, prints the
 * names of all cases. */
static inline int model_main(int argc, char **argv, const struct model_case *cases, size_t count, void (*begin)(void)) {
    for (size_t i = 0; i < count; i++) {
        if (argc < 2) puts(cases[i].name);
        if (argc < 2 || strcmp(cases[i].name, argv[1])) continue;
        find_memstow();
        if (begin) begin();
        cases[i].run();
        puts("ok");
    }
    return 0;
}

#endif
