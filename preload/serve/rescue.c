/* rescue.c — see rescue.h.
 *
 * The thread that requests memory may hold locks of the program or of Python: PyTorch's allocator, for example, makes
 * its requests with its own lock held. Whatever the requesting thread waits for might itself wait for such a lock. So
 * each of these waits has a limit of 5 seconds:
 * - the wait for the work on the device (vram_quiet.h; the limit is in moving_device.c)
 * - the wait for another thread's rescue or move (WAIT_MS)
 * Other locks of memstow are held for a short time, and never while the program is called. */
#include "preload/serve/rescue.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_route.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/copies/vram_driver.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_sums.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

enum { WAIT_MS = 5000, WAITS_MOST = 2 };
/* PAUSE_NS: the shortest pause (pause_ns) after a rescue that freed too little. Each further such rescue makes the
 * pause twice as long. The pause is also at least twice as long as the rescue took, but never longer than
 * PAUSE_MOST_NS. OVER_NS: the longest wait of rescue_is_over. */
static const uint64_t PAUSE_NS = 1000000000, PAUSE_MOST_NS = 60000000000, OVER_NS = 60000000000;

static bool off, takes_kept;
static struct lock rescuing;
static uint32_t short_of; /* the device that lacks memory, set by the thread that holds `rescuing` */
/* The latest rescue of any thread decides for all threads when the next one may begin (not_before_ns). */
static uint64_t not_before_ns, pause_ns;
static __thread bool within __attribute__((tls_model("initial-exec")));
/* The size of the thread's latest refused request for plain memory. */
static __thread uint64_t last_bytes __attribute__((tls_model("initial-exec")));

int64_t (*rescue_run)(uint64_t needed, bool takes_kept, bool (*helps)(uint32_t owner));

const char *rescue_wish(const char *text) {
    bool known = !*text || !strcmp(text, "0") || !strcmp(text, "1") || !strcmp(text, "kept");
    off = !strcmp(text, "0");
    takes_kept = !strcmp(text, "kept");
    return known ? NULL : "MEMSTOW_CUDA_RESCUE is not 0, 1 or kept: it counts as not set";
}

/* Whether the refusal is an error for the program. A refusal of memory from a pool is always an error. A refusal of
 * plain memory need not be one, because the program may only try how much memory there is, or may free a cache and ask
 * again. So it counts as an error only when the program has asked for the same size twice in a row. */
static bool is_error(struct rescue *self) {
    if (self->judged) return self->is_error;
    self->judged = true;
    self->is_error = self->in_pool || last_bytes == self->bytes;
    last_bytes = self->in_pool ? last_bytes : self->bytes;
    return self->is_error;
}

/* Whether a rescue is possible on this thread now. */
static bool may_be(void) {
    return !off && !within && vram_driver_is_on() && !cuda_captures_any() && !cuda_route_has_exempt() && !seal_is_set();
}

/* --- other threads that give memory back --- */

static bool wait_for_rescue(void) {
    const struct timespec while_ = {.tv_nsec = 1000000};
    uint64_t end = os_now() + WAIT_MS * (uint64_t)1000000;
    if (!lock_is_held(&rescuing)) return false;
    while (lock_is_held(&rescuing) && os_now() < end) os_call(SYS_nanosleep, &while_, NULL);
    return !lock_is_held(&rescuing);
}

/* Returns true if another rescue or a move has given memory back since the request was made or repeated. Otherwise,
 * if a rescue or move is in progress, waits for its end, and returns true if it ends in time. For each request, this
 * function returns true at most WAITS_MOST times. */
static bool others_gave(struct rescue *self) {
    if (self->waits == WAITS_MOST) return false;
    bool gave = vram_move_left() != self->left || wait_for_rescue() || vram_move_wait(WAIT_MS);
    self->waits += gave;
    self->left = vram_move_left();
    return gave;
}

/* --- a rescue of our own --- */

/* Notes that a rescue freed too little, and begins the pause before the next one. */
static void was_in_vain(uint64_t took_ns) {
    uint64_t last = os_load(&pause_ns), pause = last ? 2 * last : PAUSE_NS;
    if (pause < 2 * took_ns) pause = 2 * took_ns;
    if (pause > PAUSE_MOST_NS) pause = PAUSE_MOST_NS;
    os_store(&pause_ns, pause);
    os_store(&not_before_ns, os_now() + pause);
}

/* Whether an empty device could fulfil the request. If it could not, nothing is moved for the request. */
static bool can_ever_be(uint64_t bytes) {
    uint64_t total = cuda_device_total();
    return bytes <= (total ? total : UINT64_MAX - VRAM_GRANULE);
}

/* Whether an owner has memory on the device that lacks memory, or memory that was moved off this device. */
static bool is_in_short_one(uint32_t owner) {
    struct vram_sums sums = vram_sums(owner, short_of);
    return sums.live || sums.stowed;
}

/* Tries to free as many bytes as were requested. Memory that is free already does not count, because it was not enough.
 * True: some bytes were freed. */
static bool rescue_give(const struct rescue *self) {
    uint64_t needed = os_round_up(self->bytes, VRAM_GRANULE);
    short_of = cuda_device_of_stream(self->stream, cuda_device_now().device);
    if (!vram_sums(0, short_of).live || !can_ever_be(self->bytes)) return false;
    uint64_t begun = os_now();
    within = true;
    int64_t given = rescue_run ? rescue_run(needed, takes_kept, is_in_short_one) : 0;
    within = false;
    if (given <= 0) was_in_vain(os_now() - begun);
    return given > 0;
}

static bool rescue_rescue(struct rescue *self) {
    if (self->tried || os_now() < os_load(&not_before_ns)) return false;
    if (!lock_try(&rescuing)) return others_gave(self); /* another thread was faster */
    self->tried = true;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    bool gave = rescue_give(self);
    lock_let_go(&rescuing);
    return gave;
}

/* Waits for the rescue that has the lock now. A later rescue need not be waited for: the caller has already noted that
 * the owner is in use, and a rescue that takes the lock after that sees this note. */
bool rescue_is_over(void) {
    const struct timespec while_ = {.tv_nsec = 1000000};
    uint64_t end = os_now() + OVER_NS;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while (!within && lock_is_held(&rescuing) && os_now() < end) os_call(SYS_nanosleep, &while_, NULL);
    return within || !lock_is_held(&rescuing);
}

void rescue_worked(void) {
    os_store(&pause_ns, 0);
    last_bytes = 0;
}

struct rescue rescue_begin(uint64_t bytes, bool in_pool) {
    return (struct rescue){.bytes = bytes, .in_pool = in_pool, .left = vram_move_left()};
}

bool rescue_try(struct rescue *self) {
    if (!may_be() || !is_error(self)) return false;
    if (self->tried) {
        was_in_vain(0); /* the memory that was freed could not be used */
        return false;
    }
    return others_gave(self) || rescue_rescue(self);
}

static void rescue_abandon(void) {
    rescuing = (struct lock){0};
    not_before_ns = pause_ns = last_bytes = 0;
    within = false;
}
FORKED(rescue_abandon);
