/* vram_backup.h — where the content of a block is on the host while the block is off its device: in ordinary memory, in
 * pinned memory, or in a file of the host engine (stow_file.h).
 * In: a block that the caller has taken (vram_table.h), and limits. Out: `backup` (the memory for the block's content)
 * and `backup_kind` in the block; or no backup. A forked child has no backups. The ledger lists each backup by its
 * address. */
#ifndef MEMSTOW_VRAM_BACKUP_H
#define MEMSTOW_VRAM_BACKUP_H

#include "preload/stow/stow_file.h"
#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

/* Limits in bytes, for the backups of all blocks together. */
struct vram_limits {
    uint64_t memory;  /* on the host, pinned or not; 0: as much as the system can spare */
    uint64_t pinned;  /* how much of `memory` may be pinned; 0: none */
    uint64_t disk;    /* how much may be in files; 0: nothing */
    uint64_t standby; /* how much of `memory` may hold content that is back on its device; 0: none */
};

/* Makes a backup in memory, pinned if possible. The block's context must be the current one. `expected`: how many bytes
 * the move will still take out at most, including this block. False: there is too little memory. */
bool vram_backup_make(const struct vram_driver *driver, struct vram_block *self, const struct vram_limits *limits,
                      uint64_t expected);
/* Makes a backup in a file. The caller writes the whole file and closes it. Returns enum stow_refusal; STOW_EMPTY: the
 * limit or a sandbox allows no file. */
uint32_t vram_backup_make_file(struct vram_block *self, const struct vram_limits *limits, struct stow_file *file);
void vram_backup_drop(struct vram_block *self);
/* Call it when the content is on the device again. Keeps the backup in memory as a standby backup, if its content has a
 * hash and the limit allows it. False: the backup is not kept, and the caller drops it. */
bool vram_backup_keep(struct vram_block *self, const struct vram_limits *limits);
/* Call it when the block leaves its device: a standby backup becomes the place of the block's content again. False: the
 * block has no standby backup. */
bool vram_backup_use(struct vram_block *self);
/* The bytes of all standby backups. */
uint64_t vram_backup_standby(void);
/* vram_backup_leave: gives up a backup to which the device may still write. The backup's memory stays until
 * vram_backup_collect, which the thread that moves memory calls when no copy is in progress. */
void vram_backup_leave(struct vram_block *self);
void vram_backup_collect(void);
/* The bytes of all backups of this kind; VRAM_BACKUP_KINDS: of all kinds. */
uint64_t vram_backup_bytes(enum vram_backup_kind backup_kind);
/* How many more bytes of host memory backups may take. */
uint64_t vram_backup_left(const struct vram_limits *limits);

/* Tell the ledger that the ring (vram_ring.h) has made a buffer, or freed one. */
void vram_backup_note_buffer(const void *at, uint64_t bytes, uint32_t device);
void vram_backup_forget_buffer(const void *at);

#pragma GCC visibility pop

#endif
