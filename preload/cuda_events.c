/* cuda_events.c — see cuda_events.h. What is freed leaves the table before the driver is called: once the driver has
 * it, another thread may get the same number. */
#include "cuda_events.h"

#include "account.h"
#include "cuda_counts.h"
#include "cuda_oom.h"
#include "cuda_parts.h"
#include "os.h"
#include "site.h"
#include "tags.h"

static uint64_t last_physical;

static void add_one(uint64_t *word) { __atomic_fetch_add(word, 1, __ATOMIC_RELAXED); }

static enum cuda_space space_of(enum snap_cuda_kind kind) {
    switch (kind) {
    case SNAP_CUDA_ARRAY:
        return CUDA_ARRAY;
    case SNAP_CUDA_RESERVED:
        return CUDA_RANGE;
    case SNAP_CUDA_MAPPING:
        return CUDA_MAPPING;
    case SNAP_CUDA_POOL:
        return CUDA_POOL;
    case SNAP_CUDA_HANDLE:
        return CUDA_HANDLE;
    default:
        return CUDA_ADDRESS;
    }
}

/* Handles, mappings and pools have no bytes of their own. */
static bool is_counted(const struct snap_cuda_block *block) {
    return block->kind != SNAP_CUDA_HANDLE && block->kind != SNAP_CUDA_MAPPING && block->kind != SNAP_CUDA_POOL;
}

static void count_out(const struct snap_cuda_block *block) {
    uint64_t parts = block->flags & SNAP_CUDA_PARTS ? cuda_parts_end(block) : 0;
    if (is_counted(block)) cuda_counts_remove(block->count, block->size - parts, 1);
}

/* Frees that are not seen leave a block behind: the context ended in a way that is not known, or the free went another
 * way. */
static void drop_earlier(enum cuda_space space, uint64_t number) {
    struct snap_cuda_block earlier;
    if (likely(!cuda_blocks_take(space, number, &earlier))) return;
    add_one(&cuda_counts_head()->missed_frees);
    count_out(&earlier);
}

static void add(const struct cuda_call *call, enum cuda_space space, struct snap_cuda_block *block) {
    drop_earlier(space, block->address);
    if (is_counted(block))
        block->count = cuda_counts_add(site_of_call(call->caller), tags_used ? tags_present()->tag : 0, block->kind,
                                       block->device, block->size);
    block->birth_ns = os_now();
    block->thread = account_thread_slot();
    if (!cuda_blocks_add(space, block) && is_counted(block))
        cuda_counts_remove(block->count, block->size, 1); /* its end will not be seen */
}

/* --- coming --- */

static struct snap_cuda_block block_here(enum snap_cuda_kind kind, uint64_t number, uint64_t bytes) {
    struct cuda_place place = cuda_device_now();
    return (struct snap_cuda_block){.kind = (uint8_t)kind,
                                    .device = (uint16_t)place.device,
                                    .address = number,
                                    .size = bytes,
                                    .context = (uintptr_t)place.context};
}

static void sample(const struct snap_cuda_block *block) {
    cuda_device_sample(&(struct cuda_place){(cuda_handle)block->context, block->device}, false);
}

void cuda_events_made(const struct cuda_call *call, enum snap_cuda_kind kind, uint64_t number, uint64_t bytes) {
    struct snap_cuda_block block = block_here(kind, number, bytes);
    if (!number) return;
    add(call, space_of(kind), &block);
    sample(&block);
}

void cuda_events_made_pool(const struct cuda_call *call, cuda_handle pool, const struct cuda_properties *properties) {
    struct snap_cuda_block block = block_here(SNAP_CUDA_POOL, (uintptr_t)pool, 0);
    if (properties->location.type == CUDA_LOCATION_DEVICE) block.device = (uint16_t)properties->location.id;
    add(call, CUDA_POOL, &block);
}

static uint32_t device_of_pool(cuda_handle pool, uint32_t otherwise) {
    struct snap_cuda_block known;
    return cuda_blocks_find(CUDA_POOL, (uintptr_t)pool, &known) ? known.device : otherwise;
}

void cuda_events_made_in_pool(const struct cuda_call *call, uint64_t at, uint64_t bytes, cuda_handle stream,
                              cuda_handle pool) {
    bool captured = cuda_device_captures(stream);
    struct snap_cuda_block block = block_here(captured ? SNAP_CUDA_GRAPH : SNAP_CUDA_POOL_MEMORY, at, bytes);
    uint32_t device = cuda_device_of_stream(stream, block.device);
    if (!at) return;
    block.device = (uint16_t)(pool ? device_of_pool(pool, device) : device);
    block.stream = (uintptr_t)stream;
    block.pool = captured ? 0 : (uintptr_t)pool;
    add(call, CUDA_ADDRESS, &block);
    if (!captured) sample(&block);
}

