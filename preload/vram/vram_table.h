/* vram_table.h — the blocks of device memory that memstow serves, by address.
 * In: blocks that come and go, addresses. Out: a block; or a block that the caller has alone until it gives it back
 * (`moving`). Any thread. The lock is for looking and marking. It is never held while the driver is called. */
#ifndef MEMSTOW_VRAM_TABLE_H
#define MEMSTOW_VRAM_TABLE_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

void vram_table_lock(void);
void vram_table_let_go(void);
/* With the lock, which is released meanwhile: waits until some block was given back. Then the caller looks again. */
void vram_table_wait(void);
/* With the lock: wakes waiting threads, which look again. */
void vram_table_changed(void);

/* The caller of the next functions holds the lock. */
struct vram_block *vram_table_first(void);
struct vram_block *vram_table_around(uint64_t address);   /* the block that contains the address */
struct vram_block *vram_table_starting(uint64_t address); /* the block that begins there */
/* The block that begins there. The caller has it from now on; if another thread has it, this waits. NULL: there is
 * none, or it was freed. */
struct vram_block *vram_table_take(uint64_t address);
struct vram_block *vram_table_new(void); /* not in the table yet; NULL: there is no memory */
void vram_table_add(struct vram_block *self);
void vram_table_drop(struct vram_block *self);

/* Without the lock: the next number, higher than all before. Blocks and events get numbers, which tell their order in
 * time. */
uint64_t vram_table_number(void);
uint64_t vram_table_last_number(void);
/* Without the lock: an id for memory, different from all others. */
uint64_t vram_table_id(void);
/* Without the lock: the number of blocks. */
uint32_t vram_table_count(void);

#pragma GCC visibility pop

#endif
