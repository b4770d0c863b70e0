/* access.c — when an operation is executed, finds the host memory behind an address that the operation uses. The access
 * is a fault if the memory is not mapped or not live yet, or if the device may not use the memory. */
#include "sim.h"

#include <string.h>

static bool permitted(const struct block *block, const struct sim_context *ctx, bool write, enum access how) {
    uint64_t self = (uint64_t)1 << ctx->device->id, owner = (uint64_t)1 << block->device->id;
    uint64_t mask = write ? block->writable : block->readable;
    if (mask & self) return true;
    if (how == ACCESS_PEER_COPY) return mask & owner;
    bool plain = block->kind == KIND_PLAIN || block->kind == KIND_ARRAY || block->kind == KIND_IPC;
    return plain && mask & owner && (how == ACCESS_COPY || ctx->peers & owner);
}

static void make_resident(struct block *block) {
    if (block->kind == KIND_MANAGED && !block->resident)
        block->resident = device_take(block->device, block->size, false);
}

char *access_at(uint64_t address, size_t *length, struct sim_context *ctx, bool write, enum access how) {
    if (!space_inside(address)) {
        struct pinned *pinned = host_find((void *)(uintptr_t)address);
        if (how == ACCESS_KERNEL) {
            if (!pinned) return NULL;
            size_t left = (size_t)(pinned->at + pinned->size - (char *)(uintptr_t)address);
            if (*length > left) *length = left;
        }
        return (char *)(uintptr_t)address;
    }
    struct block *block = space_find(address);
    if (!block || !block->host || !permitted(block, ctx, write, how)) return NULL;
    make_resident(block);
    size_t offset = address - block->at;
    if (*length > block->size - offset) *length = block->size - offset;
    return block->host + offset;
}

static int beside(char *mine, uint64_t address, size_t bytes, bool write) {
    int result = 0;
    pthread_mutex_lock(&sim_lock);
    while (bytes && !result) {
        struct block *block = space_find(address);
        if (!block || !block->host) {
            result = CUDA_ERROR_ILLEGAL_ADDRESS;
            break;
        }
        size_t offset = address - block->at, length = block->size - offset < bytes ? block->size - offset : bytes;
        if (write)
            memcpy(block->host + offset, mine, length);
        else
            memcpy(mine, block->host + offset, length);
        mine += length;
        address += length;
        bytes -= length;
    }
    pthread_mutex_unlock(&sim_lock);
    return result;
}

__attribute__((visibility("default"))) int sim_peek(void *to, uint64_t address, size_t bytes) {
    return beside(to, address, bytes, false);
}

__attribute__((visibility("default"))) int sim_poke(uint64_t address, const void *from, size_t bytes) {
    return beside((char *)from, address, bytes, true);
}
