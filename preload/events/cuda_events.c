/* cuda_events.c — see cuda_events.h. A freed block leaves the table before the driver is called: after the call,
 * another thread may get a block with the same number. */
#include "preload/events/cuda_events.h"

#include <string.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/events/cuda_fault.h"
#include "preload/events/cuda_oom.h"
#include "preload/serve/cuda_parts.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/count/site.h"
#include "preload/stow/stow.h"
#include "preload/count/tags.h"
#include "preload/count/thread.h"
#include "preload/base/forked.h"
#include "preload/events/cuda_teardown.h"

static uint64_t last_physical; /* the newest number of physical memory (CUDA_PHYSICAL) */

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

/* Whether the block's bytes are counted. Handles, mappings and pools have no bytes of their own. */
static bool is_counted(const struct snap_cuda_block *block) {
    return block->kind != SNAP_CUDA_HANDLE && block->kind != SNAP_CUDA_MAPPING && block->kind != SNAP_CUDA_POOL;
}

static void cuda_events_count_out(const struct snap_cuda_block *block) {
    uint64_t parts = block->flags & SNAP_CUDA_PARTS ? cuda_parts_end(block) : 0;
    if (is_counted(block)) cuda_counts_remove(block->count, block->size - parts, 1);
}

/* Whether the block is pinned or registered host memory. A device has the pages of such a block, so the block must not
 * move. */
static bool is_held(enum cuda_space space, const struct snap_cuda_block *block) {
    return space == CUDA_ADDRESS && (block->kind == SNAP_CUDA_REGISTERED || block->kind == SNAP_CUDA_PINNED);
}

void cuda_events_forget(enum cuda_space space, const struct snap_cuda_block *block) {
    cuda_events_count_out(block);
    if (is_held(space, block)) stow_unlock_range(block->address, block->size);
}

/* Removes an old block that has the same number. memstow has not seen the block's free: its context ended in an unknown
 * way, an unknown entry freed the block, or another thread's teardown is ending it now. */
static void drop_earlier(enum cuda_space space, uint64_t number) {
    struct snap_cuda_block earlier;
    if (likely(!cuda_blocks_take(space, number, &earlier))) return;
    if (!cuda_teardown_any()) add_one(&cuda_counts_head()->missed_frees);
    cuda_events_forget(space, &earlier);
}

static void cuda_events_add_block(const struct cuda_call *call, enum cuda_space space, struct snap_cuda_block *block) {
    drop_earlier(space, block->address);
    if (is_counted(block))
        block->count = cuda_counts_add(site_of_call(call->caller), tags_used ? tags_present()->tag : 0, block->kind,
                                       block->device, block->size);
    block->birth_ns = os_now();
    block->thread = thread_slot();
    block->ends = cuda_teardown_count();
    if (!cuda_blocks_add(space, block) && is_counted(block))
        /* The block is not in the table, so its free will not be seen. */
        cuda_counts_remove(block->count, block->size, 1);
}

/* --- blocks that come --- */

static struct snap_cuda_block block_here(enum snap_cuda_kind kind, uint64_t number, uint64_t bytes) {
    struct cuda_target target = cuda_device_now();
    return (struct snap_cuda_block){.kind = (uint8_t)kind,
                                    .device = (uint16_t)target.device,
                                    .address = number,
                                    .size = bytes,
                                    .context = (uintptr_t)target.context};
}

/* Asks the driver for the figures (cuda_device_sample) of the device of the thread's context, even if the block is on
 * another device. */
static void cuda_events_sample(const struct snap_cuda_block *block, uint32_t device_of_context) {
    cuda_device_sample(&(struct cuda_target){(cuda_handle)block->context, device_of_context}, false);
}

void cuda_events_register(struct cuda_call *call, uint64_t at, uint64_t bytes) {
    call->impossible = stow_lock_range(at, bytes) != 0;
    call->number = at;
    call->locked = call->impossible ? 0 : bytes;
}

void cuda_events_made(const struct cuda_call *call, enum snap_cuda_kind kind, uint64_t number, uint64_t bytes) {
    struct snap_cuda_block block = block_here(kind, number, bytes);
    if (!number) return;
    if (kind == SNAP_CUDA_PINNED) stow_lock_range(number, bytes);
    cuda_events_add_block(call, space_of(kind), &block);
    cuda_events_sample(&block, block.device);
}

static bool is_host(const struct cuda_properties *properties) {
    int type = properties->location.type;
    return type >= CUDA_LOCATION_HOST && type <= CUDA_LOCATION_HOST_NUMA_CURRENT;
}

