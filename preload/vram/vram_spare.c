/* vram_spare.c — see vram_spare.h. */
#include "preload/vram/vram_spare.h"

#include "preload/base/forked.h"
#include "preload/count/owner.h"
#include "preload/count/tags.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_table.h"

enum { LOOKS_MOST = 16 }; /* how many more blocks of a shelf (vram_table.h) a request looks at, after the first */

uint64_t vram_spare_most = (uint64_t)1 << 30;

static bool stopped;

void vram_spare_stop(bool stop) { __atomic_store_n(&stopped, stop, __ATOMIC_RELAXED); }

static bool is_in_scope_of(uint32_t owner) {
    uint32_t model = tags_used ? tags_present()->model : 0;
    return model && owner_final(model) == owner_final(owner);
}

/* A block with a refusal (`refused`) is not kept, because others may know its memory. */
bool vram_spare_wants(const struct vram_block *self) {
    bool has_memory = self->state != VRAM_STOWED && self->state != VRAM_WRECK && self->open && !self->copied;
    return has_memory && !self->refused && self->size <= vram_spare_most && is_in_scope_of(self->owner) &&
           !__atomic_load_n(&stopped, __ATOMIC_RELAXED);
}

/* Takes the block, if there is one. The caller holds the table's lock. */
static struct vram_block *vram_spare_taken(struct vram_block *block) {
    if (block) block->moving = true;
    return block;
}

/* The first spare, from `block` on, that no thread has taken and that belongs to this owner (0: to any). */
static struct vram_block *next_spare(struct vram_block *block, uint32_t owner) {
    while (block && (block->moving || (owner && owner_final(block->owner) != owner))) block = block->freed_next;
    return block;
}

struct vram_block *vram_spare_before(uint64_t bytes) {
    if (!vram_table_enter()) return NULL;
    bool is_full = vram_table_sums(UINT32_MAX).spare + bytes > vram_spare_most;
    struct vram_block *block = is_full ? vram_spare_taken(next_spare(vram_table_first_spare(), 0)) : NULL;
    vram_table_let_go();
    return block;
}

struct vram_block *vram_spare_of(uint32_t owner) {
    if (!vram_table_spares() || !vram_table_enter()) return NULL;
    struct vram_block *block = vram_spare_taken(next_spare(vram_table_first_spare(), owner ? owner_final(owner) : 0));
    vram_table_let_go();
    return block;
}

/* Whether only work on the request's stream may still use a freed block. The handle of a default stream is the same in
 * all contexts, so contexts are compared, too. */
static bool is_of_stream(const struct vram_block *block, const struct vram_request *request) {
    bool is_default = (uintptr_t)request->stream <= CUDA_STREAM_PER_THREAD;
    return request->in_stream && block->event && !block->copied &&
           block->event_stream == vram_end_stream(request->stream) &&
           (!is_default || block->event_context == request->context);
}

static bool serves(const struct vram_block *block, const struct vram_request *request, uint64_t size) {
    if (block->moving || block->size != size || block->device != request->device || block->refused) return false;
    if (block->in_stream != request->in_stream) return false;
    return block->state == VRAM_SPARE || is_of_stream(block, request);
}

struct vram_block *vram_spare_for(const struct vram_request *request) {
    struct vram_block like;
    vram_block_plan(&like, request->bytes);
    if (!vram_spare_most || !vram_table_enter()) return NULL;
    struct vram_block *block = vram_table_first_of_size(like.size);
    for (int i = 0; block && !serves(block, request, like.size); i++) block = i < LOOKS_MOST ? block->shelf_next : NULL;
    vram_spare_taken(block);
    vram_table_let_go();
    return block;
}

static void vram_spare_abandon(void) { stopped = false; }
FORKED(vram_spare_abandon);
