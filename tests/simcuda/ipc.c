/* ipc.c — plain memory of one process in another. A handle says which process, which of its descriptors, and where in
 * it; the other process maps that through /proc. */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct ticket {
    uint64_t magic;
    int32_t process, fd, device, reserved;
    uint64_t offset, size, inside;
};
_Static_assert(sizeof(struct ticket) <= CU_IPC_HANDLE_SIZE, "a handle holds it");
#define MAGIC 0x73696d6375646131u

API(cuIpcGetMemHandle, NEEDS_CONTEXT, (CUipcMemHandle * out, CUdeviceptr at), (out, at)) {
    struct block *block = space_find(at);
    if (!out || !block || block->kind != KIND_PLAIN) return CUDA_ERROR_INVALID_VALUE;
    struct ticket ticket = {.magic = MAGIC, .process = getpid(), .device = block->device->id};
    ticket.offset = phys_file(block->phys, &ticket.fd);
    ticket.size = block->phys->size;
    ticket.inside = (uint64_t)(block->host - block->phys->host);
    memset(out, 0, sizeof *out);
    memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

static CUresult open_memory(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) {
    struct ticket ticket;
    char path[64];
    memcpy(&ticket, &handle, sizeof ticket);
    struct device *device = device_get(ticket.device);
    if (!out || flags != 1 || ticket.magic != MAGIC || !device) return CUDA_ERROR_INVALID_VALUE;
    if (ticket.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT; /* not in the process that it comes from */
    snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.process, ticket.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct sim_phys *phys = fd < 0 ? NULL : phys_import(device, fd, ticket.offset, ticket.size);
    if (!phys) return CUDA_ERROR_OPERATING_SYSTEM;
    CUdeviceptr at;
    CUresult result = space_reserve(ticket.size, 0, 0, &at);
    if (result) return result;
    uint64_t mask = (uint64_t)1 << device->id;
    space_add((struct block){.at = at,
                             .size = ticket.size,
                             .asked = ticket.size,
                             .kind = KIND_IPC,
                             .device = device,
                             .ctx = context_current(),
                             .phys = phys,
                             .host = phys->host,
                             .readable = mask,
                             .writable = mask});
    *out = at + ticket.inside;
    call_details(ticket.size, at);
    return CUDA_SUCCESS;
}
SAME(cuIpcOpenMemHandle, NEEDS_CONTEXT, (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
     open_memory(out, handle, flags))
SAME(cuIpcOpenMemHandle_v2, NEEDS_CONTEXT, (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
     open_memory(out, handle, flags))

API(cuIpcCloseMemHandle, NEEDS_CONTEXT, (CUdeviceptr at), (at)) {
    struct block *block = space_find(at);
    if (!block || block->kind != KIND_IPC) return CUDA_ERROR_INVALID_VALUE;
    engine_drain_context(context_current());
    return memory_free(block);
}

/* ---- events of other processes: there are none here */
SAME(cuIpcGetEventHandle, NEEDS_CONTEXT, (CUipcMemHandle * out, CUevent event),
     ((void)out, (void)event, CUDA_ERROR_NOT_SUPPORTED))
SAME(cuIpcOpenEventHandle, NEEDS_CONTEXT, (CUevent * out, CUipcMemHandle handle),
     ((void)out, (void)handle, CUDA_ERROR_NOT_SUPPORTED))