void cuda_events_made_in_graph(const struct cuda_call *call, const struct cuda_alloc_node *alloc, cuda_handle graph) {
    struct snap_cuda_block block = block_here(SNAP_CUDA_GRAPH, alloc->start, alloc->bytes);
    const struct cuda_properties *of = &alloc->pool.properties;
    if (of->location.type == CUDA_LOCATION_DEVICE) block.device = (uint16_t)of->location.id;
    block.pool = (uintptr_t)graph;
    if (alloc->start) add(call, CUDA_ADDRESS, &block);
}

/* --- physical memory --- */

static void add_handle(const struct cuda_call *call, cuda_memory memory, uint64_t physical) {
    struct snap_cuda_block handle = {.kind = SNAP_CUDA_HANDLE, .address = memory, .pool = physical, .users = 1};
    add(call, CUDA_HANDLE, &handle);
}

static void add_physical(const struct cuda_call *call, cuda_memory memory, struct snap_cuda_block block) {
    block.address = __atomic_add_fetch(&last_physical, 1, __ATOMIC_RELAXED);
    block.stream = memory;
    block.users = 1;
    add(call, CUDA_PHYSICAL, &block);
    add_handle(call, memory, block.address);
}

void cuda_events_made_physical(const struct cuda_call *call, cuda_memory memory, uint64_t bytes,
                               const struct cuda_properties *properties) {
    int type = properties->location.type;
    bool host = type >= CUDA_LOCATION_HOST && type <= CUDA_LOCATION_HOST_NUMA_CURRENT;
    struct snap_cuda_block block = block_here(host ? SNAP_CUDA_PINNED : SNAP_CUDA_PHYSICAL, 0, bytes);
    if (type == CUDA_LOCATION_DEVICE) block.device = (uint16_t)properties->location.id;
    add_physical(call, memory, block);
    sample(&block);
}

void cuda_events_made_of_another(const struct cuda_call *call, cuda_memory memory) {
    add_physical(call, memory, block_here(SNAP_CUDA_IMPORTED, 0, 0));
}

static void use_physical(uint64_t physical) {
    struct snap_cuda_block *record = cuda_blocks_at(CUDA_PHYSICAL, physical);
    if (record) __atomic_fetch_add(&record->users, 1, __ATOMIC_RELAXED);
}

static void let_go_of_physical(uint64_t physical) {
    struct snap_cuda_block *record = cuda_blocks_at(CUDA_PHYSICAL, physical), last;
    if (!record || __atomic_sub_fetch(&record->users, 1, __ATOMIC_ACQ_REL)) return;
    if (cuda_blocks_take(CUDA_PHYSICAL, physical, &last)) count_out(&last);
}

/* The mapping that an address lies in, of which it need not be the start. */
struct search {
    uint64_t address;
    struct snap_cuda_block found;
};

static void look_at_mapping(enum cuda_space space, struct snap_cuda_block *block, void *context) {
    struct search *search = context;
    if (space == CUDA_MAPPING && search->address - block->address < block->size) search->found = *block;
}

static bool find_mapping(uint64_t address, struct snap_cuda_block *out) {
    struct search search = {.address = address};
    if (cuda_blocks_find(CUDA_MAPPING, address, out)) return true;
    cuda_blocks_all(look_at_mapping, &search);
    *out = search.found;
    return search.found.size != 0;
}

void cuda_events_retained(const struct cuda_call *call, cuda_memory memory, cuda_address at) {
    struct snap_cuda_block mapping, *handle = cuda_blocks_at(CUDA_HANDLE, memory);
    if (handle) {
        __atomic_fetch_add(&handle->users, 1, __ATOMIC_RELAXED);
    } else if (find_mapping(at, &mapping)) {
        use_physical(mapping.pool);
        add_handle(call, memory, mapping.pool);
    }
}

void cuda_events_released(struct cuda_call *call) {
    struct snap_cuda_block *handle = &call->taken;
    if (!call->found)
        cuda_events_gone(call); /* notes that it is not known */
    else if (--handle->users)
        cuda_blocks_add(CUDA_HANDLE, handle);
    else
        let_go_of_physical(handle->pool);
}

void cuda_events_mapped(const struct cuda_call *call, cuda_address at, uint64_t bytes, cuda_memory memory) {
    struct snap_cuda_block handle, block = block_here(SNAP_CUDA_MAPPING, at, bytes);
    if (!cuda_blocks_find(CUDA_HANDLE, memory, &handle)) return;
    block.pool = handle.pool;
    use_physical(handle.pool);
    add(call, CUDA_MAPPING, &block);
}

