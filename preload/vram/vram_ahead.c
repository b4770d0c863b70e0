/* vram_ahead.c — see vram_ahead.h. */
#include "preload/vram/vram_ahead.h"

#include "preload/base/forked.h"
#include "preload/copies/vram_ring.h"
#include "preload/copies/vram_stock.h"
#include "preload/cuda/cuda_captures.h"
#include "preload/shared/os.h"
#include "preload/shared/pressure.h"
#include "preload/stow/stow_thread.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_sums.h"
#include "preload/vram/vram_table.h"
#include "preload/copies/vram_thread.h"

enum { LATER_MS = 20 };

bool vram_ahead_wanted = true;
uint32_t vram_ahead_news;

static uint32_t asked; /* 1: the device thread is to pin memory that is missing */
static struct {
    cuda_handle context; /* of the block that was served most recently; NULL: no block was, or the context has ended */
    uint32_t device;
    struct vram_limits limits;
} wish; /* the lock of the table protects it */

/* How many bytes are missing in the stock of pinned memory. The stock should have room for the content of all live
 * blocks, which the next move may bring to the host, and for the content that is in pinned backups already. But it
 * should be no larger than the limit. Standby backups are not added, because their blocks are live, so their content is
 * counted already. */
static uint64_t missing_now(const struct vram_limits *limits) {
    uint64_t full = vram_backup_bytes(VRAM_PINNED), standby = vram_backup_standby();
    uint64_t wanted = vram_sums(0, UINT32_MAX).live + (full > standby ? full - standby : 0);
    if (wanted > limits->pinned) wanted = limits->pinned;
    uint64_t there = vram_stock_bytes();
    return wanted > there ? (wanted - there) / VRAM_GRANULE * VRAM_GRANULE : 0;
}

struct allowance {
    const struct vram_limits *limits;
    uint64_t bytes;
};

static void find_allowance(void *context) {
    struct allowance *self = context;
    uint64_t left = pressure_left(), there = vram_stock_bytes(), most = vram_backup_left(self->limits);
    if (left == PRESSURE_NO_LIMIT || left <= there) return;
    self->bytes = (left - there) / 2 < most ? (left - there) / 2 : most;
}

/* How many bytes may be pinned now; 0: none, or the figures cannot be read. They are no more than a move might pin
 * (vram_backup_left). After the pinning, the system still has at least as much memory left as the stock has. With less
 * memory left, the next move would give pinned memory back.
 *
 * To read the figures, files must be opened. A thread with a descriptor table of its own (stow_thread.h) opens them, so
 * that they take no descriptor numbers from the program. */
static uint64_t allowance_now(const struct vram_limits *limits) {
    struct allowance allowance = {.limits = limits};
    bool own_files;
    struct stow_thread *thread = stow_thread_start(find_allowance, &allowance, &own_files);
    if (thread) stow_thread_join(thread);
    return allowance.bytes;
}

static void ask_device_thread(void) {
    __atomic_store_n(&asked, 1, __ATOMIC_SEQ_CST);
    vram_thread_wake();
}

void vram_ahead_served(const struct vram_request *request, const struct vram_limits *limits) {
    vram_thread_ends_with_program();
    if (!vram_ahead_wanted || !limits->pinned || !vram_table_enter()) return;
    wish.context = request->context;
    wish.device = request->device;
    wish.limits = *limits;
    vram_table_let_go();
    __atomic_store_n(&vram_ahead_news, 1, __ATOMIC_SEQ_CST);
    if (missing_now(limits) >= VRAM_PIECE) ask_device_thread();
}

void vram_ahead_loaded(void) {
    if (__atomic_exchange_n(&vram_ahead_news, 0, __ATOMIC_SEQ_CST)) ask_device_thread();
}

/* --- on the device thread --- */

/* Copies the wish. True: memory may be pinned in its context now, and from now on a thread that moves memory or ends
 * this context waits until vram_move_end_pinning. Sets *later to whether there is a wish. If this returns false and
 * *later is true, the caller must ask again later. */
static bool begin_pinning(struct vram_stock_wish *out, struct vram_limits *limits, bool *later) {
    vram_table_lock();
    *later = wish.context != NULL;
    bool may = *later && !cuda_captures_any() && vram_move_begin_pinning(wish.context);
    *out = (struct vram_stock_wish){.context = wish.context, .device = wish.device, .most = wish.limits.pinned};
    *limits = wish.limits;
    vram_table_let_go();
    return may;
}

/* Makes the copy buffers of moves, if these are lacking; otherwise pins a piece. True: there may be more to do. */
static bool pin_some(struct vram_stock_wish *out, const struct vram_limits *limits) {
    struct vram_visit visit;
    uint64_t missing = missing_now(limits), allowance = allowance_now(limits);
    bool lacks = vram_move_lacks_buffers(out->context), made = false;
    if ((lacks && allowance < VRAM_SLOTS * VRAM_SLOT) || vram_driver_enter(&vram_driver, out->context, &visit))
        return false;
    out->bytes = missing < allowance ? missing : allowance;
    if (lacks)
        made = !vram_move_make_buffers(out->context, out->device);
    else
        made = vram_stock_ahead(&vram_driver, out);
    vram_driver_leave(&vram_driver, &visit);
    return made;
}

uint32_t vram_ahead_step(void) {
    struct vram_stock_wish out;
    struct vram_limits limits;
    bool later;
    if (!__atomic_exchange_n(&asked, 0, __ATOMIC_SEQ_CST) || !vram_driver_is_on()) return VRAM_THREAD_NOTHING;
    bool more = begin_pinning(&out, &limits, &later);
    if (more) {
        more = pin_some(&out, &limits);
        vram_move_end_pinning();
        later = false;
    }
    if (more || later) __atomic_store_n(&asked, 1, __ATOMIC_SEQ_CST);
    return more ? 0 : later ? LATER_MS : VRAM_THREAD_NOTHING;
}

void vram_ahead_forget(cuda_handle context) {
    if (wish.context == context) wish.context = NULL;
}

static void vram_ahead_abandon(void) {
    asked = vram_ahead_news = 0;
    wish.context = NULL;
}
FORKED(vram_ahead_abandon);
