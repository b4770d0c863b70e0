/* graph.c — graphs. A graph has operations in the order in which they were recorded or added, and each launch executes
 * them in this order. A graph can have memory of its own: its addresses are fixed when a node is added, and its bytes
 * are taken at a launch. */
#include "sim.h"

#include <stdlib.h>

struct sim_node {
    struct op op;
    CUDA_MEM_ALLOC_NODE_PARAMS allocation;
    struct sim_graph *child; /* the graph inside this node: a copy of the graph that was added, or that graph itself */
};

struct sim_graph {
    struct sim_node **nodes;
    size_t count;
    int refs;   /* the graph, and the executable graphs made of it */
    bool moved; /* it belongs to another graph, and ends with that graph */
    bool body;  /* of a condition */
};

struct sim_exec {
    struct sim_graph *graph;
    uint64_t flags;
};

static struct gmem *memories;

struct sim_graph *graph_new(void) {
    struct sim_graph *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->refs = 1;
    return self;
}

struct sim_graph *graph_new_body(void) {
    struct sim_graph *self = graph_new();
    self->moved = self->body = true;
    return self;
}

bool graph_is_body(const struct sim_graph *self) { return self->body; }

struct sim_graph *graph_hold(struct sim_graph *self) {
    self->refs++;
    return self;
}

size_t graph_length(const struct sim_graph *self) { return self->count; }

CUresult graph_add(struct sim_graph *self, const struct op *model, struct sim_node **node) {
    struct sim_node *added = calloc(1, sizeof *added);
    if (!added) return CUDA_ERROR_OUT_OF_MEMORY;
    added->op = *model;
    added->op.wait = NULL;
    if (added->op.kind == OP_GALLOC || added->op.kind == OP_GFREE) added->op.memory.gmem->refs++;
    self->nodes = realloc(self->nodes, (self->count + 1) * sizeof *self->nodes);
    self->nodes[self->count++] = added;
    if (node) *node = added;
    return CUDA_SUCCESS;
}

static void drop_bodies(struct op *op) {
    for (unsigned i = 0; i < op->condition.count; i++) graph_drop(op->condition.bodies[i]);
    free(op->condition.bodies);
}

void graph_drop(struct sim_graph *self) {
    if (--self->refs) return;
    for (size_t i = 0; i < self->count; i++) {
        struct op *op = &self->nodes[i]->op;
        if (op->kind == OP_GALLOC || op->kind == OP_GFREE) gmem_unref(op->memory.gmem);
        if (op->kind == OP_CONDITION) drop_bodies(op);
        if (self->nodes[i]->child) graph_drop(self->nodes[i]->child);
        free(self->nodes[i]);
    }
    condition_forget(self);
    free(self->nodes);
    free(self);
}

/* ---- memory of graphs */

static void count_up(uint64_t *now, uint64_t *high, uint64_t by) {
    *now += by;
    if (*now > *high) *high = *now;
}

static struct sim_phys *phys_for(struct device *device, size_t size) {
    for (struct sim_phys **link = &device->graph_free; *link; link = &(*link)->next)
        if ((*link)->size == size) {
            struct sim_phys *found = *link;
            *link = found->next;
            return found;
        }
    struct sim_phys *fresh = phys_new(device, size, false);
    if (fresh) count_up(&device->graph_reserved, &device->graph_reserved_high, size);
    return fresh;
}

