/* vram_backup.c — see vram_backup.h. memstow maps pinned memory itself, and registers it with the driver, because
 * pinned memory that the driver allocates ends with its context. A block that was served in place of a pool outlives
 * its context, so its backup must outlive the context, too. */
#include "preload/vram/vram_backup.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/ledger/ledger.h"
#include "preload/base/capacity.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/shared/pressure.h"
#include "preload/stow/stow.h"
#include "preload/copies/vram_stock.h"
#include "preload/base/seal.h"
#include "preload/vram/vram_standby.h"
#include "preload/base/forked.h"

static uint64_t bytes_of[VRAM_BACKUP_KINDS];
static uint64_t standby_bytes;

/* Backups that were given up while the device might still write to them (vram_backup_leave). */
struct pinned {
    char *at;
    uint64_t bytes;
};
static struct {
    struct pinned *list;
    uint32_t count, capacity;
} held;
static struct lock busy;

uint64_t vram_backup_bytes(enum vram_backup_kind backup_kind) {
    uint64_t sum = 0;
    for (int i = 0; i < VRAM_BACKUP_KINDS; i++)
        if (backup_kind == VRAM_BACKUP_KINDS || i == (int)backup_kind) sum += os_load(&bytes_of[i]);
    return sum;
}

static uint64_t add_backup_bytes(enum vram_backup_kind backup_kind, uint64_t bytes) {
    return __atomic_add_fetch(&bytes_of[backup_kind], bytes, __ATOMIC_RELAXED);
}

static void take_off_backup_bytes(enum vram_backup_kind backup_kind, uint64_t bytes) {
    __atomic_fetch_sub(&bytes_of[backup_kind], bytes, __ATOMIC_RELAXED);
}

/* --- listing backups in the ledger --- */

static void vram_backup_note(enum snap_cuda_kind kind, const void *at, uint64_t bytes, uint32_t device) {
    cuda_blocks_add(CUDA_RANGE,
                    &(struct snap_cuda_block){
                        .kind = (uint8_t)kind, .device = (uint16_t)device, .address = (uintptr_t)at, .size = bytes});
}

static void vram_backup_forget(const void *at) {
    struct snap_cuda_block record;
    cuda_blocks_take(CUDA_RANGE, (uintptr_t)at, &record);
}

void vram_backup_note_buffer(const void *at, uint64_t bytes, uint32_t device) {
    vram_backup_note(SNAP_CUDA_BUFFER, at, bytes, device);
}

void vram_backup_forget_buffer(const void *at) { vram_backup_forget(at); }

/* Sets the block's backup, and lists it in the ledger. A forked child does not inherit the memory, because the child
 * has no device to bring the content back to. */
static void is_made(struct vram_block *self, void *at, enum vram_backup_kind backup_kind) {
    self->backup = at;
    self->backup_kind = backup_kind;
    os_call(SYS_madvise, at, self->size, MADV_DONTFORK);
    vram_backup_note(SNAP_CUDA_BACKUP, at, self->size, self->device);
}

/* --- making backups in memory --- */

/* An eighth of the memory that the machine or the cgroup has left stays free. Otherwise stowing a model could make the
 * system kill the program. */
uint64_t vram_backup_left(const struct vram_limits *limits) {
    uint64_t left = pressure_left(), usable = left - left / 8;
    uint64_t taken = vram_backup_bytes(VRAM_IN_MEMORY) + vram_stock_bytes();
    uint64_t allowed = limits->memory > taken ? limits->memory - taken : 0;
    return limits->memory && allowed < usable ? allowed : usable;
}

static char *make_pinned(const struct vram_driver *driver, const struct vram_block *self,
                         const struct vram_limits *limits, uint64_t expected) {
    return vram_stock_take(driver, &(struct vram_stock_wish){.bytes = self->size,
                                                             .expected = expected,
                                                             .most = limits->pinned,
                                                             .most_new = vram_backup_left(limits),
                                                             .context = self->context,
                                                             .device = self->device});
}

/* Makes ordinary memory. If fewer than `bytes` are left for backups, frees standby backups and unused pinned memory
 * first. NULL: there is still too little memory. */
static void *make_ordinary(const struct vram_driver *driver, uint64_t bytes, const struct vram_limits *limits) {
    while (vram_backup_left(limits) < bytes && vram_standby_drop()) continue;
    if (vram_backup_left(limits) < bytes) vram_stock_shrink(driver);
    void *at = vram_backup_left(limits) < bytes ? NULL : os_map(bytes);
    if (at) os_call(SYS_madvise, at, bytes, MADV_HUGEPAGE);
    return at;
}

