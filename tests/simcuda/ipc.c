/* ipc.c — shares plain memory of one process with another process. A handle names the first process, a descriptor of
 * that process, and the offset in the descriptor's file. The other process maps the memory through /proc. */
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

CUresult ipc_export(void *to, const struct block *block) {
    struct ticket ticket = {.magic = MAGIC, .process = getpid(), .device = block->device->id};
    ticket.offset = phys_file(block->phys, &ticket.fd);
    ticket.size = block->phys->size;
    ticket.inside = (uint64_t)(block->host - block->phys->host);
    memset(to, 0, CU_IPC_HANDLE_SIZE);
    memcpy(to, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

/* Fields of the new block that `model` leaves open come from the ticket. */
CUresult ipc_import(const void *from, bool same_process, struct block model, CUdeviceptr *out) {
    struct ticket ticket;
    char path[64];
    memcpy(&ticket, from, sizeof ticket);
    struct device *device = device_get(ticket.device);
    if (ticket.magic != MAGIC || !device) return CUDA_ERROR_INVALID_VALUE;
    if (ticket.process == getpid() && !same_process) return CUDA_ERROR_INVALID_CONTEXT;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.process, ticket.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct sim_phys *phys = fd < 0 ? NULL : phys_import(device, fd, ticket.offset, ticket.size);
    if (!phys) return CUDA_ERROR_OPERATING_SYSTEM;
    CUresult result = space_reserve(ticket.size, 0, 0, &model.at);
    if (result) return result;
    model.kind = KIND_IPC;
    model.size = model.asked = ticket.size;
    model.device = device;
    model.phys = phys;
    model.host = phys->host;
    model.readable = model.writable = (uint64_t)1 << device->id;
    space_add(model);
    *out = model.at + ticket.inside;
    call_details(ticket.size, model.at);
    return CUDA_SUCCESS;
}

API(cuIpcGetMemHandle, NEEDS_CONTEXT, (CUipcMemHandle * out, CUdeviceptr at), (out, at)) {
    struct block *block = space_find(at);
    if (!out || !block || block->kind != KIND_PLAIN) return CUDA_ERROR_INVALID_VALUE;
    return ipc_export(out, block);
}

static CUresult open_memory(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) {
    if (!out || flags != 1) return CUDA_ERROR_INVALID_VALUE;
    return ipc_import(&handle, false, (struct block){.ctx = context_current()}, out);
}
SAME(cuIpcOpenMemHandle, NEEDS_CONTEXT, (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
     open_memory(out, handle, flags))
SAME(cuIpcOpenMemHandle_v2, NEEDS_CONTEXT, (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
     open_memory(out, handle, flags))

API(cuIpcCloseMemHandle, NEEDS_CONTEXT, (CUdeviceptr at), (at)) {
    struct block *block = space_find(at);
    if (!block || block->kind != KIND_IPC || block->pool) return CUDA_ERROR_INVALID_VALUE;
    engine_drain_context(context_current());
    return memory_free(block);
}

/* ---- events of other processes: there are none here */
SAME(cuIpcGetEventHandle, NEEDS_CONTEXT, (CUipcMemHandle * out, CUevent event),
     ((void)out, (void)event, CUDA_ERROR_NOT_SUPPORTED))
SAME(cuIpcOpenEventHandle, NEEDS_CONTEXT, (CUevent * out, CUipcMemHandle handle),
     ((void)out, (void)handle, CUDA_ERROR_NOT_SUPPORTED))
