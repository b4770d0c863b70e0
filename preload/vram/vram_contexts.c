/* vram_contexts.c — see vram_contexts.h. */
#include "preload/vram/vram_contexts.h"

#include <string.h>

#include "preload/base/forked.h"
#include "preload/vram/vram_ahead.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_table.h"

static cuda_handle contexts[VRAM_CONTEXTS];
static uint64_t contexts_seen[VRAM_CONTEXTS]; /* vram_table_last_number() when the context was last noted */
static uint32_t context_count;
static bool context_missing; /* there were more than VRAM_CONTEXTS contexts */

void vram_contexts_note(cuda_handle context) {
    uint32_t i = 0;
    if (!vram_table_enter()) return;
    while (i < context_count && contexts[i] != context) i++;
    if (i == VRAM_CONTEXTS) context_missing = true;
    if (i == context_count && i < VRAM_CONTEXTS && context) contexts[context_count++] = context;
    if (i < context_count) contexts_seen[i] = vram_table_last_number();
    vram_table_let_go();
}

uint32_t vram_contexts_all(cuda_handle to[VRAM_CONTEXTS], bool *missing) {
    vram_table_lock();
    uint32_t count = context_count;
    memcpy(to, contexts, sizeof contexts);
    *missing = context_missing;
    vram_table_let_go();
    return count;
}

static void forget_context(cuda_handle context, uint64_t end) {
    for (uint32_t i = 0; i < context_count; i++)
        if (contexts[i] == context && contexts_seen[i] < end) {
            contexts[i] = contexts[--context_count];
            contexts_seen[i] = contexts_seen[context_count];
        }
    vram_move_forget_context(context);
    vram_ahead_forget(context);
    vram_end_context(context, end);
}

bool vram_contexts_device(cuda_handle context, uint32_t *device) {
    vram_table_lock();
    struct vram_block *block = vram_table_first();
    while (block && block->context != context) block = block->next;
    if (block) *device = block->device;
    vram_table_let_go();
    return block != NULL;
}

static bool ends_with(const struct vram_block *block, cuda_handle context, cuda_handle heir, uint64_t end) {
    bool has_heir = heir && block->in_stream && block->state != VRAM_SPARE;
    return block->context == context && block->number < end && block->state != VRAM_WRECK && !has_heir;
}

static struct vram_block *of_context(cuda_handle context, cuda_handle heir, uint64_t end) {
    struct vram_block *block = vram_table_first();
    while (block && !ends_with(block, context, heir, end)) block = block->next;
    return block;
}

static void vram_contexts_inherit(cuda_handle context, cuda_handle heir, uint64_t end) {
    for (struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->context == context && block->number < end && block->in_stream && heir) block->context = heir;
}

uint64_t vram_contexts_end_begins(void) { return vram_table_number(); }

/* The driver does not free physical memory and addresses when a context ends, because they belong to no context. So
 * memory that was served in this context is given back here. */
void vram_contexts_ended(cuda_handle context, cuda_handle heir, uint64_t end) {
    struct vram_block *block;
    vram_table_lock();
    forget_context(context, end);
    while ((block = of_context(context, heir, end))) {
        if (block->moving) {
            vram_table_wait();
            continue;
        }
        block->moving = true;
        vram_table_let_go();
        vram_end_now(&vram_driver, block);
        vram_table_lock();
    }
    vram_contexts_inherit(context, heir, end);
    vram_table_let_go();
}

static void vram_contexts_abandon(void) {
    context_count = 0;
    context_missing = false;
}
FORKED(vram_contexts_abandon);
