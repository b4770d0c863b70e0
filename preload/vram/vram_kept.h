/* vram_kept.h — gives up backups that are kept while their content is on the device (vram_backup_keep), when the host
 * has too little memory.
 * In: a need for memory. Out: kept backups are dropped, one after the other; their blocks are copied again when they
 * leave. Only the thread that moves device memory may call. */
#ifndef MEMSTOW_VRAM_KEPT_H
#define MEMSTOW_VRAM_KEPT_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Drops the kept backup of one block that no thread has taken. False: there is none. */
bool vram_kept_give_up(void);
/* Drops the kept backups of all blocks that no thread has taken. */
void vram_kept_give_up_all(void);

#pragma GCC visibility pop

#endif
