/* moving.c — see moving.h. This file finds out which memory is to move, and whether it still belongs to the owner. The
 * engine (stow.h) moves it. */
#include "preload/owners/cuda_pageable.h"
#include "preload/owners/moving.h"

#include <errno.h>

#include "preload/cuda/cuda_route.h"
#include "preload/blocks/heaps.h"
#include "preload/shared/heapsort.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/trace.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/owners/owned.h"
#include "preload/owners/mover.h"
#include "preload/owners/owners.h"
#include "preload/owners/owners_mark.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_uffd.h"
#include "preload/owners/moving_device.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

/* The pieces of memory to move. Their array is a mapping of its own, because a large model has thousands of pieces. */
struct list {
    uint32_t owner, count, capacity;
    struct stow_piece *pieces;
};

bool moving_can_stow, moving_can_in_use;

static bool count_piece(uintptr_t start, uint64_t length, void *context) {
    (void)start, (void)length;
    ((struct list *)context)->capacity++;
    return true;
}

static bool add_piece(uintptr_t start, uint64_t length, void *context) {
    struct list *list = context;
    if (list->count == list->capacity) return false;
    list->pieces[list->count++] = (struct stow_piece){.start = start, .length = length, .owner = list->owner};
    return true;
}

static size_t moving_bytes_of(const struct list *list) {
    return os_round_up((list->capacity + 1) * sizeof *list->pieces, OS_PAGE);
}

static bool list_begin(struct list *list, uint32_t owner, uint32_t which) {
    *list = (struct list){.owner = owner};
    owned_visit_pieces(owner, which, count_piece, list);
    list->pieces = os_map(moving_bytes_of(list));
    if (list->pieces) owned_visit_pieces(owner, which, add_piece, list);
    return list->pieces != NULL;
}

static void list_end(struct list *list) { os_unmap(list->pieces, moving_bytes_of(list)); }

/* The number of bytes of a piece that have not moved. For a move back, these are the bytes that are still stowed. For a
 * move out, this is the length of the piece minus the larger of two numbers:
 * - the stowed bytes: an earlier move may have stowed some of them
 * - the bytes that this move has moved: they include pages of files that it dropped, which are not stowed */
static uint64_t staying_in(const struct stow_piece *piece, bool out) {
    uint64_t away = stow_bytes_within(piece->start, piece->length);
    if (!out) return away;
    return piece->length - (away > piece->moved ? away : piece->moved);
}

static void note_refusal(uint32_t owner, bool out, const char *why, uint64_t bytes, uint64_t pieces) {
    struct line line;
    line_begin(&line, "REFUSED");
    line_number(&line, "owner", owner);
    line_string(&line, "move", out ? "out" : "back");
    line_string(&line, "because", why);
    line_number(&line, "bytes", bytes);
    line_number(&line, "pieces", pieces);
    trace_add_line(&line);
}

/* Writes a line into the trace for each reason, with the bytes that stayed because of it. */
static void note_refusals(const struct list *list, bool out) {
    for (uint32_t refusal = STOW_DONE + 1; refusal < STOW_REFUSALS; refusal++) {
        uint64_t bytes = 0, pieces = 0;
        if (refusal == STOW_EMPTY) continue;
        for (uint32_t i = 0; i < list->count; i++) {
            if (list->pieces[i].refusal != refusal) continue;
            bytes += staying_in(&list->pieces[i], out);
            pieces++;
        }
        if (pieces) note_refusal(list->owner, out, stow_refusal_text(refusal), bytes, pieces);
    }
}

static uint64_t start_of(const struct stow_piece *piece) { return piece->start; }

HEAPSORT(struct stow_piece, sort_by_start, start_of)

/* An owner's pieces of memory, in order of address. A move makes the list when it first asks whether a piece still
 * belongs to the owner (is_still_there). known: the list was made. */
struct present {
    uint32_t owner, which;
    bool known;
    struct list list;
};

