/* pool.c — stream-ordered memory. A pool takes chunks from the device and cuts them up. The stream that freed memory
 * can use it again at once. Another stream can use it when the free has been executed, or for work that waits for the
 * free. Empty chunks go back to the device when the pool is trimmed. At a synchronisation, empty chunks go back until
 * the pool holds no more than its threshold. */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 512 };
#define CHUNK (32 * MB)

struct sim_chunk {
    struct sim_chunk *next;
    struct sim_pool *pool;
    struct sim_phys *phys;
    CUdeviceptr at;
    struct extents free;
    size_t used; /* bytes of blocks whose free has not been executed */
};

struct pending { /* one free that has not been executed; in the list, the latest comes first */
    struct pending *next;
    struct block *block; /* NULL: used again */
    struct sim_stream *stream;
};

struct sim_pool {
    struct sim_pool *next;
    struct device *device;
    CUmemPoolProps props;
    struct sim_chunk *chunks;
    struct pending *pending;
    uint64_t follow, opportunistic, internal, threshold;
    uint64_t reserved, reserved_high, used, used_high;
    uint64_t readable, writable;
    size_t live;
    bool gone, imported, of_host, managed;
};

static struct sim_pool *pools, *host_pool, *managed_pool;

static struct sim_pool *pool_new(struct device *device) {
    struct sim_pool *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (struct sim_pool){.next = pools, .device = device, .follow = 1, .opportunistic = 1, .internal = 1};
    self->readable = self->writable = (uint64_t)1 << device->id;
    return pools = self;
}

void pool_begin(struct device *device) { device->default_pool = device->pool = pool_new(device); }

static struct sim_pool *pool_get(CUmemoryPool handle) {
    for (struct sim_pool *self = pools; self; self = self->next)
        if (self == handle) return self->gone ? NULL : self;
    return NULL;
}

static void tell(const struct sim_pool *self) {
    call_pool((uint64_t)(uintptr_t)self, self->reserved, self->used, self->threshold);
}

/* ---- chunks */

static void count_up(uint64_t *now, uint64_t *high, uint64_t by) {
    *now += by;
    if (*now > *high) *high = *now;
}

static struct sim_chunk *chunk_new(struct sim_pool *pool, size_t size) {
    struct sim_chunk *self = calloc(1, sizeof *self);
    bool shared = pool->props.handleTypes & CU_MEM_HANDLE_POSIX_FD;
    if (!self || !(self->phys = phys_new(pool->device, size, shared))) goto failed;
    if (space_reserve(size, 0, 0, &self->at)) {
        phys_unref(self->phys);
        goto failed;
    }
    self->pool = pool;
    self->next = pool->chunks;
    extents_give(&self->free, 0, size);
    count_up(&pool->reserved, &pool->reserved_high, size);
    return pool->chunks = self;
failed:
    free(self);
    return NULL;
}

static void chunk_drop(struct sim_chunk **link) {
    struct sim_chunk *self = *link;
    *link = self->next;
    self->pool->reserved -= self->phys->size;
    space_release(self->at, self->phys->size);
    phys_unref(self->phys);
    extents_clear(&self->free);
    free(self);
}

static bool trim(struct sim_pool *self, uint64_t keep) {
    uint64_t before = self->reserved;
    for (struct sim_chunk **link = &self->chunks; *link;)
        if (!(*link)->used && self->reserved - (*link)->phys->size >= keep)
            chunk_drop(link);
        else
            link = &(*link)->next;
    return self->reserved < before;
}

static void bury(struct sim_pool *self) {
    if (!self->gone || self->live || self->pending) return;
    trim(self, 0);
    struct sim_pool **link = &pools;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    free(self);
}

void pool_synchronised(void) {
    for (struct sim_pool *self = pools; self; self = self->next)
        if (self->reserved > self->threshold) trim(self, self->threshold);
}

