/* execute.c — executes one operation for the engine. In: an operation. Out: its effect, or the error that breaks its
 * context from then on. Host functions of the program run without the lock. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static CUresult fault(void) {
    space_fault();
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult copy_row(struct op *op, uint64_t to, uint64_t from, size_t bytes) {
    enum access how = op->copy.peer ? ACCESS_PEER_COPY : ACCESS_COPY;
    while (bytes) {
        size_t length = bytes;
        char *source = op->copy.staged ? (char *)op->copy.staged + (from - op->copy.from)
                                       : access_at(from, &length, op->ctx, false, how);
        char *target = source ? access_at(to, &length, op->ctx, true, how) : NULL;
        if (!target) return fault();
        memmove(target, source, length);
        to += length;
        from += length;
        bytes -= length;
    }
    return CUDA_SUCCESS;
}

static CUresult copy(struct op *op) {
    const struct shape *s = &op->copy.shape;
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < s->depth && !result; z++)
        for (size_t y = 0; y < s->height && !result; y++)
            result = copy_row(op, op->copy.to + z * s->dslice + y * s->dpitch,
                              op->copy.from + z * s->sslice + y * s->spitch, s->width);
    return result;
}

static void fill_bytes(char *at, size_t bytes, uint32_t value, size_t element) {
    if (element == 1) {
        memset(at, (int)value, bytes);
        return;
    }
    size_t done = bytes < element ? bytes : element;
    memcpy(at, &value, done);
    for (; done < bytes; done *= 2) memcpy(at + done, at, done < bytes - done ? done : bytes - done);
}

static CUresult fill_row(struct op *op, uint64_t to, size_t bytes) {
    while (bytes) {
        size_t length = bytes;
        char *at = access_at(to, &length, op->ctx, true, ACCESS_COPY);
        if (!at) return fault();
        fill_bytes(at, length, op->fill.value, op->fill.element);
        to += length;
        bytes -= length;
    }
    return CUDA_SUCCESS;
}

static CUresult fill(struct op *op) {
    CUresult result = CUDA_SUCCESS;
    for (size_t y = 0; y < op->fill.height && !result; y++)
        result = fill_row(op, op->fill.to + y * op->fill.pitch, op->fill.width * op->fill.element);
    return result;
}

static CUresult kernel(struct op *op) {
    CUresult result = op->kernel.kernel->run(op->ctx, op->kernel.arguments);
    return result ? fault() : CUDA_SUCCESS;
}

/* Calls the program's own function. This function may wait for other threads, but must not call the driver. */
static CUresult host(struct op *op) {
    CUresult status = op->ctx->sticky;
    pthread_mutex_unlock(&sim_lock);
    call_callback(true);
    if (op->kind == OP_HOST)
        op->host.run(op->host.data);
    else
        op->host.call(op->host.handle, status, op->host.data);
    call_callback(false);
    pthread_mutex_lock(&sim_lock);
    return CUDA_SUCCESS;
}

CUresult op_run(struct op *op) {
    switch (op->kind) {
    case OP_COPY:
        return copy(op);
    case OP_FILL:
        return fill(op);
    case OP_KERNEL:
        return kernel(op);
    case OP_HOST:
    case OP_CALLBACK:
        return host(op);
    case OP_CONDITION:
        return condition_run(op);
    case OP_DEFAULT:
        condition_default(op->condition.handle);
        return CUDA_SUCCESS;
    case OP_GALLOC:
        gmem_live(op->memory.gmem);
        return CUDA_SUCCESS;
    case OP_GFREE:
        gmem_dead(op->memory.gmem);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS; /* pool_executed does the work of pools, also if the context is broken */
    }
}

static bool is_of_host(uint64_t address) { return !space_inside(address); }

uint64_t op_cost_ns(const struct op *op) {
    if (!sim_config.copy_mib_s || op->kind != OP_COPY) return 0;
    if (!is_of_host(op->copy.to) && !is_of_host(op->copy.from)) return 0;
    const struct shape *s = &op->copy.shape;
    return s->width * s->height * s->depth * 1000 / (sim_config.copy_mib_s * MB / 1000000);
}

bool op_blocked(const struct op *op) {
    return op->kind == OP_KERNEL && op->kernel.kernel->blocked && op->kernel.kernel->blocked(op->kernel.arguments);
}

void op_forget(struct op *op) {
    if (op->kind == OP_COPY) free(op->copy.staged);
    if (op->kind == OP_GALLOC || op->kind == OP_GFREE) gmem_unref(op->memory.gmem);
    if (op->kind == OP_CONDITION || op->kind == OP_DEFAULT) graph_drop(op->condition.graph);
    mark_unref(op->mark);
    mark_unref(op->wait);
}
