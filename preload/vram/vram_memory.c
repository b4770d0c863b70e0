/* vram_memory.c — see vram_memory.h. */
#include "preload/vram/vram_memory.h"

#include "preload/cuda/cuda_captures.h"
#include "preload/shared/os.h"
#include "preload/vram/vram_contexts.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_reach.h"
#include "preload/vram/vram_spare.h"
#include "preload/vram/vram_sums.h"
#include "preload/vram/vram_table.h"

enum { WAIT_FREED_MS = 5000 };

static uint64_t reaches; /* the number of the latest search of vram_memory_reach */

static void is_for(struct vram_block *self, const struct vram_request *request) {
    self->owner = request->owner;
    self->context = request->context;
    self->id = vram_table_id();
    self->number = vram_table_number();
}

static struct vram_block *block_for(const struct vram_request *request) {
    vram_table_lock();
    struct vram_block *self = vram_table_new();
    vram_table_let_go();
    if (!self) return NULL;
    vram_block_plan(self, request->bytes);
    is_for(self, request);
    self->device = request->device;
    self->in_stream = request->in_stream;
    self->devices = vram_reach_of(request->device, request->in_stream);
    self->moving = true;
    return self;
}

static int fill_new(struct vram_block *self) {
    struct vram_visit visit;
    int error = vram_driver_enter(&vram_driver, NULL, &visit);
    if (error) return error;
    if (!self->at) error = vram_block_reserve(&vram_driver, self);
    if (!error) error = vram_block_fill(&vram_driver, self);
    vram_driver_leave(&vram_driver, &visit);
    return error;
}

/* Gives a freed block to the request. */
static void vram_memory_renew(struct vram_block *self, const struct vram_request *request) {
    vram_table_lock();
    is_for(self, request);
    self->asked = request->bytes;
    self->mixed = self->no_context = false;
    self->left_ns = self->trigger = 0;
    vram_table_set_state(self, VRAM_LIVE);
    vram_table_let_go();
}

/* Takes a freed block for the request. NULL: there is none, or the request's stream cannot wait for the work that may
 * still use the block. */
static struct vram_block *freed_for(const struct vram_request *request) {
    struct vram_block *self = vram_spare_for(request);
    if (self && !vram_end_order(&vram_driver, self, request->stream)) {
        vram_end_give_back(self, self->state);
        return NULL;
    }
    if (self) vram_memory_renew(self, request);
    return self;
}

/* Makes a new block for the request, and adds it to the table. *error: 0, or the driver's error; after an error the
 * caller ends the block. NULL: there is no memory for the table's entry. */
static struct vram_block *new_for(const struct vram_request *request, int *error) {
    struct vram_block *self = block_for(request);
    if (!self) return NULL;
    do *error = fill_new(self);
    while (*error == CUDA_OUT_OF_MEMORY && vram_end_spares(&vram_driver, 0));
    vram_table_lock();
    vram_table_add(self);
    vram_table_let_go();
    return self;
}

/* Brings the access to a block up to date: devices that may use it now get access, others lose it. The caller has taken
 * the block. Returns 0 or the driver's error. */
static int vram_memory_reach_block(struct vram_block *block) {
    struct vram_visit visit;
    uint64_t devices = vram_reach_of(block->device, block->in_stream);
    if (likely(devices == block->devices)) return 0;
    int error = vram_driver_enter(&vram_driver, NULL, &visit);
    if (error) return error;
    error = vram_block_open(&vram_driver, block, devices);
    vram_driver_leave(&vram_driver, &visit);
    return error;
}

/* Takes a block whose access must change, and that this search has not tried yet. The caller holds the table's lock. */
static struct vram_block *next_to_reach(uint64_t search) {
    struct vram_block *block = vram_table_first();
    while (block) {
        bool is = block->state <= VRAM_STOWED && block->reached != search &&
                  block->devices != vram_reach_of(block->device, block->in_stream);
        if (is && !block->moving) break;
        if (is) vram_table_wait();
        block = is ? vram_table_first() : block->next;
    }
    if (block) block->reached = search, block->moving = true;
    return block;
}

int vram_memory_reach(void) {
    int first = 0;
    if (!vram_driver_is_on() || !vram_table_count() || vram_table_is_mine()) return 0;
    uint64_t search = __atomic_add_fetch(&reaches, 1, __ATOMIC_RELAXED);
    for (;;) {
        vram_table_lock();
        struct vram_block *block = next_to_reach(search);
        vram_table_let_go();
        if (!block) return first;
        int error = vram_memory_reach_block(block);
        if (!first) first = error;
        vram_end_give_back(block, block->state);
    }
}