bool vram_backup_make(const struct vram_driver *driver, struct vram_block *self, const struct vram_limits *limits,
                      uint64_t expected) {
    void *at = limits->pinned ? make_pinned(driver, self, limits, expected) : NULL;
    enum vram_backup_kind backup_kind = at ? VRAM_PINNED : VRAM_IN_MEMORY;
    if (!at) at = make_ordinary(driver, self->size, limits);
    if (!at) return false;
    add_backup_bytes(backup_kind, self->size);
    is_made(self, at, backup_kind);
    return true;
}

/* --- making backups in a file --- */

uint32_t vram_backup_make_file(struct vram_block *self, const struct vram_limits *limits, struct stow_file *file) {
    if (!limits->disk || seal_is_set()) return STOW_EMPTY;
    /* If a disk fails, a read through a file mapping raises a signal that kills the process. A copy by the kernel
     * returns an error instead. So without such copies (os_can_peek), no backup is made in a file. */
    if (!os_can_peek()) return STOW_NO_KERNEL_HELP;
    uint32_t refusal = add_backup_bytes(VRAM_IN_FILE, self->size) <= limits->disk
                           ? stow_file_open(file, NULL, self->size)
                           : STOW_EMPTY;
    void *at = refusal ? NULL : stow_file_map(file, self->size);
    if (!refusal && !at) stow_file_close(file);
    if (!at) take_off_backup_bytes(VRAM_IN_FILE, self->size);
    if (at) is_made(self, at, VRAM_IN_FILE);
    return refusal || at ? refusal : (uint32_t)STOW_ADDRESS_SPACE;
}

/* --- dropping backups --- */

static void give_back(char *at, uint64_t bytes, enum vram_backup_kind backup_kind) {
    vram_backup_forget(at);
    if (backup_kind == VRAM_PINNED)
        vram_stock_give(at, bytes);
    else
        os_unmap(at, bytes);
    take_off_backup_bytes(backup_kind, bytes);
}

void vram_backup_drop(struct vram_block *self) {
    vram_backup_use(self);
    if (self->backup) give_back(self->backup, self->size, self->backup_kind);
    self->backup = NULL;
    self->hashed = self->unchanged = false;
}

/* --- standby backups: their blocks are on their devices --- */

uint64_t vram_backup_standby(void) { return os_load(&standby_bytes); }

bool vram_backup_keep(struct vram_block *self, const struct vram_limits *limits) {
    bool in_memory = self->backup && (self->backup_kind == VRAM_IN_MEMORY || self->backup_kind == VRAM_PINNED);
    if (!in_memory || !self->hashed || vram_backup_standby() + self->size > limits->standby) return false;
    __atomic_fetch_add(&standby_bytes, self->size, __ATOMIC_RELAXED);
    self->unchanged = false;
    return self->standby = true;
}

bool vram_backup_use(struct vram_block *self) {
    if (!self->standby) return false;
    __atomic_fetch_sub(&standby_bytes, self->size, __ATOMIC_RELAXED);
    self->standby = false;
    return true;
}

/* Puts the backup into a list, from which vram_backup_collect frees it. Waits for the lock of this list, however long
 * that takes. If there is no memory for a longer list, the backup's memory is never freed. */
void vram_backup_leave(struct vram_block *self) {
    if (!self->backup) return;
    lock_hold(&busy);
    if (CAPACITY_FOR(&held, list, capacity, held.count + 1))
        held.list[held.count++] = (struct pinned){self->backup, self->size};
    lock_let_go(&busy);
    self->backup = NULL;
}

static bool next_held(struct pinned *out) {
    lock_hold(&busy);
    bool any = held.count;
    if (any) *out = held.list[--held.count];
    lock_let_go(&busy);
    return any;
}

void vram_backup_collect(void) {
    for (struct pinned each; next_held(&each);) give_back(each.at, each.bytes, VRAM_PINNED);
}

static void vram_backup_abandon(void) {
    held.count = 0;
    standby_bytes = 0;
    busy = (struct lock){0};
    for (int i = 0; i < VRAM_BACKUP_KINDS; i++) os_store(&bytes_of[i], 0);
}
FORKED(vram_backup_abandon);
