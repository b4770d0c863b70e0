/* _workspaces.c — a program with a cuBLAS workspace that was made in the scope of one model, but is used by all models.
 * The program stows that model, and multiplies. It runs over the simulated driver and cuBLAS (test doubles). The first
 * argument is the case. A failed check ends the program with a message. */
#include "_unet.h"

struct handle;
int cublasCreate_v2(struct handle **);
int cublasSetStream_v2(struct handle *, CUstream);
int cublasSetWorkspace_v2(struct handle *, void *, size_t);
int cublasSgemm_v2(struct handle *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,
                   void *, void *, void *, const void *, void *, size_t, CUstream);

static struct handle *handle;

static int multiply(void) {
    int result = cublasSgemm_v2(handle, 0, 0, 1, 1, 1, NULL, outside, 1, outside, 1, NULL, outside, 1);
    return result ? result : cudaDeviceSynchronize();
}

static int multiply_light(void *workspace, size_t bytes) {
    int result = cublasLtMatmul(NULL, NULL, NULL, outside, NULL, outside, NULL, NULL, outside, NULL, outside, NULL,
                                NULL, workspace, bytes, NULL);
    return result ? result : cudaDeviceSynchronize();
}

/* Checks that exactly this many bytes of the model move, and that a product works while the model is out. */
static void moves(size_t bytes, int (*product)(void)) {
    MUST(!product());
    MUST(!memstow_owner_idle_(model, 1));
    int64_t moved = memstow_stow_(model);
    MUST(moved > 0 && !product() && !usage().faults);
    MUST(moved == (int64_t)bytes && stowed_bytes() == bytes);
    MUST(memstow_restore_(model) == (int64_t)bytes);
    look();
}

/* As in PyTorch, the program allocates the workspace and hands it to the library. PyTorch does so at the first product
 * of each thread and stream. */
static void handed_over(void) {
    void *workspace;
    load();
    MUST(!cublasCreate_v2(&handle));
    MUST(!memstow_scope_enter_(model) && !cudaMallocAsync(&workspace, 32 * MIB, NULL));
    MUST(!cublasSetWorkspace_v2(handle, workspace, 32 * MIB) && !memstow_scope_leave_(model));
    moves(14 * MIB, multiply);
}

/* The library makes a workspace of its own, with the CUDA runtime that is linked into it. */
static void its_own(void) {
    load();
    MUST(!memstow_scope_enter_(model) && !cublasCreate_v2(&handle) && !memstow_scope_leave_(model));
    moves(14 * MIB, multiply);
}

static void *light;
static int product_light(void) { return multiply_light(light, 4 * MIB); }

/* cuBLASLt gets its workspace with each product. */
static void with_each_product(void) {
    load();
    MUST(!memstow_scope_enter_(model) && !cudaMalloc(&light, 4 * MIB) && !memstow_scope_leave_(model));
    moves(14 * MIB, product_light);
}

/* The workspace and weights share a block, as in a segment of PyTorch's native allocator. This block stays, and the
 * model's other block moves. */
static void beside_weights(void) {
    load();
    MUST(!cublasCreate_v2(&handle) && !cublasSetWorkspace_v2(handle, (char *)plain + 4 * MIB, 2 * MIB));
    moves(6 * MIB, multiply);
}

/* After a workspace is freed, new memory at its address is ordinary memory. */
static void freed(void) {
    void *workspace;
    load();
    MUST(!cublasCreate_v2(&handle));
    MUST(!memstow_scope_enter_(model) && !cudaMallocAsync(&workspace, 4 * MIB, NULL));
    MUST(!cublasSetWorkspace_v2(handle, workspace, 4 * MIB) && !multiply());
    MUST(!cublasSetStream_v2(handle, NULL) && !cudaFreeAsync(workspace, NULL) && !cudaDeviceSynchronize());
    MUST(!cudaMallocAsync(&workspace, 4 * MIB, NULL) && !memstow_scope_leave_(model));
    moves(18 * MIB, multiply);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"handed_over", handed_over},
                                              {"its_own", its_own},
                                              {"with_each_product", with_each_product},
                                              {"beside_weights", beside_weights},
                                              {"freed", freed}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
