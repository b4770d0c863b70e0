/* vram_table.h — the blocks of device memory that memstow serves: by address, and those that are freed, in turn.
 * In: blocks that come and go, addresses. Out: a block, sums; or a block that the caller has alone until it gives it
 * back (`moving`). Any thread. The lock is for looking and marking. It is never held while the driver is called. */
#ifndef MEMSTOW_VRAM_TABLE_H
#define MEMSTOW_VRAM_TABLE_H

#include "preload/shared/os.h"
#include "preload/vram/vram_block.h"
#include "preload/vram/vram_sums.h"

#pragma GCC visibility push(hidden)

void vram_table_lock(void);
/* As vram_table_lock. False: this thread has the lock already, so the caller runs in a signal handler that interrupted
 * it. It does without the table then. */
static inline bool vram_table_enter(void);
static inline void vram_table_let_go(void);
bool vram_table_is_mine(void);
/* With the lock, which is released meanwhile: waits until some block was given back. Then the caller looks again. */
void vram_table_wait(void);
/* The same, for some milliseconds at most. */
void vram_table_wait_briefly(void);
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
/* Wrecks and spares are not found by their addresses. */
void vram_table_set_state(struct vram_block *self, enum vram_state state);
/* The queue of freed blocks and wrecks. first_freed: the block that has waited longest. requeue: moves a block to the
 * end. */
struct vram_block *vram_table_first_freed(void);
/* The oldest spare; younger ones follow by freed_next. */
struct vram_block *vram_table_first_spare(void);
/* Freed blocks and spares of a size, by shelf_next, the last that came first; blocks of other sizes are among them. */
struct vram_block *vram_table_first_of_size(uint64_t size);
void vram_table_requeue(struct vram_block *self);
/* The sums of a device (UINT32_MAX: of all), at once; and those of an owner, which takes a walk through all blocks. */
struct vram_sums vram_table_sums(uint32_t device);
struct vram_sums vram_table_sums_of(uint32_t owner, uint32_t device);

/* Without the lock: the next number, higher than all before. Blocks and events get numbers, which tell their order in
 * time. */
uint64_t vram_table_number(void);
uint64_t vram_table_last_number(void);
/* Without the lock: an id for memory, different from all others. */
uint64_t vram_table_id(void);
/* Without the lock. count: all blocks; pending: freed blocks and wrecks; freed: freed blocks alone; spares: whether
 * there are any. */
uint32_t vram_table_count(void);
uint32_t vram_table_pending(void);
uint32_t vram_table_freed(void);
extern uint32_t vram_table_spare; /* their number */
static inline bool vram_table_spares(void) { return __atomic_load_n(&vram_table_spare, __ATOMIC_ACQUIRE); }

/* --- the lock: each query of an address takes it, so it is inline */

enum { VRAM_TABLE_HELD = 1, VRAM_TABLE_WAITED = 2 };
/* 0, or the holder's word, with VRAM_TABLE_WAITED if threads wait. Its lower half is a futex. */
extern uint64_t vram_table_word;

/* The word while this thread has the lock. The address of the thread's descriptor is a multiple of 64. */
static inline uint64_t vram_table_my_word(void) { return (uint64_t)os_thread() | VRAM_TABLE_HELD; }

/* False: this thread has the lock, and the caller gives up then. */
bool vram_table_wait_for_lock(bool gives_up);
void vram_table_wake_one(void);

static inline bool vram_table_enter(void) {
    uint64_t was = 0;
    return likely(__atomic_compare_exchange_n(&vram_table_word, &was, vram_table_my_word(), false, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED)) ||
           vram_table_wait_for_lock(true);
}

static inline void vram_table_let_go(void) {
    if (unlikely(__atomic_exchange_n(&vram_table_word, 0, __ATOMIC_RELEASE) & VRAM_TABLE_WAITED)) vram_table_wake_one();
}

#pragma GCC visibility pop

#endif
