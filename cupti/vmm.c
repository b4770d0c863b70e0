/* vmm.c — see vmm.h. Physical memory exists while it has users. Its users are mappings and handles. The driver may
 * return the same handle several times, and the program then releases it as many times.
 * When the program gives a handle or an address back, the driver may use it for other memory even before the call
 * returns to us. To notice this, memstow gives each piece of physical memory and each reserved range a new number. When
 * such a call begins, the number of the handle's physical memory or of the reserved range is looked up. When the call
 * ends, the record of the handle or range is removed only if it still has this number. */
#include "cupti/vmm.h"

#include <pthread.h>

#include "preload/cuda/cuda_counts.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/count/site.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_number; /* the number that physical memory or a reserved range got most recently */
static bool counts;

void vmm_count(bool does) { counts = does; }

static bool has_bytes(const struct snap_cuda_block *block) {
    return block->kind != SNAP_CUDA_HANDLE && block->kind != SNAP_CUDA_MAPPING;
}

/* --- blocks that go --- */

static void vmm_let_go(uint64_t number);

static void vmm_end(const struct snap_cuda_block *block) {
    if (counts && has_bytes(block)) cuda_counts_remove(block->count, block->size, 1);
    if (!has_bytes(block)) vmm_let_go(block->pool);
}

static void take_block(enum cuda_space space, uint64_t number) {
    struct snap_cuda_block gone;
    if (cuda_blocks_take(space, number, &gone)) vmm_end(&gone);
}

/* Adds `by` to the users of the block with this number. Returns the new number of users; UINT32_MAX: there is no such
 * block. */
static uint32_t change_users(enum cuda_space space, uint64_t number, uint32_t by) {
    struct cuda_hold hold;
    struct snap_cuda_block *record = cuda_blocks_hold(space, number, &hold);
    if (!record) return UINT32_MAX;
    uint32_t left = __atomic_add_fetch(&record->users, by, __ATOMIC_RELAXED);
    cuda_blocks_let_go(&hold);
    return left;
}

static void vmm_let_go(uint64_t number) {
    if (change_users(CUDA_PHYSICAL, number, (uint32_t)-1) == 0) take_block(CUDA_PHYSICAL, number);
}

/* --- blocks that come --- */

static void vmm_add_block(enum cuda_space space, struct snap_cuda_block block, const struct caller *caller) {
    take_block(space, block.address); /* removes the earlier block at this address, if its end was not seen */
    block.birth_ns = os_now();
    block.thread = SNAP_THREAD_SHARED;
    if (counts && has_bytes(&block))
        block.count =
            cuda_counts_add(site_of_call(*caller), 0, (enum snap_cuda_kind)block.kind, block.device, block.size);
    if (!cuda_blocks_add(space, &block)) vmm_end(&block);
}

static void add_handle(uint64_t memory, uint64_t number, uint16_t device) {
    vmm_add_block(CUDA_HANDLE,
                  (struct snap_cuda_block){
                      .kind = SNAP_CUDA_HANDLE, .address = memory, .pool = number, .device = device, .users = 1},
                  NULL);
}

static void add_physical(uint8_t kind, uint16_t device, uint64_t memory, uint64_t bytes, const struct cupti_call *call,
                         const struct caller *caller) {
    struct snap_cuda_block block = {.kind = kind,
                                    .device = device,
                                    .address = ++last_number,
                                    .size = bytes,
                                    .context = call->context_number,
                                    .stream = memory,
                                    .users = 1};
    vmm_add_block(CUDA_PHYSICAL, block, caller);
    add_handle(memory, block.address, device);
}

static void vmm_created(const struct cupti_cuMemCreate *it, const struct cupti_call *call,
                        const struct caller *caller) {
    int type = it->of->location.type;
    bool host = type >= CUDA_LOCATION_HOST && type <= CUDA_LOCATION_HOST_NUMA_CURRENT;
    uint16_t device = type == CUDA_LOCATION_DEVICE ? (uint16_t)it->of->location.id : 0;
    add_physical(host ? SNAP_CUDA_PINNED : SNAP_CUDA_PHYSICAL, device, *it->memory, it->bytes, call, caller);
}

static void vmm_reserved(const struct cupti_cuMemAddressReserve *it, const struct caller *caller) {
    vmm_add_block(CUDA_RANGE,
                  (struct snap_cuda_block){
                      .kind = SNAP_CUDA_RESERVED, .address = *it->address, .size = it->bytes, .pool = ++last_number},
                  caller);
}