/* Whole mappings, one after the other. */
void cuda_events_unmapped(cuda_address at, uint64_t bytes) {
    struct snap_cuda_block mapping;
    for (cuda_address end = at + bytes; at < end && cuda_blocks_take(CUDA_MAPPING, at, &mapping); at += mapping.size)
        let_go_of_physical(mapping.pool);
}

/* --- going --- */

void cuda_events_take(struct cuda_call *call, enum cuda_space space, uint64_t number) {
    call->removes = number != 0;
    call->space = space;
    call->number = number;
    call->found = number && cuda_blocks_take(space, number, &call->taken);
}

void cuda_events_gone(struct cuda_call *call) {
    if (call->found)
        count_out(&call->taken);
    else if (call->removes)
        add_one(&cuda_counts_head()->foreign_frees);
}

void cuda_events_stays(struct cuda_call *call) {
    if (call->found) cuda_blocks_add(call->space, &call->taken);
    if (call->removes && !call->found) add_one(&cuda_counts_head()->foreign_frees);
}

void cuda_events_gone_in(struct cuda_call *call, cuda_handle stream) {
    if (call->found && cuda_device_captures(stream))
        cuda_events_stays(call);
    else
        cuda_events_gone(call);
}

/* --- marks, graphs, contexts --- */

void cuda_events_mark(enum cuda_space space, uint64_t number, enum snap_cuda_flag flag) {
    struct snap_cuda_block *record = cuda_blocks_at(space, number);
    if (record) __atomic_fetch_or(&record->flags, (uint8_t)flag, __ATOMIC_RELAXED);
}

void cuda_events_mark_memory(cuda_memory memory, enum snap_cuda_flag flag) {
    struct snap_cuda_block handle;
    if (cuda_blocks_find(CUDA_HANDLE, memory, &handle)) cuda_events_mark(CUDA_PHYSICAL, handle.pool, flag);
}

struct captured {
    uint64_t stream, graph;
};

static void give_to_graph(enum cuda_space space, struct snap_cuda_block *block, void *context) {
    const struct captured *captured = context;
    if (space != CUDA_ADDRESS || block->kind != SNAP_CUDA_GRAPH || block->pool) return;
    if (block->stream == captured->stream) os_store(&block->pool, captured->graph);
}

void cuda_events_captured(cuda_handle stream, cuda_handle graph) {
    struct captured captured = {(uintptr_t)stream, (uintptr_t)graph};
    if (cuda_counts_begun()) cuda_blocks_all(give_to_graph, &captured);
}

/* What ends with a graph, a context, or a device. */
struct end {
    uint64_t graph, context;
    uint32_t device;
};

static bool is_of_context(uint32_t kind) {
    return kind == SNAP_CUDA_DEVICE_MEMORY || kind == SNAP_CUDA_MANAGED || kind == SNAP_CUDA_ARRAY ||
           kind == SNAP_CUDA_PINNED || kind == SNAP_CUDA_REGISTERED;
}

static bool ends(const struct end *end, const struct snap_cuda_block *block) {
    if (end->graph) return block->kind == SNAP_CUDA_GRAPH && block->pool == end->graph;
    if (end->context) return block->context == end->context && is_of_context(block->kind);
    return block->device == end->device;
}

static void end_block(enum cuda_space space, struct snap_cuda_block *block, void *context) {
    struct snap_cuda_block gone;
    if (space != CUDA_PART && ends(context, block) && cuda_blocks_take(space, block->address, &gone)) count_out(&gone);
}

static void end_all(struct end end) {
    if (cuda_counts_begun()) cuda_blocks_all(end_block, &end);
}

void cuda_events_graph_ended(cuda_handle graph) { end_all((struct end){.graph = (uintptr_t)graph}); }

void cuda_events_context_ended(cuda_handle context) { end_all((struct end){.context = (uintptr_t)context}); }

void cuda_events_device_ended(uint32_t device) { end_all((struct end){.device = device}); }

void cuda_events_primary_released(uint32_t device) {
    cuda_handle context = cuda_device_primary_of(device);
    if (context && !cuda_device_is_active(device)) cuda_events_context_ended(context);
}

/* --- refused --- */

void cuda_events_refused(const struct cuda_call *call) {
    struct cuda_place place = cuda_device_now();
    cuda_oom_refused(&place, call->asked_kind, call->asked);
}

void cuda_events_abandon(void) {
    cuda_blocks_abandon();
    cuda_counts_abandon();
    cuda_device_abandon();
    cuda_parts_abandon();
    cuda_oom_abandon();
}
