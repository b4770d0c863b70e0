/* vram_backup.h — where a block's content is on the host while it is out of its device: in ordinary memory, in memory
 * that the driver has pinned, or in a file of the host engine's (stow_file.h). In: a block of the caller's, and limits.
 * Out: place for its content at `backup`, in `kept`; or none. A forked child has none of it. The ledger knows all of it
 * by address. */
#ifndef MEMSTOW_VRAM_BACKUP_H
#define MEMSTOW_VRAM_BACKUP_H

#include "preload/stow/stow_file.h"
#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

/* Bytes for all blocks together. */
struct vram_limits {
    uint64_t memory; /* of the host's, pinned or not; 0: as much as the system can spare */
    uint64_t pinned; /* of that */
    uint64_t disk;
};

/* In memory, pinned as far as that may be, in the context that is current. False: there is no room. */
bool vram_backup_make(const struct vram_driver *driver, struct vram_block *self, const struct vram_limits *limits);
/* In a file: the caller writes it, whole, and closes it. Of enum stow_refusal; STOW_EMPTY: there may be none. */
uint32_t vram_backup_make_file(struct vram_block *self, const struct vram_limits *limits, struct stow_file *file);
void vram_backup_drop(const struct vram_driver *driver, struct vram_block *self);
/* The same where the device may still write to it: it stays until vram_backup_collect, which the mover calls when no
 * copy is on its way any more. */
void vram_backup_leave(struct vram_block *self);
void vram_backup_collect(const struct vram_driver *driver);
/* Of this kind; VRAM_KEPT_KINDS: of all. */
uint64_t vram_backup_bytes(enum vram_kept kept);

/* Buffers that the ring has, or has no more, for the ledger. */
void vram_backup_note_buffer(const void *at, uint64_t bytes, uint32_t device);
void vram_backup_forget_buffer(const void *at);

#pragma GCC visibility pop

#endif