static void vmm_mapped(const struct cupti_cuMemMap *it) {
    struct snap_cuda_block handle;
    if (!cuda_blocks_find(CUDA_HANDLE, it->memory, &handle)) return;
    change_users(CUDA_PHYSICAL, handle.pool, 1);
    vmm_add_block(CUDA_MAPPING,
                  (struct snap_cuda_block){.kind = SNAP_CUDA_MAPPING,
                                           .device = handle.device,
                                           .address = it->address,
                                           .size = it->bytes,
                                           .pool = handle.pool},
                  NULL);
}

static void vmm_unmapped(const struct cupti_cuMemUnmap *it) {
    struct snap_cuda_block mapping;
    for (uint64_t at = it->address, last = at + it->bytes;
         at < last && cuda_blocks_take(CUDA_MAPPING, at, &mapping) && mapping.size; at += mapping.size)
        vmm_end(&mapping);
}

/* A search for the mapping that contains `address`. */
struct search {
    uint64_t address;
    struct snap_cuda_block found;
};

static void look_at_block(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    struct search *search = context;
    if (space == CUDA_MAPPING && search->address - block->address < block->size) search->found = *block;
}

static void vmm_retained(const struct cupti_cuMemRetainAllocationHandle *it) {
    struct search search = {.address = it->address};
    if (change_users(CUDA_HANDLE, *it->memory, 1) != UINT32_MAX) return;
    cuda_blocks_all(look_at_block, &search);
    if (!search.found.size) return;
    change_users(CUDA_PHYSICAL, search.found.pool, 1);
    add_handle(*it->memory, search.found.pool, search.found.device);
}

static void vmm_released(uint64_t memory, uint64_t number) {
    struct snap_cuda_block handle;
    if (!cuda_blocks_find(CUDA_HANDLE, memory, &handle) || handle.pool != number) return;
    if (change_users(CUDA_HANDLE, memory, (uint32_t)-1) == 0) take_block(CUDA_HANDLE, memory);
}

static void vmm_freed(uint64_t address, uint64_t number) {
    struct snap_cuda_block range;
    if (cuda_blocks_find(CUDA_RANGE, address, &range) && range.pool == number) take_block(CUDA_RANGE, address);
}

/* --- calls that CUPTI reports --- */

/* The number of the physical memory or reserved range that the call gives up; 0: it is unknown, or the call gives up
 * neither. */
static uint64_t vmm_subject(uint32_t id, const struct cupti_call *call) {
    struct snap_cuda_block found = {0};
    if (id == CUPTI_cuMemRelease)
        cuda_blocks_find(CUDA_HANDLE, ((const struct cupti_cuMemRelease *)call->parameters)->memory, &found);
    if (id == CUPTI_cuMemAddressFree)
        cuda_blocks_find(CUDA_RANGE, ((const struct cupti_cuMemAddressFree *)call->parameters)->address, &found);
    return found.pool;
}

static void vmm_succeeded(uint32_t id, const struct cupti_call *call, const struct caller *caller) {
    const void *it = call->parameters;
    switch (id) {
    case CUPTI_cuMemAddressReserve:
        vmm_reserved(it, caller);
        break;
    case CUPTI_cuMemAddressFree:
        vmm_freed(((const struct cupti_cuMemAddressFree *)it)->address, *call->shared);
        break;
    case CUPTI_cuMemCreate:
        vmm_created(it, call, caller);
        break;
    case CUPTI_cuMemRelease:
        vmm_released(((const struct cupti_cuMemRelease *)it)->memory, *call->shared);
        break;
    case CUPTI_cuMemMap:
        vmm_mapped(it);
        break;
    case CUPTI_cuMemUnmap:
        vmm_unmapped(it);
        break;
    case CUPTI_cuMemImportFromShareableHandle:
        add_physical(SNAP_CUDA_IMPORTED, 0, *((const struct cupti_cuMemImportFromShareableHandle *)it)->memory, 0, call,
                     caller);
        break;
    case CUPTI_cuMemRetainAllocationHandle:
        vmm_retained(it);
        break;
    }
}

void vmm_call(uint32_t id, const struct cupti_call *call, struct caller caller) {
    if (call->site == CUPTI_EXIT && *(const int *)call->result != CUDA_OK) return;
    pthread_mutex_lock(&lock);
    if (call->site == CUPTI_ENTER)
        *call->shared = vmm_subject(id, call);
    else
        vmm_succeeded(id, call, &caller);
    pthread_mutex_unlock(&lock);
}