int vram_memory_serve(const struct vram_request *request, uint64_t *at) {
    if (vram_table_is_mine()) return CUDA_OUT_OF_MEMORY; /* in a signal handler: then the caller asks the driver */
    if (!vram_driver_is_on() || !request->bytes || request->device >= VRAM_DEVICES) return CUDA_OUT_OF_MEMORY;
    vram_end_some(&vram_driver);
    vram_contexts_note(request->context);
    int error = 0;
    struct vram_block *self = freed_for(request);
    if (!self) self = new_for(request, &error);
    if (!self) return CUDA_OUT_OF_MEMORY;
    if (!error) error = vram_memory_reach_block(self); /* access may have changed before the block was in the table */
    if (error) {
        vram_end_now(&vram_driver, self);
        return error;
    }
    *at = self->at;
    vram_end_give_back(self, VRAM_LIVE);
    if (request->in_stream) vram_sums_note_most(request->device);
    return 0;
}

struct vram_block *vram_memory_take(uint64_t at) {
    if (!vram_table_count() || !vram_table_enter()) return NULL;
    struct vram_block *self = vram_table_take(at);
    vram_table_let_go();
    return self;
}

static int wait_for_context(const struct vram_block *self) {
    struct vram_visit visit;
    int error = vram_driver_enter(&vram_driver, self->context, &visit);
    if (error) return error;
    error = vram_driver.cuCtxSynchronize();
    vram_driver_leave(&vram_driver, &visit);
    return error;
}

/* Waits for all work in the block's context, if work may use the block. This wait would break a capture. So during a
 * capture the block is only marked as freed, and no capture begins during the wait. */
bool vram_memory_free(uint64_t at, int *result) {
    struct vram_block *self = vram_memory_take(at);
    if (!self) return false;
    bool waits = self->copied || (!self->in_stream && self->state == VRAM_LIVE);
    *result = 0;
    if (waits && !cuda_captures_hold_off()) {
        vram_end_later(self);
        return true;
    }
    if (waits) {
        *result = wait_for_context(self);
        cuda_captures_go_on();
    }
    if (*result)
        vram_end_give_back(self, self->state);
    else
        vram_end_freed(&vram_driver, self);
    return true;
}

/* A stowed block whose copies are over ends at once, because nobody uses it. Any other block ends when the present work
 * on the stream is done. */
bool vram_memory_free_in(uint64_t at, cuda_handle stream, int *result) {
    vram_end_some(&vram_driver);
    struct vram_block *self = vram_memory_take(at);
    if (!self) return false;
    *result = 0;
    if (self->state == VRAM_STOWED && !self->copied)
        vram_end_now(&vram_driver, self);
    else
        *result = vram_end_in(&vram_driver, self, stream);
    return true;
}

void vram_memory_reap(void) { vram_end_ripe(&vram_driver); }

void vram_memory_give_back(void) {
    if (!vram_driver_is_on()) return;
    vram_end_ripe(&vram_driver);
    vram_end_spares(&vram_driver, 0);
}

bool vram_memory_end_spares(uint32_t owner) { return vram_end_spares(&vram_driver, owner); }

bool vram_memory_wait_freed(void) {
    if (!vram_driver_is_on()) return false;
    return vram_end_spares(&vram_driver, 0) || (!cuda_captures_any() && vram_end_wait(&vram_driver, WAIT_FREED_MS));
}

static bool vram_memory_found(const struct vram_block *block, struct vram_found *out) {
    if (!block) return false;
    *out = (struct vram_found){.at = block->at,
                               .asked = block->asked,
                               .size = block->size,
                               .id = block->id,
                               .devices = block->devices,
                               .context = block->context,
                               .state = block->state,
                               .device = block->device,
                               .in_stream = block->in_stream,
                               .rdma = block->rdma};
    return true;
}

bool vram_memory_find(uint64_t at, struct vram_found *out) {
    if (!vram_table_count() || !vram_table_enter()) return false;
    bool is = vram_memory_found(vram_table_starting(at), out);
    vram_table_let_go();
    return is;
}

bool vram_memory_around(uint64_t address, struct vram_found *out) {
    if (!vram_table_count() || !vram_table_enter()) return false;
    bool is = vram_memory_found(vram_table_around(address), out);
    vram_table_let_go();
    return is;
}
