/* vram_owned.h — which owner has which block of served memory.
 * In: owners, and blocks that get another owner. Out: the blocks of an owner. Any thread may call. */
#ifndef MEMSTOW_VRAM_OWNED_H
#define MEMSTOW_VRAM_OWNED_H

#include "preload/vram/vram_refusal.h"

#pragma GCC visibility push(hidden)

typedef void vram_staying_visitor(enum vram_refusal why, uint64_t at, uint64_t bytes, void *context);
/* Calls visit for each block of an owner that is on its device and does not move (vram_refusal_of). visit must not call
 * CUDA. */
void vram_owned_visit_staying(uint32_t owner, vram_staying_visitor *visit, void *context);
typedef void vram_owned_visitor(uint32_t owner, uint64_t bytes, bool stowed, void *context);
/* Calls visit for each block that is live or stowed. visit must not call CUDA. */
void vram_owned_visit(vram_owned_visitor *visit, void *context);
/* A block that is stowed. */
struct vram_stowed {
    uint64_t at, asked, bytes; /* at: the address; asked: bytes as requested; bytes: `asked` in whole VRAM_GRANULEs */
    uint64_t ns, trigger;      /* ns: when it left its device; trigger: the number of the trigger that moved it, or 0 */
    uint32_t owner, device;
};
typedef void vram_stowed_visitor(const struct vram_stowed *block, void *context);
/* Calls visit for each block that is stowed. visit must not call CUDA. */
void vram_owned_visit_stowed(vram_stowed_visitor *visit, void *context);
/* Gives all served memory of the owner `from` to the owner `to`. */
void vram_owned_change(uint32_t from, uint32_t to);
/* Takes the block at `at`, so that it does not move until vram_owned_let_go. Waits while another thread has taken it.
 * Returns true and sets *held to the block, or to NULL if no served block begins at `at`. Returns false if the block is
 * off its device; then it was not taken. */
bool vram_owned_hold(uint64_t at, struct vram_block **held);
/* Gives the block to an owner (0: nobody). `mixed`: other owners have parts of it, so it does not move. */
void vram_owned_assign(struct vram_block *held, uint32_t owner, bool mixed);
void vram_owned_let_go(struct vram_block *held);

#pragma GCC visibility pop

#endif