static CUresult gmem_prepare(struct gmem *self) {
    if (!self->phys) self->phys = phys_for(self->device, self->size);
    return self->phys ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void gmem_live(struct gmem *self) {
    uint64_t mask = (uint64_t)1 << self->device->id;
    if (self->block || !self->phys) return;
    self->block = space_add((struct block){.at = self->at,
                                           .size = self->size,
                                           .asked = self->size,
                                           .kind = KIND_GRAPH,
                                           .device = self->device,
                                           .phys = self->phys,
                                           .host = self->phys->host,
                                           .readable = mask,
                                           .writable = mask,
                                           .gmem = self});
    phys_fill(self->phys->host, self->size);
    self->refs++;
    count_up(&self->device->graph_used, &self->device->graph_used_high, self->size);
}

void gmem_dead(struct gmem *self) {
    if (!self->block) return;
    space_remove(self->block);
    self->block = NULL;
    self->phys->next = self->device->graph_free;
    self->device->graph_free = self->phys;
    self->phys = NULL;
    self->device->graph_used -= self->size;
    gmem_unref(self);
}

void gmem_unref(struct gmem *self) {
    if (--self->refs) return;
    struct gmem **link = &memories;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    space_release(self->at, self->size);
    free(self);
}

CUresult graph_memory(struct sim_graph *graph, struct device *device, size_t bytes, CUdeviceptr *out,
                      struct sim_node **node) {
    if (graph->body) return CUDA_ERROR_NOT_SUPPORTED;
    struct gmem *self = calloc(1, sizeof *self);
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    *self =
        (struct gmem){.next = memories, .device = device, .size = round_up(bytes, GRANULE), .graph = graph, .refs = 1};
    CUresult result = space_reserve(self->size, 0, 0, &self->at);
    if (result) {
        free(self);
        return result;
    }
    memories = self;
    *out = self->at;
    result = graph_add(graph, &(struct op){.kind = OP_GALLOC, .memory = {.gmem = self}}, node);
    gmem_unref(self);
    return result;
}

CUresult graph_memory_free(struct sim_graph *graph, CUdeviceptr at, struct sim_node **node) {
    for (struct gmem *self = memories; self; self = self->next)
        if (self->at == at && self->graph == graph)
            return graph_add(graph, &(struct op){.kind = OP_GFREE, .memory = {.gmem = self}}, node);
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- graphs */

API(cuGraphCreate, NEEDS_INIT, (CUgraph * out, unsigned flags), (out, flags)) {
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    *out = graph_new();
    return CUDA_SUCCESS;
}

API(cuGraphDestroy, NEEDS_INIT, (CUgraph self), (self)) {
    if (!self || self->moved) return CUDA_ERROR_INVALID_VALUE;
    graph_drop(self);
    return CUDA_SUCCESS;
}

API(cuGraphGetNodes, NEEDS_INIT, (CUgraph self, CUgraphNode *out, size_t *count), (self, out, count)) {
    if (!self || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out && i < *count; i++) out[i] = i < self->count ? self->nodes[i] : NULL;
    *count = self->count;
    return CUDA_SUCCESS;
}

#define NODE CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count
#define NODE_IS_GOOD ((void)after, (void)count, node && graph)

SAME(cuGraphAddEmptyNode, NEEDS_INIT, (NODE),
     NODE_IS_GOOD ? graph_add(graph, &(struct op){.kind = OP_NOTHING}, node) : CUDA_ERROR_INVALID_VALUE)

static CUresult add_alloc(CUgraphNode *node, CUgraph graph, CUDA_MEM_ALLOC_NODE_PARAMS *p) {
    struct device *device = p ? device_get(p->poolProps.location.id) : NULL;
    if (!device || !p->bytesize || p->poolProps.allocType != CU_MEM_ALLOCATION_PINNED) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_memory(graph, device, p->bytesize, &p->dptr, node);
    if (!result) (*node)->allocation = *p;
    return result;
}
SAME(cuGraphAddMemAllocNode, NEEDS_INIT, (NODE, CUDA_MEM_ALLOC_NODE_PARAMS *p),
     NODE_IS_GOOD ? add_alloc(node, graph, p) : CUDA_ERROR_INVALID_VALUE)
SAME(cuGraphAddMemFreeNode, NEEDS_INIT, (NODE, CUdeviceptr at),
     NODE_IS_GOOD ? graph_memory_free(graph, at, node) : CUDA_ERROR_INVALID_VALUE)

static CUresult add_memset(CUgraphNode *node, CUgraph graph, const CUDA_MEMSET_NODE_PARAMS *p) {
    if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) return CUDA_ERROR_INVALID_VALUE;
    struct op op = {.kind = OP_FILL, .fill = {p->dst, p->value, p->elementSize, p->width, p->height, p->pitch}};
    return graph_add(graph, &op, node);
}
SAME(cuGraphAddMemsetNode, NEEDS_INIT, (NODE, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
     ((void)ctx, NODE_IS_GOOD ? add_memset(node, graph, p) : CUDA_ERROR_INVALID_VALUE))

static CUresult add_copy(CUgraphNode *node, CUgraph graph, const CUDA_MEMCPY3D *p) {
    struct op op;
    CUresult result = p ? copy_shape(p, &op) : CUDA_ERROR_INVALID_VALUE;
    return result ? result : graph_add(graph, &op, node);
}
SAME(cuGraphAddMemcpyNode, NEEDS_INIT, (NODE, const CUDA_MEMCPY3D *p, CUcontext ctx),
     ((void)ctx, NODE_IS_GOOD ? add_copy(node, graph, p) : CUDA_ERROR_INVALID_VALUE))

/* --- graphs in graphs */

/* Whether the graph has nodes that may be in one graph only: memory and conditions. */
static bool has_unique_nodes(const struct sim_graph *self) {
    for (size_t i = 0; i < self->count; i++) {
        const struct sim_node *node = self->nodes[i];
        if (node->op.kind == OP_GALLOC || node->op.kind == OP_GFREE || node->op.kind == OP_CONDITION) return true;
        if (node->child && has_unique_nodes(node->child)) return true;
    }
    return false;
}

static struct sim_graph *copy_of(const struct sim_graph *self) {
    struct sim_graph *copy = graph_new();
    for (size_t i = 0; i < self->count; i++) {
        struct sim_node *node = NULL;
        if (graph_add(copy, &self->nodes[i]->op, &node)) abort();
        if (self->nodes[i]->child) node->child = copy_of(self->nodes[i]->child);
    }
    return copy;
}

/* A graph with memory of its own cannot be copied into another graph. It can be moved, and then belongs to the other
 * graph. */
static CUresult add_child(CUgraphNode *node, CUgraph graph, CUgraph child, int ownership) {
    bool moves = ownership == CU_GRAPH_CHILD_MOVE;
    if (!child || child == graph || child->moved || (!moves && ownership != CU_GRAPH_CHILD_CLONE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!moves && has_unique_nodes(child)) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = graph_add(graph, &(struct op){.kind = OP_NOTHING}, node);
    if (result) return result;
    (*node)->child = moves ? child : copy_of(child);
    (*node)->child->moved = true;
    return CUDA_SUCCESS;
}
SAME(cuGraphAddChildGraphNode, NEEDS_INIT, (NODE, CUgraph child),
     NODE_IS_GOOD ? add_child(node, graph, child, CU_GRAPH_CHILD_CLONE) : CUDA_ERROR_INVALID_VALUE)

API(cuGraphChildGraphNodeGetGraph, NEEDS_INIT, (CUgraphNode node, CUgraph *out), (node, out)) {
    if (!node || !out || !node->child) return CUDA_ERROR_INVALID_VALUE;
    *out = node->child;
    return CUDA_SUCCESS;
}

/* --- kernels, events, conditions */

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUDA_KERNEL_NODE_PARAMS *p) {
    struct op op;
    if (!p || !p->func) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = kernel_op(p->func, p->kernelParams, p->extra, &op);
    return result ? result : graph_add(graph, &op, node);
}
SAME(cuGraphAddKernelNode, NEEDS_INIT, (NODE, const CUDA_KERNEL_NODE_PARAMS *p),
     NODE_IS_GOOD ? add_kernel(node, graph, p) : CUDA_ERROR_INVALID_VALUE)
SAME(cuGraphAddKernelNode_v2, NEEDS_INIT, (NODE, const CUDA_KERNEL_NODE_PARAMS *p),
     NODE_IS_GOOD ? add_kernel(node, graph, p) : CUDA_ERROR_INVALID_VALUE)

static CUresult add_event(CUgraphNode *node, CUgraph graph, CUevent event, enum op_kind kind) {
    if (!event_get(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (graph->body) return CUDA_ERROR_NOT_SUPPORTED;
    return graph_add(graph, &(struct op){.kind = kind, .event = event}, node);
}
SAME(cuGraphAddEventRecordNode, NEEDS_INIT, (NODE, CUevent event),
     NODE_IS_GOOD ? add_event(node, graph, event, OP_RECORD) : CUDA_ERROR_INVALID_VALUE)
SAME(cuGraphAddEventWaitNode, NEEDS_INIT, (NODE, CUevent event),
     NODE_IS_GOOD ? add_event(node, graph, event, OP_WAIT) : CUDA_ERROR_INVALID_VALUE)

static CUresult add_condition(CUgraphNode *node, CUgraph graph, CUDA_CONDITIONAL_NODE_PARAMS *p) {
    struct op op;
    CUresult result = condition_op(p, graph, &op);
    if (!result) result = graph_add(graph, &op, node);
    if (!result) p->phGraph_out = op.condition.bodies;
    return result;
}

CUresult graph_run(struct sim_graph *self, const struct op *as) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < self->count && !result; i++) {
        struct op step = self->nodes[i]->op;
        step.ctx = as->ctx;
        step.stream = as->stream;
        if (self->nodes[i]->child)
            result = graph_run(self->nodes[i]->child, as);
        else
            result = op_blocked(&step) ? CUDA_ERROR_NOT_SUPPORTED : op_run(&step); /* nothing can wait here */
    }
    return result;
}

/* Adds a node. This driver has no nodes for semaphores, and none for batches of operations. */
static CUresult add_node(CUgraphNode *node, CUgraph graph, CUgraphNodeParams *p) {
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_KERNEL:
        return add_kernel(node, graph, &p->kernel);
    case CU_GRAPH_NODE_WAIT_EVENT:
        return add_event(node, graph, p->event.event, OP_WAIT);
    case CU_GRAPH_NODE_EVENT_RECORD:
        return add_event(node, graph, p->event.event, OP_RECORD);
    case CU_GRAPH_NODE_CONDITIONAL:
        return add_condition(node, graph, &p->conditional);
    case CU_GRAPH_NODE_MEMCPY:
        return add_copy(node, graph, &p->copy.copyParams);
    case CU_GRAPH_NODE_MEMSET:
        return add_memset(node, graph, &p->set);
    case CU_GRAPH_NODE_GRAPH:
        return add_child(node, graph, p->child.graph, p->child.ownership);
    case CU_GRAPH_NODE_EMPTY:
        return graph_add(graph, &(struct op){.kind = OP_NOTHING}, node);
    case CU_GRAPH_NODE_MEM_ALLOC:
        return add_alloc(node, graph, &p->alloc);
    case CU_GRAPH_NODE_MEM_FREE:
        return graph_memory_free(graph, p->free.dptr, node);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}
SAME(cuGraphAddNode, NEEDS_INIT, (NODE, CUgraphNodeParams *p),
     NODE_IS_GOOD ? add_node(node, graph, p) : CUDA_ERROR_INVALID_VALUE)
SAME(cuGraphAddNode_v2, NEEDS_INIT,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
      CUgraphNodeParams *p),
     ((void)edges, NODE_IS_GOOD ? add_node(node, graph, p) : CUDA_ERROR_INVALID_VALUE))

API(cuGraphMemAllocNodeGetParams, NEEDS_INIT, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out), (node, out)) {
    if (!node || !out || node->op.kind != OP_GALLOC) return CUDA_ERROR_INVALID_VALUE;
    *out = node->allocation;
    return CUDA_SUCCESS;
}

