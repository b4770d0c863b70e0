/* vram_standby.h — drops standby backups (vram_backup_keep) when the host has too little memory. A standby backup still
 * has the content of a block that is on its device. In: a need for memory. Out: dropped backups, one after the other.
 * Their blocks are copied again when they leave. Only the thread that moves device memory may call. */
#ifndef MEMSTOW_VRAM_STANDBY_H
#define MEMSTOW_VRAM_STANDBY_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Drops the standby backup of one block that no thread has taken. False: there is none. */
bool vram_standby_drop(void);
/* Drops the standby backups of all blocks that no thread has taken. */
void vram_standby_drop_all(void);

#pragma GCC visibility pop

#endif
