/* serve_pointer.c — see serve_pointer.h. The numbers of attributes are those of cuda.h. Attributes that are not named
 * here are answered by the driver. */
#include "preload/serve/serve_pointer.h"

#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/vram/vram_memory.h"

enum { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, P2P_TOKENS = 5, SYNC_MEMOPS = 6, BUFFER_ID = 7 };
enum { IS_MANAGED = 8, DEVICE_ORDINAL = 9, IPC_CAPABLE = 10, RANGE_START = 11, RANGE_SIZE = 12, MAPPED = 13 };
enum { HANDLE_TYPES = 14, RDMA_CAPABLE = 15, ACCESS_FLAGS = 16, MEMPOOL_HANDLE = 17, MAPPING_SIZE = 18 };
enum { MAPPING_BASE = 19, MEMORY_BLOCK_ID = 20, DECOMPRESS_CAPABLE = 21, LOCALITY_DOMAIN = 22 };
enum { IS_DEVICE_MEMORY = 2, READ_AND_WRITE = 3 };

bool serve_pointer_range(uint64_t address, uint64_t *start, uint64_t *bytes) {
    struct vram_found block;
    if (!vram_memory_around(address, &block)) return false;
    *start = block.at;
    *bytes = block.asked;
    return true;
}

bool serve_pointer_registers(int which, bool sets) { return which == P2P_TOKENS || (sets && which == SYNC_MEMOPS); }

static bool serve_pointer_says(struct serve_answer *answer, uint32_t bytes, uint64_t value) {
    answer->bytes = bytes;
    answer->value = value;
    return true;
}

/* Returns the handle of the device's default pool, or 0 if the driver does not tell it. */
static uint64_t pool_of(uint32_t device) {
    int (*ask)(cuda_handle *, int) = (int (*)(cuda_handle *, int))cuda_scope_any("cuDeviceGetDefaultMemPool", NULL);
    cuda_handle pool;
    return ask && !ask(&pool, (int)device) ? (uintptr_t)pool : 0;
}

/* Attributes that the driver answers while the block is mapped on the device. While the block is off its device, the
 * driver does not know the address, and the same answer is made here. */
static bool of_what_is_out(const struct vram_found *block, int which, uint64_t address, struct serve_answer *answer) {
    switch (which) {
    case MEMORY_TYPE:
        return serve_pointer_says(answer, 4, IS_DEVICE_MEMORY);
    case DEVICE_POINTER:
        return serve_pointer_says(answer, 8, address);
    case DEVICE_ORDINAL:
        return serve_pointer_says(answer, 4, block->device);
    case MAPPED:
        return serve_pointer_says(answer, 0, 1);
    case RDMA_CAPABLE:
        return serve_pointer_says(answer, 0, block->rdma);
    case SYNC_MEMOPS: /* a block with this attribute does not move */
    case IS_MANAGED:
    case IPC_CAPABLE:
    case HANDLE_TYPES:
    case DECOMPRESS_CAPABLE:
        return serve_pointer_says(answer, 0, 0);
    case ACCESS_FLAGS:
        return serve_pointer_says(answer, 4, block->devices >> cuda_device_now().device & 1 ? READ_AND_WRITE : 0);
    case LOCALITY_DOMAIN:
        return serve_pointer_says(answer, 4, UINT32_MAX);
    default:
        return false;
    }
}

bool serve_pointer_ask(int which, uint64_t address, struct serve_answer *answer) {
    struct vram_found block;
    if (!vram_memory_around(address, &block) || block.state > VRAM_STOWED) return false;
    answer->is_out = block.state == VRAM_STOWED;
    switch (which) {
    case CONTEXT:
        return serve_pointer_says(answer, 8, block.in_stream ? 0 : (uintptr_t)block.context);
    case RANGE_START:
    case MAPPING_BASE:
        return serve_pointer_says(answer, 8, block.at);
    case RANGE_SIZE:
        return serve_pointer_says(answer, 8, block.asked);
    case MAPPING_SIZE:
        return serve_pointer_says(answer, 8, block.size);
    case BUFFER_ID:
    case MEMORY_BLOCK_ID:
        return serve_pointer_says(answer, 8, block.id);
    case MEMPOOL_HANDLE:
        return serve_pointer_says(answer, 8, block.in_stream ? pool_of(block.device) : 0);
    default:
        return answer->is_out && of_what_is_out(&block, which, address, answer);
    }
}
