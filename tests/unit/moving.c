/* When the ends of two moves overlap in time, each move must report its own figures. Doubles in this file stand in
 * for the engine and the owners. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "preload/owners/cuda_pageable.h"
#include "preload/cuda/cuda_route.h"
#include "preload/blocks/heaps.h"
#include "preload/ledger/ledger.h"
#include "preload/owners/moving.h"
#include "preload/owners/mover.h"
#include "preload/shared/os.h"
#include "preload/owners/owned.h"
#include "preload/owners/owners.h"
#include "preload/owners/owners_mark.h"
#include "preload/stow/stow.h"
#include "preload/triggers/trigger.h"
#include "preload/owners/moving_device.h"

enum { FIRST = 1, NEXT = 2, WANTED = 1000, MOVED = 600 };

static struct snap_header head;
static uint64_t moved, wanted;
static bool first_is_on;

uint32_t owner_kind(uint32_t owner) { return (void)owner, MEMSTOW_MODEL; }

/* The `stops_in`-th call of owner_final on a thread stops that thread. At this call the thread has already seen that
 * the present move is the owner's, and it still has the lock. */
static __thread int stops_in;
static bool is_stopped, move_is_over;
static void wait_until(bool *is) {
    while (!__atomic_load_n(is, __ATOMIC_ACQUIRE)) usleep(100);
}
uint32_t owner_final(uint32_t owner) {
    if (stops_in && --stops_in == 0) {
        __atomic_store_n(&is_stopped, true, __ATOMIC_RELEASE);
        wait_until(&move_is_over);
    }
    return owner;
}
bool owner_is_idle(uint32_t owner) { return (void)owner, true; }
void owned_visit_pieces(uint32_t owner, uint32_t which, owned_visit *visit, void *context) {
    (void)which;
    visit(owner * OS_PAGE, OS_PAGE, context);
}
uint64_t stow_bytes(uint32_t owner) { return (void)owner, 0; }
bool stow_forked_beside_threads(void) { return true; }
__thread uint64_t moving_device_trigger;
void owners_mark(const struct snap_mark *mark) { (void)mark; }
uint64_t moving_device_stowed(uint32_t owner) { return (void)owner, 0; }
int64_t moving_device_out(uint32_t owner, bool idle, bool at_once, struct move_end end) {
    return (void)owner, (void)idle, (void)at_once, (void)end, 0;
}
void moving_device_forget_why(void) {}

/* Never called. */
const struct owned_store *owned_store;
int64_t moving_device_in(uint32_t owner) { return (void)owner, 0; }
const char *moving_device_why(int64_t result) { return (void)result, NULL; }
int64_t stow_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    return (void)pieces, (void)count, (void)options, 0;
}
uint64_t stow_bytes_within(uint64_t start, uint64_t length) { return (void)start, (void)length, 0; }
struct stow_progress stow_progress(void) {
    return (struct stow_progress){0};
}
const char *stow_refusal_text(uint32_t refusal) { return (void)refusal, ""; }
void heaps_collect(uint32_t owner) { (void)owner; }
bool cuda_route_has_exempt(void) { return false; }
bool cuda_pageable_uses(bool idle) { return (void)idle, false; }

static bool engine_waits;
static pthread_t ends;
static int64_t ended_number;

static void *end_it(void *nothing) {
    stops_in = 2;
    ended_number = mover_end(FIRST, true);
    return nothing;
}

/* A double of the engine. It reports progress once: nothing is moved yet. It returns how many bytes it has moved: MOVED
 * times the number of the owner, or 0 if `engine_waits` is set. */
int64_t stow_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    (void)count;
    options->tell(0, WANTED * pieces->owner, options->context);
    if (engine_waits) {
        cr_assert_eq(pthread_create(&ends, NULL, end_it, NULL), 0);
        wait_until(&is_stopped);
        return 0;
    }
    cr_assert_eq(mover_end(pieces->owner, true), pieces->owner);
    return MOVED * pieces->owner;
}

/* By now the engine is free for another move. */
void owner_note_stowed(uint32_t owner, uint64_t in_files, uint64_t of_devices) {
    (void)in_files, (void)of_devices;
    if (owner != FIRST || engine_waits) return;
    mover_begin_call();
    cr_assert_eq(moving_stow(NEXT), MOVED * NEXT);
    first_is_on = mover_is_on(FIRST, &moved, &wanted);
}

Test(moving, what_another_move_came_after_is_told_of_by_its_own_figures) {
    ledger_head = &head;
    cr_assert_eq(moving_stow(FIRST), MOVED * FIRST);
    cr_expect(first_is_on, "before it had left");
    for (uint32_t number = FIRST; number <= NEXT; number++) {
        cr_expect(!mover_is_on(number, &moved, &wanted));
        cr_expect(moved == MOVED * number && wanted == WANTED * number, "%u: %lu of %lu", number, moved, wanted);
    }
    cr_expect_eq(head.moving_owner, 0);
}

__attribute__((noinline)) static void move_it(void) {
    mover_begin_call();
    moving_stow(FIRST);
}

/* Writes over the former frame of the move. */
__attribute__((noinline)) static void write_over_the_stack(void) {
    char there[65536];
    memset(there, 0x5A, sizeof there);
    __asm__ volatile("" : : "r"(there) : "memory");
}

/* The thread that cancels the move has found it, and stops with the lock held. The mover gives up waiting for the lock.
 * When the cancelling thread goes on, the move is over, and the stack frame that held the move is gone. */
Test(moving, who_ends_a_move_that_is_gone_writes_to_nothing_that_is_gone, .timeout = 60) {
    ledger_head = &head;
    engine_waits = true;
    move_it();
    write_over_the_stack();
    __atomic_store_n(&move_is_over, true, __ATOMIC_RELEASE);
    pthread_join(ends, NULL);
    cr_assert_eq(ended_number, FIRST);
    engine_waits = false;
    mover_begin_call();
    cr_assert_eq(moving_stow(NEXT), MOVED * NEXT, "that end was for another call");
}

Test(moving, a_thread_with_the_id_of_a_former_worker_is_not_the_worker) {
    struct mover mover = {.owner = FIRST, .out = true};
    mover_begin_work();
    mover_begin(&mover);
    cr_assert_eq(mover.ender, BY_WORKER);
    mover_end_work();
    mover_begin(&mover);
    cr_assert_eq(mover.ender, BY_CALL);
}