bool pool_make_room(struct device *device) {
    bool any = false;
    for (struct sim_pool *self = pools; self; self = self->next)
        if (self->device == device) any |= trim(self, 0);
    return any;
}

/* ---- blocks */

static struct block *block_new(struct sim_chunk *chunk, uint64_t offset, size_t size, size_t asked) {
    struct sim_pool *pool = chunk->pool;
    chunk->used += size;
    return space_add((struct block){.at = chunk->at + offset,
                                    .size = size,
                                    .asked = asked,
                                    .kind = KIND_POOL,
                                    .device = pool->device,
                                    .phys = chunk->phys,
                                    .host = chunk->phys->host + offset,
                                    .readable = pool->readable,
                                    .writable = pool->writable,
                                    .pool = pool,
                                    .chunk = chunk});
}

static struct block *block_from_chunks(struct sim_pool *self, size_t size, size_t asked) {
    uint64_t offset;
    for (struct sim_chunk *chunk = self->chunks; chunk; chunk = chunk->next)
        if (extents_take(&chunk->free, size, ALIGN, &offset)) return block_new(chunk, offset, size, asked);
    return NULL;
}

static struct block *block_from_growth(struct sim_pool *self, size_t size, size_t asked) {
    size_t least = round_up(size, GRANULE);
    if (self->props.maxSize && self->reserved + least > self->props.maxSize) return NULL;
    if (!chunk_new(self, least > CHUNK || self->props.maxSize ? least : CHUNK) && !chunk_new(self, least)) return NULL;
    return block_from_chunks(self, size, asked);
}

/* Finds a block of exactly this size whose free is on `stream` and has not been executed. If `stream` is NULL, the free
 * may be on any stream. The block keeps its address, and earlier work on streams still finds memory there. */
static struct block *block_again(struct sim_pool *self, size_t size, size_t asked, struct sim_stream *stream,
                                 struct mark **behind) {
    for (struct pending *at = self->pending; at; at = at->next) {
        struct block *block = at->block;
        if (!block || block->size != size || (stream && at->stream != stream)) continue;
        at->block = NULL;
        *behind = block->freed;
        block->freed = NULL;
        block->gone = false;
        block->asked = asked;
        return block;
    }
    return NULL;
}

static struct block *block_take(struct sim_pool *self, size_t bytes, struct sim_stream *stream, struct mark **behind) {
    size_t size = round_up(bytes, ALIGN);
    struct block *block = block_again(self, size, bytes, stream, behind);
    if (block) return block;
    if (!block && self->opportunistic) block = block_from_chunks(self, size, bytes);
    if (!block && self->internal) block = block_again(self, size, bytes, NULL, behind);
    if (!block) block = block_from_growth(self, size, bytes);
    if (!block && pool_make_room(self->device)) block = block_from_growth(self, size, bytes);
    return block;
}

static CUresult allocate(CUdeviceptr *out, size_t bytes, struct sim_pool *pool, CUstream handle) {
    struct sim_stream *stream = stream_get(handle);
    struct mark *behind = NULL;
    call_details(bytes, 0);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !bytes || !pool || pool->imported) return CUDA_ERROR_INVALID_VALUE;
    if (pool->managed && !stream->capture) return managed_take(out, bytes, pool->device, (struct block){.pool = pool});
    if (pool->of_host && !stream->capture) return host_take(out, bytes);
    if (stream->capture) return graph_memory(stream->capture->graph, pool->device, bytes, out, NULL);
    struct block *block = block_take(pool, bytes, stream, &behind);
    if (!block) { /* pending frees may help */
        engine_drain_context(stream->ctx);
        block = block_take(pool, bytes, stream, &behind);
    }
    if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
    pool->live++;
    count_up(&pool->used, &pool->used_high, block->size);
    tell(pool);
    struct op op = {.kind = OP_ALLOC, .wait = behind, .memory = {.block = block, .at = block->at}};
    *out = block->at;
    call_details(bytes, block->at);
    return engine_add(stream, &op, NULL);
}

