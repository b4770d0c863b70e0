/* serve_answers.c — stand-ins for entries that return figures of memory, or the properties of an address
 * (serve_entries.h). */
#include <string.h>

#include "preload/cuda/cuda_device.h"
#include "preload/serve/serve_driver.h"
#include "preload/serve/serve_entries.h"
#include "preload/serve/serve_pointer.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_refusal.h"
#include "preload/vram/vram_sums.h"
#include "preload/vram/vram_table.h"

enum { RESERVED_HIGH = CUDA_POOL_RESERVED + 1, USED_HIGH = CUDA_POOL_USED + 1 };

/* --- figures of devices and pools --- */

/* Stands in for cuMemGetInfo. Spares (freed blocks that memstow keeps) count as free, because a request that finds no
 * memory gets their memory. A stowed block still counts as used by the program, but its place on the device is free. So
 * `total` grows by the stowed bytes, and a program that adds free and used memory, as PyTorch does, gets at most
 * `total`. With MEMSTOW_CUDA_TOTAL=1 `total` stays as it is, for programs that take a part of it as their budget. */
int serve_info(size_t *available, size_t *total) {
    int (*real)(size_t *, size_t *) = (int (*)(size_t *, size_t *))serve_call.real;
    if (vram_driver_is_on()) vram_memory_reap();
    int result = real(available, total);
    if (result || !vram_driver_is_on()) return result;
    uint32_t device = cuda_device_now().device;
    if (unlikely(vram_table_spares())) *available += cuda_device_spare(device);
    *total += cuda_device_added(device);
    return 0;
}

/* For the figure `which` of a device's default pool: the bytes to add for memory that memstow serves in the pool's
 * place. Reserved bytes are in granules, used bytes as requested. For a peak, the program gets the pool's peak plus
 * ours, which is at least their common peak. */
static uint64_t served_in_streams(uint32_t device, int which) {
    struct vram_sums sums = vram_sums(0, device);
    switch (which) {
    case CUDA_POOL_RESERVED:
        return sums.streams_taken;
    case RESERVED_HIGH:
        return sums.streams_taken_most;
    case CUDA_POOL_USED:
        return sums.in_streams;
    default:
        return sums.in_streams_most;
    }
}

static bool is_figure_of_default(cuda_handle pool, int which, uint32_t *device) {
    if (which < CUDA_POOL_RESERVED || which > USED_HIGH || !vram_driver_is_on()) return false;
    return serve_driver_pool_device(serve_driver.default_pool, serve_driver.devices, pool, device);
}

int serve_pool(cuda_handle pool, int which, void *value) {
    int (*real)(cuda_handle, int, void *) = (int (*)(cuda_handle, int, void *))serve_call.real;
    int result = real(pool, which, value);
    uint32_t device;
    if (!result && is_figure_of_default(pool, which, &device)) *(uint64_t *)value += served_in_streams(device, which);
    return result;
}

/* Stands in for cuMemPoolSetAttribute. A program can set a peak only to 0, which restarts the peak. If it does so,
 * the same peak of served memory restarts, too. */
int serve_pool_set(cuda_handle pool, int which, void *value) {
    int (*real)(cuda_handle, int, void *) = (int (*)(cuda_handle, int, void *))serve_call.real;
    int result = real(pool, which, value);
    bool is_most = which == RESERVED_HIGH || which == USED_HIGH;
    uint32_t device;
    if (!result && is_most && is_figure_of_default(pool, which, &device))
        vram_sums_forget_most(device, which == RESERVED_HIGH);
    return result;
}

int serve_trim(cuda_handle pool, size_t keep) {
    int (*real)(cuda_handle, size_t) = (int (*)(cuda_handle, size_t))serve_call.real;
    vram_memory_give_back();
    return real(pool, keep);
}

/* --- properties of an address --- */

int serve_range(cuda_address *start, size_t *bytes, cuda_address at) {
    int (*real)(cuda_address *, size_t *, cuda_address) =
        (int (*)(cuda_address *, size_t *, cuda_address))serve_call.real;
    uint64_t first, size;
    if (!serve_pointer_range(at, &first, &size)) return real(start, bytes, at);
    if (start) *start = first;
    if (bytes) *bytes = size;
    return 0;
}

/* Writes the answer to *out. If the answer is a truth value, `bytes` is 0, because cuda.h does not say how wide a truth
 * value is. In this case the driver has already written a truth value, and only its first byte is changed. */
static void write_answer(void *out, const struct serve_answer *answer) {
    if (answer->bytes)
        memcpy(out, &answer->value, answer->bytes);
    else
        *(uint8_t *)out = answer->value != 0;
}

/* Stands in for cuPointerGetAttribute. Only the driver knows how many bytes a truth value has, so the driver writes
 * a truth value before our answer is written. If the block is off its device, the driver's cuPointerGetAttribute
 * would fail, so cuPointerGetAttributes is called instead, which writes 0. */
int serve_attribute(void *out, int which, cuda_address at) {
    int (*real)(void *, int, cuda_address) = (int (*)(void *, int, cuda_address))serve_call.real;
    struct serve_answer answer;
    bool ours = out && serve_pointer_ask(which, at, &answer);
    int result = 0;
    if (serve_pointer_registers(which, false)) vram_refusal_note(at, VRAM_REFUSAL_RDMA);
    if (!ours)
        result = real(out, which, at);
    else if (!answer.bytes)
        result = answer.is_out && serve_driver.attributes_of ? serve_driver.attributes_of(1, &which, &out, at)
                                                             : real(out, which, at);
    if (ours && !result) write_answer(out, &answer);
    return result;
}

/* Stands in for cuPointerGetAttributes. The driver writes all attributes, even for an address that it does not know.
 * Then the attributes of served memory are corrected. */
int serve_attributes(unsigned count, int *which, void **out, cuda_address at) {
    typedef int function(unsigned, int *, void **, cuda_address);
    struct serve_answer answer;
    int result = ((function *)serve_call.real)(count, which, out, at);
    for (unsigned i = 0; !result && i < count; i++) {
        if (serve_pointer_registers(which[i], false)) vram_refusal_note(at, VRAM_REFUSAL_RDMA);
        if (serve_pointer_ask(which[i], at, &answer)) write_answer(out[i], &answer);
    }
    return result;
}

/* Stands in for cuPointerSetAttribute. If the attribute means that the program is about to register the block with a
 * network card, the block never moves from now on, even if this call fails. */
int serve_set_attribute(const void *value, int which, cuda_address at) {
    int (*real)(const void *, int, cuda_address) = (int (*)(const void *, int, cuda_address))serve_call.real;
    if (serve_pointer_registers(which, true)) vram_refusal_note(at, VRAM_REFUSAL_RDMA);
    return real(value, which, at);
}