static void look_at_owner(struct present *self) {
    self->known = true;
    if (list_begin(&self->list, owner_final(self->owner), self->which))
        sort_by_start(self->list.pieces, self->list.count);
}

/* A move of one owner. It lies in the frame of the thread that moves. */
struct move {
    struct mover mover; /* the first member, because mover_tell gets the address of `struct move` as its context */
    struct present present;
};

static bool is_still_there(const struct stow_piece *piece, void *context) {
    struct present *self = &((struct move *)context)->present;
    if (!self->known) look_at_owner(self);
    uint32_t low = 0, high = self->list.count; /* in the end, `low` pieces begin at or before piece->start */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->list.pieces[middle].start <= piece->start)
            low = middle + 1;
        else
            high = middle;
    }
    const struct stow_piece *has = low ? &self->list.pieces[low - 1] : NULL;
    return has && piece->start + piece->length <= has->start + has->length;
}

/* Moves the part of the owner's device memory that memstow serves. */
static int64_t move_device(uint32_t owner, bool out, struct move_end end) {
    return out ? moving_device_out(owner, owner_is_idle(owner), false, end) : moving_device_in(owner);
}

/* The result of a move of host and device memory. If anything was moved, errors are ignored, with one exception: if
 * device memory cannot come back, the result is its error, because a kernel that uses this memory breaks the device's
 * context. */
static int64_t moving_both(int64_t host, int64_t device, bool out) {
    if (host > 0 && device > 0) return host + device;
    if (!out && device < 0) return device;
    if (host > 0 || device > 0) return host > 0 ? host : device;
    return host ? host : device;
}

/* Whether devices may use the owner's host memory while it moves. Some devices read the host's memory as the processor
 * does (HMM, ATS), and cannot wait for a page that is moving. If the owner is in use, such a device may begin to read
 * the owner's memory right after this check, so the answer is true. */
static bool devices_use_it(uint32_t owner, const struct list *list, bool out) {
    bool nothing_moves = out ? !list->count : !stow_bytes(owner);
    if (nothing_moves || stow_forked_beside_threads()) return false;
    return cuda_pageable_uses(owner_is_idle(owner));
}

static int64_t refuse_all(struct list *list, uint32_t refusal) {
    for (uint32_t i = 0; i < list->count; i++) list->pieces[i].refusal = refusal;
    return list->count ? -ENOTSUP : 0;
}

static int64_t move_host(struct move *self, struct list *list) {
    uint32_t owner = self->mover.owner;
    struct stow_options options = {.idle = owner_is_idle(owner),
                                   .held_unseen = !stow_forked_beside_threads() && cuda_route_has_exempt(),
                                   .end = self->mover.end,
                                   .tell = mover_tell,
                                   .is_there = is_still_there,
                                   .context = self};
    int64_t moved = self->present.which & OWNED_MEMORY && devices_use_it(owner, list, self->mover.out)
                        ? refuse_all(list, STOW_DEVICE_READS)
                        : (self->mover.out ? stow_out : stow_in)(list->pieces, list->count, &options);
    note_refusals(list, self->mover.out);
    return moved;
}

/* See moving_was_cut_short. */
static __thread bool cut_short __attribute__((tls_model("initial-exec")));

bool moving_was_cut_short(void) { return cut_short; }

static bool is_cut_short(const struct list *list) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->pieces[i].refusal == STOW_CANCELLED) return true;
    return false;
}

/* Moves the owner's values of the store. They are copied without any wait: nobody writes to them, and readers have
 * views of their own. memstow's worker cannot copy them: the files of the store are descriptors of the program, which
 * the worker does not have. */
static int64_t move_state(const struct move *self) {
    uint32_t owner = self->mover.owner;
    if (!owned_store) return 0;
    if (self->mover.ender == BY_WORKER) {
        note_refusal(owner, self->mover.out, "the store's values are moved by the program's threads only", 0, 1);
        return -ENOTSUP;
    }
    int64_t moved = owned_store->move(owner, self->mover.out, self->mover.end);
    owner_note_stowed(owner, owned_store->stowed(owner), 0);
    return moved;
}

