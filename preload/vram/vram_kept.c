/* vram_kept.c — see vram_kept.h. */
#include "preload/vram/vram_kept.h"

#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_table.h"

static struct vram_block *vram_kept_take(void) {
    vram_table_lock();
    struct vram_block *block = vram_table_first();
    while (block && (!block->kept || block->moving)) block = block->next;
    if (block) block->moving = true;
    vram_table_let_go();
    return block;
}

bool vram_kept_give_up(void) {
    struct vram_block *block = vram_backup_kept() ? vram_kept_take() : NULL;
    if (!block) return false;
    vram_backup_drop(block);
    vram_end_give_back(block, block->state);
    return true;
}

void vram_kept_give_up_all(void) {
    while (vram_kept_give_up()) continue;
}
