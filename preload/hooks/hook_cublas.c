/* hook_cublas.c — the calls that tell cuBLAS where its workspace is.
 * In: calls of the program and of libraries. Out: the same calls to the real functions; if memstow serves the block of
 * memory that has the workspace (serve.h), that block does not move from then on. These hooks count nothing: the hooks
 * of CUDA count what cuBLAS allocates during a call.
 *
 * A workspace belongs to a thread and a stream, not to a model: the first matrix product in a model's scope makes it,
 * and every later product uses it, also those of other models. */
#include "preload/cuda/cuda_route.h"
#include "preload/serve/serve.h"
#include "preload/vram/vram_refusal.h"

#define HOOK __attribute__((visibility("default")))

enum { NOT_INITIALIZED = 1 /* CUBLAS_STATUS_NOT_INITIALIZED */ };

static void hook_cublas_keep(const void *workspace) {
    if (serve_wanted && workspace) vram_refusal_note((uintptr_t)workspace, VRAM_REFUSAL_WORKSPACE);
}

/* The definition that the loader would have bound the caller to without memstow; NULL: there is none. */
static void *hook_cublas_real(const char *name, void *caller) { return cuda_route_bound(name, (uintptr_t)caller); }

int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
HOOK int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes) {
    static const char name[] = "cublasSetWorkspace_v2";
    typedef int function(void *, void *, size_t);
    function *call = (function *)hook_cublas_real(name, __builtin_return_address(0));
    hook_cublas_keep(workspace);
    return call ? call(handle, workspace, bytes) : NOT_INITIALIZED;
}

#define PRODUCT                                                                                                        \
    void *light, void *operation, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b,     \
        const void *beta, const void *c, void *layout_c, void *d, void *layout_d, const void *algorithm,               \
        void *workspace, size_t bytes, cuda_handle stream

int cublasLtMatmul(PRODUCT);
HOOK int cublasLtMatmul(PRODUCT) {
    static const char name[] = "cublasLtMatmul";
    typedef int function(PRODUCT);
    function *call = (function *)hook_cublas_real(name, __builtin_return_address(0));
    hook_cublas_keep(workspace);
    return call ? call(light, operation, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d, algorithm,
                       workspace, bytes, stream)
                : NOT_INITIALIZED;
}
