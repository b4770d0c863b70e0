/* vram_backup.c — see vram_backup.h. Pinned memory is memory of ours that is registered with the driver. Pinned memory
 * from the driver itself would end with its context, but a block that was served in place of a pool outlives its
 * context. */
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
#include "preload/base/seal.h"
#include "preload/base/forked.h"

enum { PORTABLE = 1, ATTEMPTS = 3 };
enum { DRIVER_ENDED = 4, NO_CONTEXT = 201, CONTEXT_ENDED = 709, NOT_REGISTERED = 713 };

static uint64_t bytes_of[VRAM_BACKUP_KINDS];

/* Pinned memory, and the context in which it was pinned. */
struct pinned {
    void *at;
    uint64_t bytes;
    cuda_handle context;
};
/* Pinned memory to which the device may still write, or that the driver did not unpin. */
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

/* --- the ledger --- */

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

/* Lists the memory in the ledger, and keeps a forked child from inheriting it: the child has no device to bring the
 * content back to. */
static void is_made(struct vram_block *self, void *at, enum vram_backup_kind backup_kind) {
    self->backup = at;
    self->backup_kind = backup_kind;
    os_call(SYS_madvise, at, self->size, MADV_DONTFORK);
    vram_backup_note(SNAP_CUDA_BACKUP, at, self->size, self->device);
}

/* --- in memory --- */

/* Whether a backup of this size fits in memory. An eighth of the memory that the machine or the cgroup has left stays
 * free, so that stowing a model does not make the system kill the program. */
static bool vram_backup_fits(uint64_t bytes, uint64_t most) {
    uint64_t left = pressure_left(), now = add_backup_bytes(VRAM_IN_MEMORY, bytes) + vram_backup_bytes(VRAM_PINNED);
    return (!most || now <= most) && bytes <= left - left / 8;
}

/* Pins the memory. If the driver does not accept that, the memory stays ordinary memory. */
static bool vram_backup_pin(const struct vram_driver *driver, const struct vram_block *self, void *at, uint64_t most) {
    bool pinned =
        add_backup_bytes(VRAM_PINNED, self->size) <= most && !driver->cuMemHostRegister_v2(at, self->size, PORTABLE);
    take_off_backup_bytes(pinned ? VRAM_IN_MEMORY : VRAM_PINNED, self->size);
    return pinned;
}

bool vram_backup_make(const struct vram_driver *driver, struct vram_block *self, const struct vram_limits *limits) {
    void *at = vram_backup_fits(self->size, limits->memory) ? os_map(self->size) : NULL;
    if (!at) {
        take_off_backup_bytes(VRAM_IN_MEMORY, self->size);
        return false;
    }
    os_call(SYS_madvise, at, self->size, MADV_HUGEPAGE);
    is_made(self, at,
            limits->pinned && vram_backup_pin(driver, self, at, limits->pinned) ? VRAM_PINNED : VRAM_IN_MEMORY);
    return true;
}

/* --- in a file --- */

/* Whether a file can be read by the kernel. If a disk fails, a read through a mapping kills the reader, but a read by
 * the kernel returns an error. */
static bool can_be_read_back(void) {
    char from = 1, to = 0;
    return os_peek(&to, &from, 1);
}

uint32_t vram_backup_make_file(struct vram_block *self, const struct vram_limits *limits, struct stow_file *file) {
    if (!limits->disk || seal_is_set()) return STOW_EMPTY;
    if (!can_be_read_back()) return STOW_NO_KERNEL_HELP;
    uint32_t refusal = add_backup_bytes(VRAM_IN_FILE, self->size) <= limits->disk
                           ? stow_file_open(file, NULL, self->size)
                           : STOW_EMPTY;
    void *at = refusal ? NULL : stow_file_map(file, self->size);
    if (!refusal && !at) stow_file_close(file);
    if (!at) take_off_backup_bytes(VRAM_IN_FILE, self->size);
    if (at) is_made(self, at, VRAM_IN_FILE);
    return refusal || at ? refusal : (uint32_t)STOW_ADDRESS_SPACE;
}

/* --- ends --- */

static bool is_gone(int error) {
    return !error || error == NOT_REGISTERED || error == NO_CONTEXT || error == CONTEXT_ENDED || error == DRIVER_ENDED;
}

/* Unpins memory. If its context has ended, the registration may have ended with it. False: the driver still has it. */
static bool vram_backup_unpin(const struct vram_driver *driver, const struct pinned *self) {
    struct vram_visit visit;
    int error = vram_driver_enter(driver, self->context, &visit);
    if (error) return is_gone(error);
    for (int i = 0; i < ATTEMPTS && (error = driver->cuMemHostUnregister(self->at)); i++) continue;
    vram_driver_leave(driver, &visit);
    return is_gone(error);
}

static struct pinned pinned_of(const struct vram_block *self) {
    return (struct pinned){self->backup, self->size, self->context};
}

static void give_back(void *at, uint64_t bytes, enum vram_backup_kind backup_kind) {
    vram_backup_forget(at);
    os_unmap(at, bytes);
    take_off_backup_bytes(backup_kind, bytes);
}

/* Keeps the memory until it can be unpinned, so it waits for the list as long as it takes. If there is no memory for a
 * longer list, it is lost. */
static void vram_backup_hold(const struct pinned *pinned) {
    lock_hold(&busy);
    if (CAPACITY_FOR(&held, list, capacity, held.count + 1)) held.list[held.count++] = *pinned;
    lock_let_go(&busy);
}

void vram_backup_drop(const struct vram_driver *driver, struct vram_block *self) {
    if (!self->backup) return;
    struct pinned pinned = pinned_of(self);
    if (self->backup_kind == VRAM_PINNED && !vram_backup_unpin(driver, &pinned))
        vram_backup_hold(&pinned);
    else
        give_back(self->backup, self->size, self->backup_kind);
    self->backup = NULL;
}

void vram_backup_leave(struct vram_block *self) {
    if (!self->backup) return;
    struct pinned pinned = pinned_of(self);
    vram_backup_hold(&pinned);
    self->backup = NULL;
}

/* Takes the memory that has been kept for longest. */
static bool next_held(struct pinned *out) {
    lock_hold(&busy);
    bool any = held.count;
    if (any) *out = held.list[0];
    if (any) memmove(held.list, held.list + 1, --held.count * sizeof *held.list);
    lock_let_go(&busy);
    return any;
}

/* Tries each once. Memory that the driver does not unpin goes to the end, behind memory that it may unpin. */
void vram_backup_collect(const struct vram_driver *driver) {
    struct pinned each;
    for (uint32_t left = os_load32(&held.count); left && next_held(&each); left--)
        if (vram_backup_unpin(driver, &each))
            give_back(each.at, each.bytes, VRAM_PINNED);
        else
            vram_backup_hold(&each);
}

static void vram_backup_abandon(void) {
    held.count = 0;
    busy = (struct lock){0};
    for (int i = 0; i < VRAM_BACKUP_KINDS; i++) os_store(&bytes_of[i], 0);
}
FORKED(vram_backup_abandon);