API(cuGraphMemFreeNodeGetParams, NEEDS_INIT, (CUgraphNode node, CUdeviceptr *out), (node, out)) {
    if (!node || !out || node->op.kind != OP_GFREE) return CUDA_ERROR_INVALID_VALUE;
    *out = node->op.memory.gmem->at;
    return CUDA_SUCCESS;
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const CUDA_HOST_NODE_PARAMS *p) {
    if (!p || !p->fn) return CUDA_ERROR_INVALID_VALUE;
    return graph_add(graph, &(struct op){.kind = OP_HOST, .host = {.run = p->fn, .data = p->userData}}, node);
}
SAME(cuGraphAddHostNode, NEEDS_INIT, (NODE, const CUDA_HOST_NODE_PARAMS *p),
     NODE_IS_GOOD ? add_host(node, graph, p) : CUDA_ERROR_INVALID_VALUE)

/* ---- what can be launched */

static CUresult instantiate(CUgraphExec *out, CUgraph graph, uint64_t flags) {
    struct sim_exec *self = calloc(1, sizeof *self);
    if (!out || !graph || graph->moved || !self) return CUDA_ERROR_INVALID_VALUE;
    graph->refs++;
    *self = (struct sim_exec){graph, flags};
    *out = self;
    return CUDA_SUCCESS;
}
SAME(cuGraphInstantiate_v2, NEEDS_CONTEXT,
     (CUgraphExec * out, CUgraph graph, CUgraphNode *node, char *log, size_t room),
     ((void)node, (void)log, (void)room, instantiate(out, graph, 0)))
