/* vram_standby.c — see vram_standby.h. */
#include "preload/vram/vram_standby.h"

#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_end.h"
#include "preload/vram/vram_table.h"

static struct vram_block *vram_standby_take(void) {
    vram_table_lock();
    struct vram_block *block = vram_table_first();
    while (block && (!block->standby || block->moving)) block = block->next;
    if (block) block->moving = true;
    vram_table_let_go();
    return block;
}

bool vram_standby_drop(void) {
    struct vram_block *block = vram_backup_standby() ? vram_standby_take() : NULL;
    if (!block) return false;
    vram_backup_drop(block);
    vram_end_give_back(block, block->state);
    return true;
}

void vram_standby_drop_all(void) {
    while (vram_standby_drop()) continue;
}