/* Marks a move in the history (memory over time). The moves of a trigger are not marked here, because a trigger makes
 * its own marks. */
static void mark_move(uint32_t owner, bool out, int64_t moved) {
    if (moved <= 0 || moving_device_trigger) return;
    owners_mark(&(struct snap_mark){.kind = out ? SNAP_MARK_STOWED : SNAP_MARK_RESTORED,
                                    .owner = owner,
                                    .bytes = (uint64_t)moved,
                                    .live = SNAP_MARK_UNKNOWN});
}

static int64_t moving_move(uint32_t owner, uint32_t which, bool out) {
    struct list list;
    uint32_t kind = owner_kind(owner = owner_final(owner));
    moving_device_forget_why();
    if (!kind) return -ENOENT;
    if (kind != MEMSTOW_MODEL && kind != MEMSTOW_CUSTOM && kind != MEMSTOW_STATE) return -EINVAL;
    if (seal_is_set()) return -ENOTSUP; /* in a sandbox, the kernel may be asked for nothing but memory */
    struct move self = {.mover = {.owner = owner, .out = out}, .present = {.owner = owner, .which = which}};
    mover_begin(&self.mover);
    if (move_is_ended(self.mover.end)) return -ECANCELED;
    if (kind == MEMSTOW_STATE) return which & OWNED_MEMORY ? move_state(&self) : 0;
    if (!list_begin(&list, owner, which)) return -ENOMEM;
    int64_t moved = move_host(&self, &list);
    owner = owner_final(owner); /* another owner may have adopted it meanwhile */
    int64_t of_device = which & OWNED_DEVICE ? move_device(owner, out, self.mover.end) : 0;
    owner_note_stowed(owner, stow_bytes(owner), moving_device_stowed(owner));
    if (self.present.list.pieces) list_end(&self.present.list);
    int64_t result = moving_both(moved, of_device, out);
    mover_leave(&self.mover, result);
    if (which & OWNED_MEMORY) mark_move(owner, out, result);
    cut_short = result >= 0 && is_cut_short(&list);
    list_end(&list);
    return result;
}

int64_t moving_stow(uint32_t owner) { return moving_move(owner, OWNED_MEMORY | OWNED_FILES | OWNED_DEVICE, true); }

int64_t moving_stow_host(uint32_t owner) { return moving_move(owner, OWNED_MEMORY | OWNED_FILES, true); }

int64_t moving_stow_device(uint32_t owner) {
    owner = owner_final(owner);
    int64_t moved = moving_device_out(owner, owner_is_idle(owner), true, (struct move_end){0});
    owner_note_stowed(owner, stow_bytes(owner), moving_device_stowed(owner));
    return moved;
}

int64_t moving_restore(uint32_t owner) { return moving_move(owner, OWNED_MEMORY | OWNED_DEVICE, false); }

/* Releases the free memory of the owner's heap. Also releases those pages of mapped files that nobody has written to,
 * because the kernel can read these pages again. */
int64_t moving_release(uint32_t owner) {
    owner = owner_final(owner);
    if (!owner_kind(owner)) return -ENOENT;
    heaps_collect(owner);
    int64_t dropped = moving_move(owner, OWNED_FILES, true);
    return dropped > 0 ? dropped : 0;
}

const char *moving_why_not(int64_t result) { return moving_device_why(result); }

uint64_t moving_progress(uint64_t *wanted) {
    struct stow_progress progress = stow_progress();
    *wanted = progress.at_work ? progress.wanted : 0;
    return progress.at_work ? progress.moved : 0;
}

/* Without userfaultfd, only memory of idle owners can move, because a thread that uses memory during its move cannot be
 * made to wait. */
void moving_begin(void) {
    uint32_t features;
    if (moving_can_stow || seal_is_set()) return;
    int fd = stow_uffd_open(0, &features);
    if (fd >= 0) os_close(fd);
    moving_can_in_use = fd >= 0;
    moving_can_stow = true;
}