SAME(cuGraphInstantiateWithFlags, NEEDS_CONTEXT, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
     instantiate(out, graph, flags))

struct launch {
    uint64_t flags;
    struct sim_stream *stream;
};
typedef CUresult launch_step(const struct launch *self, struct op *op);

/* Calls `step` for each operation of a graph and of the graphs in it, in order. */
static CUresult walk(const struct launch *self, struct sim_graph *graph, launch_step *step) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && !result; i++) {
        struct sim_node *node = graph->nodes[i];
        result = node->child ? walk(self, node->child, step) : step(self, &node->op);
    }
    return result;
}

/* A launch fails if memory of the previous launch was not freed. But if the graph was made with
 * CU_GRAPH_AUTO_FREE_ON_LAUNCH, the launch first frees that memory. */
static CUresult clear_memory(const struct launch *self, struct op *op) {
    if (op->kind != OP_GALLOC || !op->memory.gmem->phys) return CUDA_SUCCESS;
    engine_drain_context(self->stream->ctx);
    if (!op->memory.gmem->block) return CUDA_SUCCESS;
    if (!(self->flags & CU_GRAPH_AUTO_FREE_ON_LAUNCH)) return CUDA_ERROR_INVALID_VALUE;
    gmem_dead(op->memory.gmem);
    return CUDA_SUCCESS;
}

