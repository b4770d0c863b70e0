/* vram_table.h — the blocks of device memory that memstow serves, by address.
 * In: blocks that come and go, addresses. Out: a block; or one that is the caller's alone until it is given back
 * (`moving`). Any thread. The lock is for looking and marking: never held while the driver is asked for anything. */
#ifndef MEMSTOW_VRAM_TABLE_H
#define MEMSTOW_VRAM_TABLE_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

void vram_table_lock(void);
void vram_table_let_go(void);
/* With the lock, which is given up while waiting until some block is nobody's any more: the caller looks anew. */
void vram_table_wait(void);
/* With the lock: waiting threads look again. */
void vram_table_changed(void);

/* All of these with the lock. */
struct vram_block *vram_table_first(void);
struct vram_block *vram_table_around(uint64_t address);   /* that it lies in */
struct vram_block *vram_table_starting(uint64_t address); /* that begins there */
/* The same, and the block is the caller's from now on; waits while another thread has it. NULL: there is none, or it is
 * freed. */
struct vram_block *vram_table_take(uint64_t address);
struct vram_block *vram_table_new(void); /* in no table yet; NULL: no memory */
void vram_table_add(struct vram_block *block);
void vram_table_drop(struct vram_block *block);

/* Without the lock: a number higher than all before, of a block, or of a moment that others are earlier or later than.
 */
uint64_t vram_table_number(void);
uint64_t vram_table_last_number(void);
/* Without the lock: how many blocks there are. */
uint32_t vram_table_count(void);

#pragma GCC visibility pop

#endif
