/* _every_line_alone.c — cases that one thread runs alone, because they would disturb the others: captures in global
 * mode, and entries that end contexts and devices, each on a device of its own; see _every_line.c. */
#include "_every_line.h"

CASE(cuCtxSynchronize) {
    UNUSED;
    OK(f.cuCtxSynchronize());
}
CASE(cuCtxSynchronize_v2) {
    cuda_handle context;
    UNUSED;
    OK(h.cuCtxGetCurrent(&context));
    OK(f.cuCtxSynchronize_v2(context));
}
CASE(cuStreamBeginCapture) {
    cuda_handle stream = new_stream();
    OK(f.cuStreamBeginCapture(stream));
    keep_captured(w, stream, false);
}
CASE(cuStreamBeginCapture_ptsz) {
    OK(f.cuStreamBeginCapture_ptsz(NULL));
    keep_captured(w, NULL, true);
}

static int next_device = 1;

/* Takes the next device that nobody has used. Its primary context becomes the thread's current one. */
static cuda_handle take_device(int *device) {
    cuda_handle context;
    MUST(next_device < DEVICES);
    *device = next_device++;
    OK(f.cuDevicePrimaryCtxRetain(&context, *device));
    OK(h.cuCtxSetCurrent(context));
    return context;
}

static void back_to_first(void) { OK(h.cudaSetDevice(0)); }

/* Memory of the context ends with it; memory of a pool does not. */
static void fill_context(struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    made(DEVICE, bytes);
    OK(f.cuMemAllocAsync(&at, bytes, NULL));
    kept(POOL, bytes);
}

static void reset_runtime(struct worker *w, int (*reset)(void)) {
    OK(h.cudaSetDevice(next_device++));
    fill_context(w);
    OK(reset());
    back_to_first();
}

CASE(cudaDeviceReset) { reset_runtime(w, f.cudaDeviceReset); }
CASE(cudaThreadExit) { reset_runtime(w, f.cudaThreadExit); }

static void end_primary(struct worker *w, int (*ends)(int)) {
    int device;
    take_device(&device);
    fill_context(w);
    OK(ends(device));
    back_to_first();
}

CASE(cuDevicePrimaryCtxReset) { end_primary(w, f.cuDevicePrimaryCtxReset); }
CASE(cuDevicePrimaryCtxReset_v2) { end_primary(w, f.cuDevicePrimaryCtxReset_v2); }
CASE(cuDevicePrimaryCtxRelease) { end_primary(w, f.cuDevicePrimaryCtxRelease); }
CASE(cuDevicePrimaryCtxRelease_v2) { end_primary(w, f.cuDevicePrimaryCtxRelease_v2); }
CASE(cuDevicePrimaryCtxRetain) {
    int device;
    size_t bytes = odd(w);
    cuda_handle context = take_device(&device);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    say("expect cuda.blocks[size_bytes=%zu].device == %d", bytes, device);
    say("expect cuda.blocks[size_bytes=%zu].context == %zu", bytes, (size_t)context);
    back_to_first();
}

static void end_created(struct worker *w, cuda_handle context, int (*ends)(cuda_handle)) {
    fill_context(w);
    OK(ends(context));
    back_to_first();
}

CASE(cuCtxCreate_v2) {
    cuda_handle context;
    OK(f.cuCtxCreate_v2(&context, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}
CASE(cuCtxCreate_v3) {
    cuda_handle context;
    OK(f.cuCtxCreate_v3(&context, NULL, 0, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}
CASE(cuCtxCreate_v4) {
    cuda_handle context;
    OK(f.cuCtxCreate_v4(&context, NULL, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}
CASE(cuCtxDestroy) {
    cuda_handle context;
    OK(f.cuCtxCreate_v2(&context, 0, 0));
    end_created(w, context, f.cuCtxDestroy);
}
CASE(cuCtxDestroy_v2) {
    cuda_handle context;
    OK(f.cuCtxCreate_v2(&context, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}

CASE(cuCtxEnablePeerAccess) {
    int device;
    cuda_handle context = take_device(&device);
    UNUSED;
    back_to_first();
    OK(f.cuCtxEnablePeerAccess(context, 0));
}
