/* moving_device.c — see moving_device.h. */
#include "preload/owners/moving_device.h"

#include <errno.h>

#include "preload/count/owner.h"
#include "preload/count/tags.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_route.h"
#include "preload/ledger/trace.h"
#include "preload/serve/cuda_parts.h"
#include "preload/serve/serve_contexts.h"
#include "preload/serve/serve_driver.h"
#include "preload/serve/serve_settings.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_owned.h"
#include "preload/vram/vram_reach.h"
#include "preload/vram/vram_sums.h"
#include "preload/copies/vram_thread.h"

enum { WAIT_MS = 5000 };

static void note_refusal(uint32_t owner, const char *kind, enum vram_refusal refusal, int error, uint64_t bytes) {
    struct line line;
    line_begin(&line, "REFUSED");
    line_number(&line, "owner", owner);
    line_string(&line, "move", kind);
    line_string(&line, "because", vram_refusal_text(refusal));
    line_number(&line, "bytes", bytes);
    line_signed(&line, "cuda_error", error);
    trace_add_line(&line);
}

static int64_t error_of(enum vram_refusal refusal) {
    switch (refusal) {
    case VRAM_REFUSAL_DONE:
    case VRAM_REFUSAL_EMPTY:
        return 0;
    case VRAM_REFUSAL_CAPTURE:
    case VRAM_REFUSAL_BUSY:
    case VRAM_REFUSAL_AT_WORK:
    case VRAM_REFUSAL_NOT_IDLE:
    case VRAM_REFUSAL_CHANGED:
    case VRAM_REFUSAL_CONTEXTS:
    case VRAM_REFUSAL_NO_THREAD:
        return -EBUSY;
    case VRAM_REFUSAL_CANCELLED:
        return -ECANCELED;
    case VRAM_REFUSAL_HANDLE:
    case VRAM_REFUSAL_MULTICAST:
    case VRAM_REFUSAL_EXPORTED:
    case VRAM_REFUSAL_RDMA:
    case VRAM_REFUSAL_WORKSPACE:
    case VRAM_REFUSAL_MIXED:
        return -EPERM;
    case VRAM_REFUSAL_AIMDO:
        return -ENOTSUP;
    case VRAM_REFUSAL_NO_MEMORY:
    case VRAM_REFUSAL_NO_VRAM:
        return -ENOMEM;
    case VRAM_REFUSAL_DISK_FULL:
        return -ENOSPC;
    case VRAM_REFUSAL_DISK:
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

/* --- the parts of an owner's memory that cannot move --- */

enum { SHARERS_MOST = 16 };

struct staying {
    uint64_t bytes[VRAM_REFUSALS];
    uint64_t mixed[SHARERS_MOST]; /* addresses of blocks with parts of several owners */
    uint32_t mixed_count;
};

static void add_staying(enum vram_refusal why, uint64_t at, uint64_t bytes, void *context) {
    struct staying *staying = context;
    staying->bytes[why] += bytes;
    if (why == VRAM_REFUSAL_MIXED && staying->mixed_count < SHARERS_MOST) staying->mixed[staying->mixed_count++] = at;
}

static uint32_t add_sharers(uint64_t block, uint32_t but, uint32_t *owners, uint32_t count) {
    uint32_t found[SHARERS_MOST], n = cuda_parts_owners(block, found, SHARERS_MOST);
    for (uint32_t i = 0, at; i < n; i++) {
        for (at = 0; at < count && owners[at] != found[i]; at++) continue;
        if (found[i] != but && at == count && count < SHARERS_MOST) owners[count++] = found[i];
    }
    return count;
}

static void note_mixed(uint32_t owner, const struct staying *staying) {
    uint32_t owners[SHARERS_MOST], count = 0;
    struct line line;
    for (uint32_t i = 0; i < staying->mixed_count; i++) count = add_sharers(staying->mixed[i], owner, owners, count);
    line_begin(&line, "REFUSED");
    line_number(&line, "owner", owner);
    line_string(&line, "move", "out");
    line_string(&line, "because", vram_refusal_text(VRAM_REFUSAL_MIXED));
    line_numbers(&line, "with", owners, count);
    line_number(&line, "bytes", staying->bytes[VRAM_REFUSAL_MIXED]);
    trace_add_line(&line);
}

/* Writes a line into the trace for each reason why some of the owner's memory cannot move. Returns the bytes of all
 * memory that cannot move. */
static uint64_t note_staying(uint32_t owner) {
    struct staying staying = {.mixed_count = 0};
    vram_owned_visit_staying(owner, add_staying, &staying);
    uint64_t sum = staying.bytes[VRAM_REFUSAL_MIXED];
    for (int why = VRAM_REFUSAL_HANDLE; why < VRAM_REFUSAL_MIXED; why++) {
        if (staying.bytes[why]) note_refusal(owner, "out", (enum vram_refusal)why, 0, staying.bytes[why]);
        sum += staying.bytes[why];
    }
    if (staying.bytes[VRAM_REFUSAL_MIXED]) note_mixed(owner, &staying);
    return sum;
}

static __thread const char *why_last __attribute__((tls_model("initial-exec")));
static __thread int64_t result_last __attribute__((tls_model("initial-exec")));

void moving_device_forget_why(void) { result_last = 0; }

const char *moving_device_why(int64_t result) { return result < 0 && result == result_last ? why_last : NULL; }

/* Writes a line into the trace that gives `refusal` as the reason for the owner's bytes that have not moved.
 * `explained`: how many of the bytes that have not moved stayed for another reason. The trace has these already, so the
 * line leaves them out. */
static void note_stays(uint32_t owner, bool out, enum vram_refusal refusal, int error, uint64_t explained) {
    struct vram_sums sums = vram_sums(owner, UINT32_MAX);
    uint64_t there = out ? sums.live : sums.stowed;
    if (refusal && refusal != VRAM_REFUSAL_EMPTY && !vram_refusal_is_of_blocks(refusal) && there > explained)
        note_refusal(owner, out ? "out" : "back", refusal, error, there - explained);
}

static int64_t result_of(enum vram_refusal refusal, uint64_t bytes) {
    result_last = bytes ? (int64_t)bytes : error_of(refusal);
    why_last = vram_refusal_text(refusal);
    return result_last;
}

/* Bytes of an owner's memory on devices, by kind. memstow can serve only plain memory (cudaMalloc) and memory of
 * pools, and only served memory can move. */
struct in_devices {
    uint32_t owner;
    uint64_t plain, pooled, other;
    uint64_t apart; /* the part of `plain` on devices whose memory some other device cannot access */
};

static void add_to(const struct snap_cuda_site *site, void *context) {
    struct in_devices *has = context;
    uint64_t live = site->counter.alloc_bytes - site->counter.free_bytes;
    if (!snap_cuda_on_device(site->kind) || owner_final(tags_at(site->tag).model) != has->owner) return;
    bool is_plain = site->kind == SNAP_CUDA_DEVICE_MEMORY;
    *(is_plain ? &has->plain : site->kind == SNAP_CUDA_POOL_MEMORY ? &has->pooled : &has->other) += live;
    if (is_plain && vram_driver_is_on() && !vram_reach_is_whole(site->device)) has->apart += live;
}

/* Why memory came from the driver, although memstow can serve memory of its kind. */
static enum vram_refusal why_not_served(void) {
    if (!serve_wanted) return VRAM_REFUSAL_OFF;
    enum vram_refusal why = serve_driver_refusal();
    return why ? why : VRAM_REFUSAL_SMALL;
}

/* Writes lines into the trace for the owner's memory that came from the driver, and therefore stays where it is. */
static void note_not_served(uint32_t owner) {
    struct in_devices has = {.owner = owner};
    uint64_t served = vram_driver_is_on() ? vram_sums(owner, UINT32_MAX).asked : 0;
    cuda_counts_visit(add_to, &has);
    uint64_t could = has.plain + has.pooled - has.apart;
    if (has.apart) note_refusal(owner, "out", VRAM_REFUSAL_DEVICES, 0, has.apart);
    if (could > served) note_refusal(owner, "out", why_not_served(), 0, could - served);
    if (has.other) note_refusal(owner, "out", VRAM_REFUSAL_KIND, 0, has.other);
}

__thread uint64_t moving_device_trigger __attribute__((tls_model("initial-exec")));

static void note_discarded(uint32_t owner, uint64_t bytes) {
    struct line line;
    line_begin(&line, "DISCARDED");
    line_number(&line, "owner", owner);
    line_number(&line, "bytes", bytes);
    trace_add_line(&line);
}

/* Notes how much was not copied because it had not changed, and the error that prevented hashing, if there was one. */
static void note_unchanged(uint32_t owner, const struct vram_unchanged *unchanged) {
    struct line line;
    if (!unchanged->bytes && !unchanged->error) return;
    line_begin(&line, "UNCHANGED");
    line_number(&line, "owner", owner);
    line_number(&line, "bytes", unchanged->bytes);
    line_signed(&line, "cuda_error", unchanged->error);
    trace_add_line(&line);
}

/* The input and the result of do_move, which a thread that can call the driver (vram_thread.h) runs. */
struct errand {
    const struct vram_move_options *options;
    bool out;
    enum vram_refusal refusal;
    int error;
    uint64_t bytes;
};

static void do_move(void *context) {
    struct errand *self = context;
    cuda_handle primary;
    for (int i = 0; self->out && i < serve_driver.devices; i++)
        /* no hook sees when the CUDA runtime makes a primary context, so the driver is asked for it */
        if (!cuda_device_ask_primary((uint32_t)i, &primary)) serve_contexts_made(primary, (uint32_t)i);
    self->bytes = (self->out ? vram_move_out : vram_move_in)(self->options, &self->refusal, &self->error);
}

/* Without a thread that can call the driver, nothing moves. */
static struct errand moved(const struct vram_move_options *options, bool out) {
    struct errand self = {.options = options, .out = out, .refusal = VRAM_REFUSAL_NO_THREAD};
    vram_thread_do(do_move, &self);
    return self;
}

/* Memory moves out only if its owner was declared idle, because a kernel that used the memory during the move would
 * find no memory there. */
int64_t moving_device_out(uint32_t owner, bool idle, bool at_once, struct move_end end) {
    struct vram_unchanged unchanged = {0};
    struct vram_move_options options = {.owner = owner,
                                        .milliseconds = WAIT_MS,
                                        .verify = serve_settings.verifies,
                                        .discard = owner_discards(owner),
                                        .limits = serve_settings.limits,
                                        .at_once = at_once,
                                        .trigger = moving_device_trigger,
                                        .unchanged = &unchanged,
                                        .end = end};
    note_not_served(owner);
    if (!vram_driver_is_on() || !vram_sums(owner, UINT32_MAX).live) return 0;
    if (!idle || cuda_route_has_exempt()) {
        enum vram_refusal refusal = idle ? VRAM_REFUSAL_AIMDO : VRAM_REFUSAL_NOT_IDLE;
        note_stays(owner, true, refusal, 0, 0);
        return result_of(refusal, 0);
    }
    struct errand move = moved(&options, true);
    if (move.bytes && options.discard) note_discarded(owner, move.bytes);
    note_unchanged(owner, &unchanged);
    note_stays(owner, true, move.refusal, move.error, note_staying(owner));
    return result_of(move.refusal, move.bytes);
}

int64_t moving_device_in(uint32_t owner) {
    struct vram_move_options options = {.owner = owner, .limits = serve_settings.limits};
    if (!vram_driver_is_on() || !vram_sums(owner, UINT32_MAX).stowed) return 0;
    struct errand move = moved(&options, false);
    note_stays(owner, false, move.refusal, move.error, 0);
    return result_of(move.refusal, move.bytes);
}

uint64_t moving_device_stowed(uint32_t owner) { return vram_driver_is_on() ? vram_sums(owner, UINT32_MAX).stowed : 0; }