static CUresult prepare_memory(const struct launch *self, struct op *op) {
    (void)self;
    return op->kind == OP_GALLOC ? gmem_prepare(op->memory.gmem) : CUDA_SUCCESS;
}

/* Records the event on the stream, or makes the stream wait for the event's latest record. */
static CUresult add_event_to_stream(struct sim_stream *stream, const struct op *op) {
    struct sim_event *event = event_get(op->event);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture || event->capture) return CUDA_ERROR_NOT_SUPPORTED;
    return op->kind == OP_RECORD ? event_record(event, stream) : event_wait(event, stream);
}

static CUresult add_to_stream(const struct launch *self, struct op *op) {
    if (op->kind == OP_GALLOC || op->kind == OP_GFREE) op->memory.gmem->refs++;
    if (op->kind == OP_RECORD || op->kind == OP_WAIT) return add_event_to_stream(self->stream, op);
    if (op->kind == OP_CONDITION && self->stream->capture) return CUDA_ERROR_NOT_SUPPORTED;
    if (op->kind == OP_CONDITION) graph_hold(op->condition.graph);
    return engine_add(self->stream, op, NULL);
}

static CUresult launch(CUgraphExec self, CUstream handle) {
    struct sim_stream *stream = stream_get(handle);
    if (!self || !stream) return CUDA_ERROR_INVALID_HANDLE;
    const struct launch now = {self->flags, stream};
    CUresult result = walk(&now, self->graph, clear_memory);
    if (!result) result = walk(&now, self->graph, prepare_memory);
    if (!result) result = condition_defaults(self->graph, stream);
    return result ? result : walk(&now, self->graph, add_to_stream);
}
SAME(cuGraphLaunch, NEEDS_CONTEXT, (CUgraphExec self, CUstream stream), launch(self, stream))
SAME(cuGraphLaunch_ptsz, NEEDS_CONTEXT, (CUgraphExec self, CUstream stream), launch(self, stream_per_thread(stream)))

API(cuGraphExecDestroy, NEEDS_INIT, (CUgraphExec self), (self)) {
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    graph_drop(self->graph);
    free(self);
    return CUDA_SUCCESS;
}

/* ---- what the device keeps for graphs */

API(cuDeviceGraphMemTrim, NEEDS_INIT, (CUdevice id), (id)) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    while (device->graph_free) {
        struct sim_phys *phys = device->graph_free;
        device->graph_free = phys->next;
        device->graph_reserved -= phys->size;
        phys_unref(phys);
    }
    return CUDA_SUCCESS;
}

API(cuDeviceGetGraphMemAttribute, NEEDS_INIT, (CUdevice id, int which, void *out), (id, which, out)) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || which < 0 || which > 3) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t values[] = {device->graph_used, device->graph_used_high, device->graph_reserved,
                               device->graph_reserved_high};
    *(uint64_t *)out = values[which];
    return CUDA_SUCCESS;
}

API(cuDeviceSetGraphMemAttribute, NEEDS_INIT, (CUdevice id, int which, void *value), (id, which, value)) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(uint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
    if (which == CU_GRAPH_MEM_USED_HIGH)
        device->graph_used_high = device->graph_used;
    else if (which == CU_GRAPH_MEM_RESERVED_HIGH)
        device->graph_reserved_high = device->graph_reserved;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
