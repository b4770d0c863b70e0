/* cublas.c — the part of cuBLAS that has to do with workspaces, simulated (a test double). In: the calls that PyTorch
 * makes, with cuBLAS's arguments. Out: work on a stream that reads the workspace and the operands when it is executed,
 * but computes no product. Like the real cuBLAS it has a CUDA runtime linked into it: it asks the driver's resolver for
 * functions, and allocates with them. */
#include "cuda_calls.h"

#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };
enum { OWN_WORKSPACE = 4 << 20 };

struct handle {
    CUstream stream;
    CUdeviceptr own, workspace;
    size_t bytes;
};

int cublasCreate_v2(struct handle **);
int cublasDestroy_v2(struct handle *);
int cublasSetStream_v2(struct handle *, CUstream);
int cublasSetWorkspace_v2(struct handle *, void *, size_t);
int cublasSgemm_v2(struct handle *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,
                   void *, void *, void *, const void *, void *, size_t, CUstream);

static void *entry(const char *name, int version) {
    void *found = NULL;
    int status;
    return cuGetProcAddress_v2(name, &found, version, 0, &status) ? NULL : found;
}

/* A new handle has its own workspace, and uses it until the program sets another one. */
EXPORTED int cublasCreate_v2(struct handle **out) {
    CUresult (*allocate)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))entry("cuMemAlloc", 3020);
    struct handle *self = calloc(1, sizeof *self);
    if (!self || !allocate || allocate(&self->own, OWN_WORKSPACE)) return ALLOC_FAILED;
    self->workspace = self->own;
    self->bytes = OWN_WORKSPACE;
    *out = self;
    return SUCCESS;
}

EXPORTED int cublasDestroy_v2(struct handle *self) {
    CUresult (*release)(CUdeviceptr) = (CUresult(*)(CUdeviceptr))entry("cuMemFree", 3020);
    if (!self || !release || release(self->own)) return NOT_INITIALIZED;
    free(self);
    return SUCCESS;
}

/* A new stream makes the handle use its own workspace again (documentation of cublasSetStream). */
EXPORTED int cublasSetStream_v2(struct handle *self, CUstream stream) {
    if (!self) return NOT_INITIALIZED;
    self->stream = stream;
    self->workspace = self->own;
    self->bytes = OWN_WORKSPACE;
    return SUCCESS;
}

EXPORTED int cublasSetWorkspace_v2(struct handle *self, void *at, size_t bytes) {
    if (!self) return NOT_INITIALIZED;
    if ((CUdeviceptr)at % 256) return INVALID_VALUE;
    self->workspace = (CUdeviceptr)at;
    self->bytes = bytes;
    return SUCCESS;
}

static int read_all(CUdeviceptr at, uint64_t bytes, CUstream stream) {
    CUmodule module;
    CUfunction function;
    void *arguments[] = {&at, &bytes};
    if (cuModuleLoadData(&module, "") || cuModuleGetFunction(&function, module, "sim_touch")) return EXECUTION_FAILED;
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL) ? EXECUTION_FAILED : SUCCESS;
}

static int multiply(const void *a, const void *b, CUdeviceptr workspace, size_t bytes, CUstream stream) {
    int result = read_all(workspace, bytes, stream);
    if (!result) result = read_all((CUdeviceptr)a, 1, stream);
    return result ? result : read_all((CUdeviceptr)b, 1, stream);
}

EXPORTED int cublasSgemm_v2(struct handle *self, int transposes_a, int transposes_b, int m, int n, int k,
                            const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta,
                            float *c, int ldc) {
    (void)transposes_a, (void)transposes_b, (void)m, (void)n, (void)k, (void)alpha, (void)lda, (void)ldb, (void)beta;
    (void)c, (void)ldc;
    return self ? multiply(a, b, self->workspace, self->bytes, self->stream) : NOT_INITIALIZED;
}

EXPORTED int cublasLtMatmul(void *light, void *operation, const void *alpha, const void *a, void *layout_a,
                            const void *b, void *layout_b, const void *beta, const void *c, void *layout_c, void *d,
                            void *layout_d, const void *algorithm, void *workspace, size_t bytes, CUstream stream) {
    (void)light, (void)operation, (void)alpha, (void)layout_a, (void)layout_b, (void)beta, (void)c, (void)layout_c;
    (void)d, (void)layout_d, (void)algorithm;
    return multiply(a, b, (CUdeviceptr)workspace, bytes, stream);
}