void cuda_events_made_pool(const struct cuda_call *call, cuda_handle pool, const struct cuda_properties *properties) {
    struct snap_cuda_block block = block_here(SNAP_CUDA_POOL, (uintptr_t)pool, 0);
    if (properties->location.type == CUDA_LOCATION_DEVICE) block.device = (uint16_t)properties->location.id;
    if (is_host(properties)) block.flags = SNAP_CUDA_OF_HOST;
    if (properties->type == CUDA_TYPE_MANAGED) block.flags = SNAP_CUDA_OF_MANAGED;
    cuda_events_add_block(call, CUDA_POOL, &block);
}

/* Sets the kind and device of a block from its pool. If memstow has not seen the program make the pool, the driver is
 * asked about the block. */
static void look_at_pool(cuda_handle pool, struct snap_cuda_block *block) {
    struct snap_cuda_block known;
    struct cuda_pointer is = {.type = CUDA_POINTER_OF_DEVICE, .device = block->device};
    if (cuda_blocks_find(CUDA_POOL, (uintptr_t)pool, &known)) {
        is.device = known.device;
        is.managed = (known.flags & SNAP_CUDA_OF_MANAGED) != 0;
        if (known.flags & SNAP_CUDA_OF_HOST) is.type = CUDA_POINTER_OF_HOST;
    } else if (block->kind == SNAP_CUDA_POOL_MEMORY) {
        cuda_device_ask_pointer(block->address, &is);
    }
    block->device = (uint16_t)is.device;
    if (block->kind != SNAP_CUDA_POOL_MEMORY) return; /* the kind stays: memory of a graph */
    if (is.type == CUDA_POINTER_OF_HOST) block->kind = SNAP_CUDA_PINNED;
    if (is.managed) block->kind = SNAP_CUDA_MANAGED;
}

void cuda_events_made_in_pool(const struct cuda_call *call, uint64_t at, uint64_t bytes, cuda_handle stream,
                              cuda_handle pool) {
    cuda_handle meant = cuda_device_stream(stream, call->per_thread);
    bool captured = cuda_device_captures(meant, false);
    struct snap_cuda_block block = block_here(captured ? SNAP_CUDA_GRAPH : SNAP_CUDA_POOL_MEMORY, at, bytes);
    uint32_t here = block.device, device = cuda_device_of_stream(stream, here);
    if (!at) return;
    block.device = (uint16_t)device;
    if (pool) look_at_pool(pool, &block);
    if (block.kind == SNAP_CUDA_PINNED) stow_lock_range(at, bytes);
    block.stream = (uintptr_t)meant;
    block.pool = captured ? 0 : (uintptr_t)pool;
    block.users = captured ? cuda_device_capture(meant) : 0;
    cuda_events_add_block(call, CUDA_ADDRESS, &block);
    if (!captured) cuda_events_sample(&block, here);
}

void cuda_events_made_in_graph(const struct cuda_call *call, const struct cuda_alloc_node *alloc, cuda_handle graph) {
    struct snap_cuda_block block = block_here(SNAP_CUDA_GRAPH, alloc->start, alloc->bytes);
    const struct cuda_properties *of = &alloc->pool.properties;
    if (of->location.type == CUDA_LOCATION_DEVICE) block.device = (uint16_t)of->location.id;
    block.pool = (uintptr_t)graph;
    if (alloc->start) cuda_events_add_block(call, CUDA_ADDRESS, &block);
}

/* --- physical memory: its handles and mappings --- */

static void add_handle(const struct cuda_call *call, cuda_memory memory, uint64_t physical) {
    struct snap_cuda_block of, handle = {.kind = SNAP_CUDA_HANDLE, .address = memory, .pool = physical, .users = 1};
    if (cuda_blocks_find(CUDA_PHYSICAL, physical, &of)) handle.device = of.device;
    cuda_events_add_block(call, CUDA_HANDLE, &handle);
}

static void add_physical(const struct cuda_call *call, cuda_memory memory, struct snap_cuda_block block) {
    block.address = __atomic_add_fetch(&last_physical, 1, __ATOMIC_RELAXED);
    block.stream = memory;
    block.users = 1;
    cuda_events_add_block(call, CUDA_PHYSICAL, &block);
    add_handle(call, memory, block.address);
}

void cuda_events_made_physical(const struct cuda_call *call, cuda_memory memory, uint64_t bytes,
                               const struct cuda_properties *properties) {
    struct snap_cuda_block block = block_here(is_host(properties) ? SNAP_CUDA_PINNED : SNAP_CUDA_PHYSICAL, 0, bytes);
    uint32_t here = block.device;
    if (properties->location.type == CUDA_LOCATION_DEVICE) block.device = (uint16_t)properties->location.id;
    add_physical(call, memory, block);
    cuda_events_sample(&block, here);
}

