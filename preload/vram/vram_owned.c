/* vram_owned.c — see vram_owned.h. */
#include "preload/vram/vram_owned.h"

#include "preload/vram/vram_end.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_table.h"

void vram_owned_visit(vram_owned_visitor *visit, void *context) {
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->state <= VRAM_STOWED) visit(block->owner, block->size, block->state == VRAM_STOWED, context);
    vram_table_let_go();
}

void vram_owned_visit_staying(uint32_t owner, vram_staying_visitor *visit, void *context) {
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->owner == owner && block->state == VRAM_LIVE && vram_refusal_of(block))
            visit(vram_refusal_of(block), block->at, block->size, context);
    vram_table_let_go();
}

void vram_owned_visit_stowed(vram_stowed_visitor *visit, void *context) {
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next) {
        struct vram_stowed stowed = {block->at,      block->asked, block->size,  block->left_ns,
                                     block->trigger, block->owner, block->device};
        if (block->state == VRAM_STOWED) visit(&stowed, context);
    }
    vram_table_let_go();
}

void vram_owned_change(uint32_t from, uint32_t to) {
    vram_table_lock();
    for (struct vram_block *block = vram_table_first(); block; block = block->next)
        if (block->owner == from) block->owner = to;
    vram_table_let_go();
}

bool vram_owned_hold(uint64_t at, struct vram_block **held) {
    struct vram_block *block = *held = vram_memory_take(at);
    if (!block || block->state == VRAM_LIVE) return true;
    vram_end_give_back(block, block->state);
    return false;
}

void vram_owned_assign(struct vram_block *held, uint32_t owner, bool mixed) {
    vram_table_lock();
    held->owner = owner;
    held->mixed = mixed;
    vram_table_let_go();
}

void vram_owned_let_go(struct vram_block *held) { vram_end_give_back(held, VRAM_LIVE); }
