/* serve_entries.h — the functions that stand in for entries of the driver. A function serve_… has the arguments of its
 * entry (serve_function in serve.c has the pairs).
 * In: the program's arguments, and the function that the hook was about to call (serve_call). Out: results as the
 * driver gives them. */
#ifndef MEMSTOW_SERVE_ENTRIES_H
#define MEMSTOW_SERVE_ENTRIES_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

/* The thread's present call: `real` is the driver's function that the hook was about to call. */
struct serve_call {
    void *real;
    uintptr_t caller; /* an address in the code that made the thread's outermost call */
    bool per_thread;  /* the entry has a _ptsz or _ptds name: stream NULL means the thread's own stream */
};
extern __thread struct serve_call serve_call __attribute__((tls_model("initial-exec")));

int serve_alloc(cuda_address *at, size_t bytes);
int serve_alloc_async(cuda_address *at, size_t bytes, cuda_handle stream);
int serve_from_pool(cuda_address *at, size_t bytes, cuda_handle pool, cuda_handle stream);
int serve_pitch(cuda_address *at, size_t *pitch, size_t width, size_t height, unsigned element);
int serve_create(cuda_memory *memory, size_t bytes, const struct cuda_properties *is, unsigned long long flags);
int serve_managed(cuda_address *at, size_t bytes, unsigned flags);
int serve_array(cuda_handle *array, const void *is);
int serve_mipmapped(cuda_handle *array, const void *is, unsigned levels);
int serve_free(cuda_address at);
int serve_free_async(cuda_address at, cuda_handle stream);
int serve_info(size_t *available, size_t *total);
int serve_pool(cuda_handle pool, int which, void *value);
int serve_pool_set(cuda_handle pool, int which, void *value);
int serve_trim(cuda_handle pool, size_t keep);
int serve_range(cuda_address *start, size_t *bytes, cuda_address at);
int serve_attribute(void *out, int which, cuda_address at);
int serve_attributes(unsigned count, int *which, void **out, cuda_address at);
int serve_set_attribute(const void *value, int which, cuda_address at);
int serve_peer(cuda_handle peer, unsigned flags);
int serve_pool_access(cuda_handle pool, const struct vram_access *access, size_t count);
int serve_retain(cuda_memory *memory, void *at);
int serve_bind(cuda_memory to, size_t offset, cuda_address at, size_t bytes, unsigned long long flags);
int serve_bind_of_device(cuda_memory to, int device, size_t offset, cuda_address at, size_t bytes,
                         unsigned long long flags);
int serve_bind_endpoint(unsigned to, int device, uint64_t offset, void *at, uint64_t bytes, unsigned long long flags);
int serve_share(void *shared, cuda_address at, size_t bytes, int type, unsigned long long flags);
int serve_export(struct cuda_ipc_memory *handle, cuda_address at);

#pragma GCC visibility pop

#endif
