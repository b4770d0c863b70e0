/* vram_table.h — the table of all blocks of device memory that memstow serves (makes in place of the driver). It finds
 * blocks by address, and has a queue of freed blocks, and one of spares (freed blocks that are kept).
 * In: new blocks, changes of blocks, addresses. Out: a block, or sums. A thread *takes* a block (`moving`) before it
 * calls the driver for the block. Until the block is given back, no other thread takes it. Any thread may call. The
 * lock is held only to look at blocks and to mark them, never while the driver is called. */
#ifndef MEMSTOW_VRAM_TABLE_H
#define MEMSTOW_VRAM_TABLE_H

#include "preload/shared/os.h"
#include "preload/vram/vram_block.h"
#include "preload/vram/vram_sums.h"

#pragma GCC visibility push(hidden)

void vram_table_lock(void);
/* As vram_table_lock. False: this thread has the lock already, so the caller is a signal handler that interrupted the
 * thread. Such a caller must do without the table. */
static inline bool vram_table_enter(void);
static inline void vram_table_let_go(void);
/* Whether this thread has the lock. */
bool vram_table_is_mine(void);
/* Waits until vram_table_changed is called; after that, the caller must look at the table again. The caller holds the
 * lock, which is released during the wait. */
void vram_table_wait(void);
/* As vram_table_wait, for 20 milliseconds at most. */
void vram_table_wait_briefly(void);
/* Wakes the threads in vram_table_wait and vram_table_wait_briefly. The caller holds the lock. */
void vram_table_changed(void);

/* The caller of the next functions holds the lock. */
struct vram_block *vram_table_first(void);
struct vram_block *vram_table_around(uint64_t address);   /* the block that contains the address */
struct vram_block *vram_table_starting(uint64_t address); /* the block that begins at the address */
/* Takes the block that begins at the address. Waits while another thread has taken it. NULL: there is no such block, or
 * it was freed. */
struct vram_block *vram_table_take(uint64_t address);
struct vram_block *vram_table_new(void); /* a new block, which is not in the table yet; NULL: there is no memory */
void vram_table_add(struct vram_block *self);
void vram_table_drop(struct vram_block *self);
/* Sets the state of a block. Wrecks and spares are not found by their addresses any more. */
void vram_table_set_state(struct vram_block *self, enum vram_state state);
/* The first block in the queue of freed blocks and wrecks (VRAM_WRECK). */
struct vram_block *vram_table_first_freed(void);
/* The oldest spare; younger ones follow by freed_next. */
struct vram_block *vram_table_first_spare(void);
/* The newest freed block or spare in the list (shelf) for this size. Older ones follow by shelf_next. A shelf may also
 * have blocks of other sizes. */
struct vram_block *vram_table_first_of_size(uint64_t size);
/* Moves a block to the end of the queue of freed blocks and wrecks. */
void vram_table_requeue(struct vram_block *self);
/* vram_table_sums: the sums of a device (UINT32_MAX: of all devices), which are kept up to date. vram_table_sums_of:
 * the sums of an owner, for which it walks through all blocks. */
struct vram_sums vram_table_sums(uint32_t device);
struct vram_sums vram_table_sums_of(uint32_t owner, uint32_t device);

/* Blocks and events get numbers that tell their order in time. vram_table_number: makes a new number, higher than all
 * earlier ones. vram_table_last_number: the number that was made last. These functions need no lock. */
uint64_t vram_table_number(void);
uint64_t vram_table_last_number(void);
/* Makes an id for memory, different from all other ids. Needs no lock. */
uint64_t vram_table_id(void);
/* These functions need no lock. vram_table_count: the number of all blocks. vram_table_pending: the number of freed
 * blocks and wrecks. vram_table_freed: the number of freed blocks. vram_table_spares: whether there are spares. */
uint32_t vram_table_count(void);
uint32_t vram_table_pending(void);
uint32_t vram_table_freed(void);
extern uint32_t vram_table_spare; /* the number of spares */
static inline bool vram_table_spares(void) { return __atomic_load_n(&vram_table_spare, __ATOMIC_ACQUIRE); }

/* --- the lock: each query of an address takes it, so it is inline */

enum { VRAM_TABLE_HELD = 1, VRAM_TABLE_WAITED = 2 };
/* 0: nobody holds the lock. Otherwise it is the word of the holder (vram_table_my_word), with VRAM_TABLE_WAITED if
 * other threads may wait. The lower half of the word is a futex. */
extern uint64_t vram_table_word;

/* The lock's word while this thread holds the lock: the address of the thread's descriptor, and flags in the lowest
 * bits. These bits are free, because the address is a multiple of 64. */
static inline uint64_t vram_table_my_word(void) { return (uint64_t)os_thread() | VRAM_TABLE_HELD; }

/* Waits for the lock, takes it, and returns true. If `gives_up` is set and this thread has the lock already, returns
 * false. */
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