static struct sim_pool *current_pool(void) { return context_current()->device->pool; }
#define ALLOCATE CUdeviceptr *out, size_t bytes, CUstream stream
#define ALLOCATE_FROM CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream
SAME(cuMemAllocAsync, NEEDS_CONTEXT, (ALLOCATE), allocate(out, bytes, current_pool(), stream))
SAME(cuMemAllocAsync_ptsz, NEEDS_CONTEXT, (ALLOCATE), allocate(out, bytes, current_pool(), stream_per_thread(stream)))
SAME(cuMemAllocFromPoolAsync, NEEDS_CONTEXT, (ALLOCATE_FROM), allocate(out, bytes, pool_get(pool), stream))
SAME(cuMemAllocFromPoolAsync_ptsz, NEEDS_CONTEXT, (ALLOCATE_FROM),
     allocate(out, bytes, pool_get(pool), stream_per_thread(stream)))

static void gone(struct block *block) {
    struct sim_pool *pool = block->pool;
    block->gone = true;
    pool->used -= block->size;
    pool->live--;
    tell(pool);
}

static void give(struct block *block) {
    struct sim_chunk *chunk = block->chunk;
    chunk->used -= block->size;
    extents_give(&chunk->free, block->at - chunk->at, block->size);
    mark_unref(block->freed);
    space_remove(block);
}

void pool_free_now(struct block *block) {
    if (block->gone) return;
    struct sim_pool *pool = block->pool;
    gone(block);
    give(block);
    bury(pool);
}

static CUresult free_block(struct block *block, struct sim_stream *stream) {
    struct pending *pending = malloc(sizeof *pending);
    if (!pending) return CUDA_ERROR_OUT_OF_MEMORY;
    struct op op = {.kind = OP_FREE, .memory = {.pool = block->pool, .at = block->at, .pending = pending}};
    CUresult result = engine_add(stream, &op, &block->freed);
    if (result) {
        free(pending);
        return result;
    }
    *pending = (struct pending){block->pool->pending, block, stream};
    block->pool->pending = pending;
    gone(block);
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr at, CUstream handle) {
    struct sim_stream *stream = stream_get(handle);
    struct block *block = space_find(at);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!at) return CUDA_SUCCESS;
    if (stream->capture) return graph_memory_free(stream->capture->graph, at, NULL);
    if (!block && !engine_drain_stream(stream) && host_give(at)) return CUDA_SUCCESS;
    bool is_part = block && block->kind == KIND_IPC && block->pool; /* it starts inside the mapped pool */
    if (!block || (block->at != at && !is_part) || block->gone) return CUDA_ERROR_INVALID_VALUE;
    call_details(block->asked, at);
    if (block->kind == KIND_MANAGED && block->pool) {
        engine_drain_stream(stream);
        return memory_free(block);
    }
    if (block->kind == KIND_GRAPH) {
        block->gmem->refs++;
        return engine_add(stream, &(struct op){.kind = OP_GFREE, .memory = {.gmem = block->gmem}}, NULL);
    }
    if (is_part) { /* another process's: only closed here */
        engine_drain_stream(stream);
        return memory_free(block);
    }
    return block->kind == KIND_POOL ? free_block(block, stream) : CUDA_ERROR_INVALID_VALUE;
}
SAME(cuMemFreeAsync, NEEDS_CONTEXT, (CUdeviceptr at, CUstream stream), release(at, stream))
SAME(cuMemFreeAsync_ptsz, NEEDS_CONTEXT, (CUdeviceptr at, CUstream stream), release(at, stream_per_thread(stream)))

/* The engine has executed an operation of a pool. An allocation gets fresh memory. A freed block can now be used by any
 * stream, unless a stream has taken it already. */
