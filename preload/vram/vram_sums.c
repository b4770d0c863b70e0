/* vram_sums.c — see vram_sums.h. */
#include "preload/vram/vram_sums.h"

#include <string.h>

#include "preload/base/forked.h"
#include "preload/shared/os.h"
#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_table.h"

static uint64_t streams_most[VRAM_DEVICES], streams_taken_most[VRAM_DEVICES];

static void add_to(struct vram_sums *sums, const struct vram_block *block) {
    if (block->state == VRAM_LIVE) sums->live += block->size;
    if (block->state == VRAM_STOWED) sums->stowed += block->size, sums->stowed_asked += block->asked;
    if (block->state <= VRAM_STOWED) sums->asked += block->asked;
    if (block->in_stream && block->state <= VRAM_STOWED) {
        sums->in_streams += block->asked;
        sums->streams_taken += block->size;
    }
    sums->blocks += block->state <= VRAM_STOWED;
    sums->wrecks += block->state == VRAM_WRECK;
}

struct vram_sums vram_sums(uint32_t owner, uint32_t device) {
    struct vram_sums sums = {.backup = vram_backup_bytes(VRAM_BACKUP_KINDS),
                             .in_streams_most = device < VRAM_DEVICES ? os_load(&streams_most[device]) : 0,
                             .streams_taken_most = device < VRAM_DEVICES ? os_load(&streams_taken_most[device]) : 0};
    vram_table_lock();
    for (const struct vram_block *block = vram_table_first(); block; block = block->next)
        if ((!owner || block->owner == owner) && (device == UINT32_MAX || block->device == device))
            add_to(&sums, block);
    vram_table_let_go();
    return sums;
}

void vram_sums_note_most(uint32_t device) {
    struct vram_sums sums = vram_sums(0, device);
    os_raise(&streams_most[device], sums.in_streams);
    os_raise(&streams_taken_most[device], sums.streams_taken);
}

void vram_sums_forget_most(uint32_t device, bool taken) {
    if (device >= VRAM_DEVICES) return;
    os_store(taken ? &streams_taken_most[device] : &streams_most[device], 0);
    vram_sums_note_most(device);
}

static void vram_sums_abandon(void) {
    memset(streams_most, 0, sizeof streams_most);
    memset(streams_taken_most, 0, sizeof streams_taken_most);
}
FORKED(vram_sums_abandon);