/* A handle, or memory of another process that was opened, is gone when it has no users. This lock is held while a call
 * of the program adds or removes such a user; only put_back adds one without the lock. The users of physical memory
 * change without this lock, too. */
static struct lock using;

static bool begin_using(void) {
    bool begun = lock_wait(&using);
    if (!begun) ledger_lost(SNAP_LOST_CUDA);
    return begun;
}

static bool change_users(enum cuda_space space, uint64_t number, int change, struct snap_cuda_block *out) {
    struct cuda_hold hold;
    struct snap_cuda_block *record = cuda_blocks_hold(space, number, &hold);
    if (!record) return false;
    __atomic_fetch_add(&record->users, (uint32_t)change, __ATOMIC_RELAXED);
    *out = *record;
    cuda_blocks_let_go(&hold);
    return true;
}

void cuda_events_opened(const struct cuda_call *call, uint64_t at) {
    struct snap_cuda_block there, block = block_here(SNAP_CUDA_IMPORTED, at, 0);
    block.users = 1;
    if (!at) return;
    if (!begin_using()) return;
    bool again = cuda_blocks_find(CUDA_ADDRESS, at, &there) && there.kind == SNAP_CUDA_IMPORTED;
    if (!again || !change_users(CUDA_ADDRESS, at, 1, &there)) cuda_events_add_block(call, CUDA_ADDRESS, &block);
    lock_let_go(&using);
}

void cuda_events_made_of_another(const struct cuda_call *call, cuda_memory memory) {
    add_physical(call, memory, block_here(SNAP_CUDA_IMPORTED, 0, 0));
}

static void use_physical(uint64_t physical) {
    struct snap_cuda_block record;
    change_users(CUDA_PHYSICAL, physical, 1, &record);
}

static bool has_no_users(const struct snap_cuda_block *block, const void *context) {
    (void)context;
    return block->users == 0;
}

static void let_go_of_physical(uint64_t physical) {
    struct snap_cuda_block last;
    if (!change_users(CUDA_PHYSICAL, physical, -1, &last) || last.users) return;
    if (cuda_blocks_take_if(CUDA_PHYSICAL, physical, has_no_users, NULL, &last)) cuda_events_count_out(&last);
}

/* A search for the mapping that contains `address`. */
struct search {
    uint64_t address;
    struct snap_cuda_block found;
};