void pool_executed(struct op *op) {
    if (op->kind == OP_ALLOC) {
        struct block *block = space_find(op->memory.at);
        if (block && block == op->memory.block) phys_fill(block->host, block->size);
        return;
    }
    if (op->kind != OP_FREE) return;
    struct pending *pending = op->memory.pending;
    struct pending **link = &op->memory.pool->pending;
    while (*link != pending) link = &(*link)->next;
    *link = pending->next;
    if (pending->block) give(pending->block);
    bury(op->memory.pool);
    free(pending);
}

/* ---- pools */

static CUresult pool_out(CUmemoryPool *out, CUdevice id, bool by_default) {
    struct device *device = device_get(id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = by_default ? device->default_pool : device->pool;
    return CUDA_SUCCESS;
}
SAME(cuDeviceGetDefaultMemPool, NEEDS_INIT, (CUmemoryPool * out, CUdevice id), pool_out(out, id, true))
SAME(cuDeviceGetMemPool, NEEDS_INIT, (CUmemoryPool * out, CUdevice id), pool_out(out, id, false))

static CUresult pool_set(CUdevice id, CUmemoryPool handle) {
    struct sim_pool *self = pool_get(handle);
    if (!device_get(id)) return CUDA_ERROR_INVALID_DEVICE;
    if (!self || self->device->id != id) return CUDA_ERROR_INVALID_VALUE;
    self->device->pool = self;
    return CUDA_SUCCESS;
}
SAME(cuDeviceSetMemPool, NEEDS_INIT, (CUdevice id, CUmemoryPool pool), pool_set(id, pool))

/* The default pool of managed memory: it prefers no place. */
static CUresult managed_pool_out(CUmemoryPool *out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!managed_pool && (managed_pool = pool_new(device_get(0)))) managed_pool->managed = true;
    *out = managed_pool;
    return managed_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The host's pool: there is only this one. */
static CUresult host_pool_out(CUmemoryPool *out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!host_pool && (host_pool = pool_new(device_get(0)))) host_pool->of_host = true;
    *out = host_pool;
    return host_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

#define OF_HOST(location) ((location) && (location)->type == CU_MEM_LOCATION_HOST)
#define OF_NONE(location) ((location) && (location)->type == CU_MEM_LOCATION_NONE)
#define OF_DEVICE(location) ((location) && (location)->type == CU_MEM_LOCATION_DEVICE)
SAME(cuMemGetDefaultMemPool, NEEDS_INIT, (CUmemoryPool * out, CUmemLocation *location, int type),
     type == CU_MEM_ALLOCATION_MANAGED && OF_NONE(location) ? managed_pool_out(out)
     : type != CU_MEM_ALLOCATION_PINNED                     ? CUDA_ERROR_NOT_SUPPORTED
     : OF_HOST(location)                                    ? host_pool_out(out)
     : OF_DEVICE(location)                                  ? pool_out(out, location->id, true)
                                                            : CUDA_ERROR_NOT_SUPPORTED)
SAME(cuMemGetMemPool, NEEDS_INIT, (CUmemoryPool * out, CUmemLocation *location, int type),
     OF_DEVICE(location) && type == CU_MEM_ALLOCATION_PINNED ? pool_out(out, location->id, false)
                                                             : CUDA_ERROR_NOT_SUPPORTED)
SAME(cuMemSetMemPool, NEEDS_INIT, (CUmemLocation * location, int type, CUmemoryPool pool),
     OF_DEVICE(location) && type == CU_MEM_ALLOCATION_PINNED ? pool_set(location->id, pool) : CUDA_ERROR_NOT_SUPPORTED)

/* A pool of managed memory need not name a place. It must have no handles for other processes, and no greatest size. */
static bool pool_is_possible(const CUmemPoolProps *props) {
    bool has_place = OF_DEVICE(&props->location) || OF_HOST(&props->location);
    if (props->allocType == CU_MEM_ALLOCATION_MANAGED)
        return (has_place || OF_NONE(&props->location)) && !props->handleTypes && !props->maxSize;
    return props->allocType == CU_MEM_ALLOCATION_PINNED && has_place && !(props->handleTypes & ~CU_MEM_HANDLE_POSIX_FD);
}

API(cuMemPoolCreate, NEEDS_INIT, (CUmemoryPool * out, const CUmemPoolProps *props), (out, props)) {
    if (!out || !props || !pool_is_possible(props)) return CUDA_ERROR_INVALID_VALUE;
    struct device *device = device_get(OF_DEVICE(&props->location) ? props->location.id : 0);
    struct sim_pool *self = device ? pool_new(device) : NULL;
    if (!self) return device ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_DEVICE;
    self->props = *props;
    self->managed = props->allocType == CU_MEM_ALLOCATION_MANAGED;
    self->of_host = OF_HOST(&props->location) && !self->managed;
    *out = self;
    call_details(0, (uint64_t)(uintptr_t)self);
    tell(self);
    return CUDA_SUCCESS;
}

/* Memory that was allocated from a destroyed pool stays until it is freed. */
API(cuMemPoolDestroy, NEEDS_INIT, (CUmemoryPool handle), (handle)) {
    struct sim_pool *self = pool_get(handle);
    if (!self || self == self->device->default_pool) return CUDA_ERROR_INVALID_VALUE;
    if (self->device->pool == self) self->device->pool = self->device->default_pool;
    self->gone = true;
    call_details(0, (uint64_t)(uintptr_t)self);
    tell(self);
    bury(self);
    return CUDA_SUCCESS;
}

API(cuMemPoolTrimTo, NEEDS_INIT, (CUmemoryPool handle, size_t keep), (handle, keep)) {
    struct sim_pool *self = pool_get(handle);
    if (!self) return CUDA_ERROR_INVALID_VALUE;
    trim(self, keep);
    call_details(keep, (uint64_t)(uintptr_t)self);
    tell(self);
    return CUDA_SUCCESS;
}

API(cuMemPoolSetAttribute, NEEDS_INIT, (CUmemoryPool handle, int which, void *value), (handle, which, value)) {
    struct sim_pool *self = pool_get(handle);
    if (!self || !value) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_POOL_FOLLOW_EVENTS:
        self->follow = *(unsigned *)value;
        break;
    case CU_POOL_OPPORTUNISTIC:
        self->opportunistic = *(unsigned *)value;
        break;
    case CU_POOL_INTERNAL_DEPENDENCIES:
        self->internal = *(unsigned *)value;
        break;
    case CU_POOL_RELEASE_THRESHOLD:
        self->threshold = *(uint64_t *)value;
        break;
    case CU_POOL_RESERVED_HIGH:
        if (*(uint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
        self->reserved_high = self->reserved;
        break;
    case CU_POOL_USED_HIGH:
        if (*(uint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
        self->used_high = self->used;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

API(cuMemPoolGetAttribute, NEEDS_INIT, (CUmemoryPool handle, int which, void *value), (handle, which, value)) {
    struct sim_pool *self = pool_get(handle);
    if (!self || !value) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_POOL_FOLLOW_EVENTS:
        *(unsigned *)value = (unsigned)self->follow;
        break;
    case CU_POOL_OPPORTUNISTIC:
        *(unsigned *)value = (unsigned)self->opportunistic;
        break;
    case CU_POOL_INTERNAL_DEPENDENCIES:
        *(unsigned *)value = (unsigned)self->internal;
        break;
    case CU_POOL_RELEASE_THRESHOLD:
        *(uint64_t *)value = self->threshold;
        break;
    case CU_POOL_RESERVED:
        *(uint64_t *)value = self->reserved;
        break;
    case CU_POOL_RESERVED_HIGH:
        *(uint64_t *)value = self->reserved_high;
        break;
    case CU_POOL_USED:
        *(uint64_t *)value = self->used;
        break;
    case CU_POOL_USED_HIGH:
        *(uint64_t *)value = self->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Access rights belong to the pool: when they change, they change for all its memory. */
static void share(struct sim_pool *self) {
    struct block *block;
    for (CUdeviceptr at = 0; (block = space_next(at)); at = block->at + block->size)
        if (block->kind == KIND_POOL && block->pool == self) {
            block->readable = self->readable;
            block->writable = self->writable;
        }
}

API(cuMemPoolSetAccess, NEEDS_INIT, (CUmemoryPool handle, const CUmemAccessDesc *map, size_t count),
    (handle, map, count)) {
    struct sim_pool *self = pool_get(handle);
    if (!self || (count && !map)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        int id = map[i].location.id;
        uint64_t mask = (uint64_t)1 << id;
        if (!device_get(id)) return CUDA_ERROR_INVALID_DEVICE;
        if (id == self->device->id ? !map[i].flags : !device_peers(id, self->device->id))
            return CUDA_ERROR_INVALID_VALUE;
        self->readable = map[i].flags & CU_MEM_ACCESS_READ ? self->readable | mask : self->readable & ~mask;
        self->writable = map[i].flags == CU_MEM_ACCESS_READWRITE ? self->writable | mask : self->writable & ~mask;
    }
    share(self);
    return CUDA_SUCCESS;
}

API(cuMemPoolGetAccess, NEEDS_INIT, (int *flags, CUmemoryPool handle, CUmemLocation *location),
    (flags, handle, location)) {
    struct sim_pool *self = pool_get(handle);
    if (!self || !flags || !location || !device_get(location->id)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t mask = (uint64_t)1 << location->id;
    *flags = self->writable & mask ? CU_MEM_ACCESS_READWRITE : self->readable & mask ? CU_MEM_ACCESS_READ : 0;
    return CUDA_SUCCESS;
}

/* ---- pools of other processes. If the program made a pool for sharing, the pool and memory from it can be shared. An
 * imported pool cannot allocate. */

API(cuMemPoolExportToShareableHandle, NEEDS_INIT, (void *out, CUmemoryPool handle, int type, uint64_t flags),
    (out, handle, type, flags)) {
    struct sim_pool *self = pool_get(handle);
    if (!self || !out || flags || type != CU_MEM_HANDLE_POSIX_FD || !(self->props.handleTypes & type))
        return CUDA_ERROR_INVALID_VALUE;
    int fd = memfd_create("simcuda-pool", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &self->device->id, sizeof(int)) != sizeof(int)) return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

API(cuMemPoolImportFromShareableHandle, NEEDS_INIT, (CUmemoryPool * out, void *os_handle, int type, uint64_t flags),
    (out, os_handle, type, flags)) {
    int id;
    if (!out || flags || type != CU_MEM_HANDLE_POSIX_FD ||
        pread((int)(intptr_t)os_handle, &id, sizeof id, 0) != sizeof id || !device_get(id))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_pool *self = pool_new(device_get(id));
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    self->imported = true;
    *out = self;
    return CUDA_SUCCESS;
}

API(cuMemPoolExportPointer, NEEDS_INIT, (CUmemPoolPtrExportData * out, CUdeviceptr at), (out, at)) {
    struct block *block = space_find(at);
    if (!out || !block || block->at != at || block->kind != KIND_POOL || block->gone ||
        !(block->pool->props.handleTypes & CU_MEM_HANDLE_POSIX_FD))
        return CUDA_ERROR_INVALID_VALUE;
    return ipc_export(out, block);
}

API(cuMemPoolImportPointer, NEEDS_INIT, (CUdeviceptr * out, CUmemoryPool handle, CUmemPoolPtrExportData *data),
    (out, handle, data)) {
    struct sim_pool *self = pool_get(handle);
    if (!out || !data || !self || !self->imported) return CUDA_ERROR_INVALID_VALUE;
    return ipc_import(data, true, (struct block){.pool = self}, out);
}
