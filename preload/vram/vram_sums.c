/* vram_sums.c — see vram_sums.h. */
#include "preload/vram/vram_sums.h"

#include <string.h>

#include "preload/base/forked.h"
#include "preload/shared/os.h"
#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_table.h"

static uint64_t streams_most[VRAM_DEVICES], streams_taken_most[VRAM_DEVICES];

struct vram_sums vram_sums(uint32_t owner, uint32_t device) {
    if (!vram_table_enter()) return (struct vram_sums){0};
    struct vram_sums sums = owner ? vram_table_sums_of(owner, device) : vram_table_sums(device);
    vram_table_let_go();
    sums.backup = vram_backup_bytes(VRAM_BACKUP_KINDS);
    sums.in_streams_most = device < VRAM_DEVICES ? os_load(&streams_most[device]) : 0;
    sums.streams_taken_most = device < VRAM_DEVICES ? os_load(&streams_taken_most[device]) : 0;
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
