/* condition.c — conditions of graphs. A condition is a word: kernels of the graph write it, and its value chooses which
 * bodies of a node are executed. The engine executes bodies at once, without other streams in between. No condition is
 * in another condition's body. */
#include "sim.h"

#include <stdlib.h>

enum { ROUNDS = 1000000 }; /* a loop with more rounds is an error; a real device would hang */

struct sim_condition {
    struct sim_condition *next;
    struct sim_graph *graph;
    uint32_t value, initial;
    bool has_default;
};
static struct sim_condition *conditions;

static struct sim_condition *condition_get(CUgraphConditionalHandle handle) {
    for (struct sim_condition *self = conditions; self; self = self->next)
        if ((uint64_t)(uintptr_t)self == handle) return self;
    return NULL;
}

static CUresult create(CUgraphConditionalHandle *out, CUgraph graph, unsigned initial, unsigned flags) {
    if (!out || !graph || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    if (graph_is_body(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    struct sim_condition *self = calloc(1, sizeof *self);
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    *self = (struct sim_condition){conditions, graph, initial, initial, flags & CU_GRAPH_COND_ASSIGN_DEFAULT};
    conditions = self;
    *out = (uint64_t)(uintptr_t)self;
    return CUDA_SUCCESS;
}
SAME(cuGraphConditionalHandleCreate, NEEDS_INIT,
     (CUgraphConditionalHandle * out, CUgraph graph, CUcontext ctx, unsigned initial, unsigned flags),
     ((void)ctx, create(out, graph, initial, flags)))

void condition_forget(const struct sim_graph *graph) {
    for (struct sim_condition **link = &conditions; *link;) {
        struct sim_condition *self = *link;
        if (self->graph != graph) {
            link = &self->next;
            continue;
        }
        *link = self->next;
        free(self);
    }
}

static bool has_good_size(const CUDA_CONDITIONAL_NODE_PARAMS *p) {
    unsigned most = p->type == CU_GRAPH_COND_IF ? 2 : p->type == CU_GRAPH_COND_WHILE ? 1 : 64;
    return p->type >= CU_GRAPH_COND_IF && p->type <= CU_GRAPH_COND_SWITCH && p->size && p->size <= most;
}

CUresult condition_op(const CUDA_CONDITIONAL_NODE_PARAMS *p, struct sim_graph *graph, struct op *out) {
    struct sim_condition *self = condition_get(p->handle);
    if (!self || self->graph != graph || !has_good_size(p)) return CUDA_ERROR_INVALID_VALUE;
    struct sim_graph **bodies = calloc(p->size, sizeof *bodies);
    if (!bodies) return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < p->size; i++) bodies[i] = graph_new_body();
    *out = (struct op){.kind = OP_CONDITION, .condition = {self, graph, p->type, p->size, bodies}};
    return CUDA_SUCCESS;
}

CUresult condition_set(uint64_t handle, uint32_t value) {
    struct sim_condition *self = condition_get(handle);
    if (!self) return CUDA_ERROR_ILLEGAL_ADDRESS;
    self->value = value;
    return CUDA_SUCCESS;
}

void condition_default(struct sim_condition *self) { self->value = self->initial; }

CUresult condition_defaults(struct sim_graph *graph, struct sim_stream *stream) {
    CUresult result = CUDA_SUCCESS;
    for (struct sim_condition *self = conditions; self && !result; self = self->next) {
        if (self->graph != graph || !self->has_default) continue;
        if (stream->capture) return CUDA_ERROR_NOT_SUPPORTED;
        struct op op = {.kind = OP_DEFAULT, .condition = {.handle = self, .graph = graph_hold(graph)}};
        result = engine_add(stream, &op, NULL);
    }
    return result;
}

static CUresult run_while(struct op *op) {
    CUresult result = CUDA_SUCCESS;
    int rounds = 0;
    while (op->condition.handle->value && !result)
        result = ++rounds > ROUNDS ? CUDA_ERROR_LAUNCH_TIMEOUT : graph_run(op->condition.bodies[0], op);
    return result;
}

CUresult condition_run(struct op *op) {
    uint32_t value = op->condition.handle->value;
    if (op->condition.type == CU_GRAPH_COND_WHILE) return run_while(op);
    uint32_t body = op->condition.type == CU_GRAPH_COND_IF ? !value : value; /* the second body is the else branch */
    return body < op->condition.count ? graph_run(op->condition.bodies[body], op) : CUDA_SUCCESS;
}