static void look_at_mapping(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
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

static void cuda_events_retain(const struct cuda_call *call, cuda_memory memory, cuda_address at) {
    struct snap_cuda_block handle, mapping;
    if (change_users(CUDA_HANDLE, memory, 1, &handle) || !find_mapping(at, &mapping)) return;
    use_physical(mapping.pool);
    add_handle(call, memory, mapping.pool);
}

void cuda_events_retained(const struct cuda_call *call, cuda_memory memory, cuda_address at) {
    if (!begin_using()) return;
    cuda_events_retain(call, memory, at);
    lock_let_go(&using);
}

void cuda_events_released(struct cuda_call *call) {
    if (!call->found)
        cuda_events_gone(call); /* counts the release of an unknown handle */
    else if (!call->in_use)
        let_go_of_physical(call->taken.pool);
}

void cuda_events_mapped(const struct cuda_call *call, cuda_address at, uint64_t bytes, cuda_memory memory) {
    struct snap_cuda_block handle, block = block_here(SNAP_CUDA_MAPPING, at, bytes);
    if (!cuda_blocks_find(CUDA_HANDLE, memory, &handle)) return;
    block.pool = handle.pool;
    use_physical(handle.pool);
    cuda_events_add_block(call, CUDA_MAPPING, &block);
}

/* Unmaps whole mappings, one after the other. */
void cuda_events_unmapped(cuda_address at, uint64_t bytes) {
    struct snap_cuda_block mapping;
    for (cuda_address end = at + bytes; at < end && cuda_blocks_take(CUDA_MAPPING, at, &mapping); at += mapping.size)
        let_go_of_physical(mapping.pool);
}

/* --- blocks that are freed, or stay because the call failed --- */

void cuda_events_take(struct cuda_call *call, enum cuda_space space, uint64_t number) {
    call->removes = number != 0;
    call->space = space;
    call->number = number;
    call->found = number && cuda_blocks_take(space, number, &call->taken);
}

static void take_one(struct cuda_call *call) {
    call->found = change_users(call->space, call->number, -1, &call->taken);
    call->in_use = call->found && (int32_t)call->taken.users > 0;
    if (call->found && !call->in_use) call->found = cuda_blocks_take(call->space, call->number, &call->taken);
}

void cuda_events_take_one(struct cuda_call *call, enum cuda_space space, uint64_t number) {
    call->removes = number != 0;
    call->space = space;
    call->number = number;
    if (!number) return;
    if (!begin_using()) return;
    take_one(call);
    lock_let_go(&using);
}

void cuda_events_gone(struct cuda_call *call) {
    if (call->found && !call->in_use) {
        cuda_fault_freed(call, &call->taken);
        cuda_events_forget(call->space, &call->taken);
    } else if (call->removes && !call->found) {
        add_one(&cuda_counts_head()->foreign_frees);
    }
}

static void put_back(struct cuda_call *call) {
    struct snap_cuda_block now;
    if (call->in_use && change_users(call->space, call->number, 1, &now)) return;
    if (call->in_use || call->space == CUDA_HANDLE) call->taken.users = 1; /* take_one removed the last user */
    /* if the block does not fit into the table, its free will not be seen, so it is counted out now */
    if (!cuda_blocks_add(call->space, &call->taken)) cuda_events_count_out(&call->taken);
}

void cuda_events_stays(struct cuda_call *call) {
    if (call->found) put_back(call);
    if (call->locked) stow_unlock_range(call->number, call->locked);
    if (call->removes && !call->found) add_one(&cuda_counts_head()->foreign_frees);
}

void cuda_events_gone_in(struct cuda_call *call, cuda_handle stream) {
    if (call->found && cuda_device_captures(cuda_device_stream(stream, call->per_thread), false))
        cuda_events_stays(call);
    else
        cuda_events_gone(call);
}

/* --- flags of blocks (enum snap_cuda_flag) --- */

static bool cuda_events_mark_block(enum cuda_space space, uint64_t number, enum snap_cuda_flag flag) {
    struct cuda_hold hold;
    struct snap_cuda_block *record = cuda_blocks_hold(space, number, &hold);
    if (!record) return false;
    __atomic_fetch_or(&record->flags, (uint8_t)flag, __ATOMIC_RELAXED);
    cuda_blocks_let_go(&hold);
    return true;
}

/* If the address lies in a mapping, the flag is for the physical memory that is mapped there, because this is the
 * memory that the program exports or binds. Mappings that begin at the address are looked up before blocks. In the
 * other order, an old block at this address, which is just being removed from the table, could get the flag. */
void cuda_events_mark(enum cuda_space space, uint64_t number, enum snap_cuda_flag flag) {
    struct snap_cuda_block mapping;
    bool is_address = space == CUDA_ADDRESS, mapped = is_address && cuda_blocks_find(CUDA_MAPPING, number, &mapping);
    if (!mapped && (cuda_events_mark_block(space, number, flag) || !is_address)) return;
    if (mapped || find_mapping(number, &mapping)) cuda_events_mark_block(CUDA_PHYSICAL, mapping.pool, flag);
}

void cuda_events_mark_memory(cuda_memory memory, enum snap_cuda_flag flag) {
    struct snap_cuda_block handle;
    if (cuda_blocks_find(CUDA_HANDLE, memory, &handle)) cuda_events_mark_block(CUDA_PHYSICAL, handle.pool, flag);
}

/* --- requests that the driver refused --- */

void cuda_events_refused(const struct cuda_call *call) {
    struct cuda_target target = cuda_device_now();
    cuda_oom_refused(&target, call->asked_kind, call->asked);
}

/* --- entries that memstow does not know --- */

static struct lock naming; /* held while a name is noted */

/* Notes a name, if it is not there yet and there is room for it. */
static void note_unknown(struct snap_cuda *head, const char *name) {
    char known[sizeof head->unknown];
    os_copy(known, sizeof known, name); /* a long name is cut */
    for (uint32_t i = 0; i < SNAP_CUDA_UNKNOWN; i++) {
        char *at = i ? head->unknown_more[i - 1] : head->unknown;
        if (!strcmp(at, known)) return;
        if (*at) continue;
        os_copy(at, sizeof known, known);
        return;
    }
}

void cuda_events_unknown(const char *name) {
    struct snap_cuda *head = cuda_counts_head();
    add_one(&head->unknown_entries);
    if (lock_wait(&naming)) {
        note_unknown(head, name);
        lock_let_go(&naming);
    }
    ledger_lost(SNAP_LOST_CUDA);
}

static void cuda_events_abandon(void) { using = naming = (struct lock){0}; }
FORKED(cuda_events_abandon);
